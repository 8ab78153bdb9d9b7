package feedhistory

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Credential is a secret for one origin. A Client sends it there and nowhere
// else, whatever a redirect or a document asks for.
type Credential struct {
	// Origin is the scheme, host and port, such as "https://example.org:8443";
	// you may leave out the scheme's default port. A credential whose Origin is
	// empty or not a URL is never sent.
	Origin string

	// Authorization is the value of the Authorization header, such as "Bearer …".
	Authorization string

	// User and Password, unless both are "", are sent by Basic authentication (RFC
	// 7617) instead. A user has no colon.
	User, Password string

	// Header has further fields servers ask for, such as "X-Api-Key" or "Cookie". The
	// fields a Client itself sets are refused; see Request.
	Header http.Header
}

// String returns the origin, so printing a credential gives nothing away.
func (c Credential) String() string { return "credential for " + c.Origin }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

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

// secrets returns the fields of the credential for a request to u; nil if there is none.
func (p *Policy) secrets(u *url.URL) http.Header {
	for _, c := range p.Credentials {
		if origin, err := url.Parse(c.Origin); err == nil && iri.SameOrigin(origin, u) {
			return c.fields()
		}
	}
	return nil
}

// fields returns the header fields of the credential.
func (c Credential) fields() http.Header {
	fields := make(http.Header, len(c.Header)+1)
	for name, values := range c.Header {
		fields[http.CanonicalHeaderKey(name)] = values
	}
	if value := c.authorization(); value != "" {
		fields.Set("Authorization", value)
	}
	return fields
}

// authorization returns the value of the Authorization header; "" if there is none.
func (c Credential) authorization() string {
	if c.User == "" && c.Password == "" {
		return c.Authorization
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}
