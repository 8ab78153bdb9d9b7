package feedhistory

import (
	"net/url"
	"strings"

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
