package feedhistory

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
)

// HostOf returns the host of a URL as politeness counts hosts: in lower case, without
// the default ports, which http and https share. It returns an invalid URL unchanged.
func HostOf(url string) string { return fetch.HostOf(url) }

// SameOrigin reports whether two URLs agree in scheme, host and port. An invalid URL has
// no origin.
func SameOrigin(a, b string) bool { return iri.AreSameOrigin(a, b) }

// Redact removes the user and password from a URL, which may be invalid.
func Redact(url string) string { return iri.Redact(url) }

// ParseURL parses a URL or reference whose path, query and fragment may have characters
// that should be escaped; the result escapes them, as a Client's requests do. Keep the
// text for identity: String may write the same URL differently.
func ParseURL(ref string) (*url.URL, error) {
	u, err := iri.ParseLeniently(ref)
	if _, fragment, ok := strings.Cut(ref, "#"); ok && err == nil {
		escaped := iri.Escape(fragment)
		if u.Fragment, err = url.PathUnescape(escaped); err != nil {
			return nil, err
		}
		u.RawFragment = escaped
	}
	return u, err
}

// IsOfComments reports whether the link of a web page seems to lead to a feed of comments
// rather than of articles, by its title and address.
func (l Link) IsOfComments() bool { return markup.IsOfComments(l.Title, l.Href) }

// Check returns an error if a Client cannot send the credential: a field has an invalid
// name or value, or is one set by the connection. The error does not quote values.
func (c Credential) Check() error {
	if err := fetch.CheckSecrets(c.Header); err != nil {
		return err
	}
	switch {
	case c.Authorization != "" && c.User+c.Password != "":
		return errors.New("it has both Authorization and a User")
	case strings.Contains(c.User, ":"):
		return errors.New("the user has a colon")
	}
	return fetch.CheckSecrets(http.Header{"Authorization": {c.authorization()}})
}

// NewStatusError returns the error a Client returns for such a response, with its
// Retry-After, for programs that make their own requests. For nil, its Status is zero.
func NewStatusError(resp *http.Response) *StatusError {
	if resp == nil {
		return &StatusError{}
	}
	e := &StatusError{Status: resp.StatusCode}
	if resp.Request != nil && resp.Request.URL != nil {
		e.URL = resp.Request.URL.Redacted()
	}
	now := time.Now()
	if wait, ok := fetch.RetryAfter(resp.Header, now); ok {
		e.RetryAfter, e.At = wait, now.Add(wait)
	}
	return e
}
