package fetch

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/http/httpguts"
)

// A Credential is a secret for one origin. It is sent there and nowhere else,
// whatever a redirect or a document asks for.
type Credential struct {
	// Origin is the scheme, host and port, such as "https://example.org:8443". The
	// scheme's default port may be left out, and anything after the port is ignored. If
	// Origin is empty or not a URL, the credential is never sent.
	Origin string

	// Authorization is the value of the Authorization header, such as "Bearer …".
	Authorization string

	// Header has further fields, such as "X-Api-Key" or "Cookie".
	Header http.Header
}

// String returns the origin, so printing a credential gives nothing away.
func (c Credential) String() string { return "credential for " + c.Origin }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// credential returns the credential for a request to u; nil if there is none.
func (c *Client) credential(u *url.URL) *Credential {
	for i, cred := range c.Credentials {
		if o, err := url.Parse(cred.Origin); err == nil && o.Host != "" && iri.SameOrigin(o, u) {
			return &c.Credentials[i]
		}
	}
	return nil
}

// add adds the credential's fields to a request.
func (c *Credential) add(u *url.URL, header http.Header) error {
	if c == nil {
		return nil
	}
	if err := addSecrets(u, header, c.Header); err != nil || c.Authorization == "" {
		return err
	}
	return addSecrets(u, header, http.Header{"Authorization": {c.Authorization}})
}

// CheckSecrets returns an error if a Credential cannot have such fields: their names or
// values are invalid, or their names are among those set by the connection.
func CheckSecrets(fields http.Header) error {
	for name, values := range fields {
		name := http.CanonicalHeaderKey(name)
		secret := name == "Authorization" || name == "Cookie"
		if !httpguts.ValidHeaderFieldName(name) || !secret && slices.Contains(reserved, name) {
			return errors.New("a field of this name cannot be added")
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return errors.New("the value has a control character")
			}
		}
	}
	return nil
}

// addSecrets adds fields, perhaps credentials, to a request to u.
func addSecrets(u *url.URL, to, fields http.Header) error {
	if err := CheckSecrets(fields); err != nil {
		return &RefusedError{URL: u.String(), Rule: RuleHeader, Err: err}
	}
	for name, values := range fields {
		to[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return nil
}
