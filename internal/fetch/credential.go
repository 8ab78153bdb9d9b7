package fetch

import "net/url"

// A Credential is a secret for one origin. It is sent there and nowhere else,
// whatever a redirect or a document asks for.
type Credential struct {
	// Origin is the scheme, host and port, such as "https://example.org:8443".
	// A port may be left out where it is the scheme's own. What follows the
	// port is not looked at. Empty, or not a URL: sent nowhere.
	Origin string

	// Authorization is the value of that header, such as "Bearer …".
	Authorization string
}

// String is the origin: a credential that is printed gives nothing away.
func (c Credential) String() string { return "credential for " + c.Origin }

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// authorization is the header for a request to u, or "".
func (c *Client) authorization(u *url.URL) string {
	for _, cred := range c.Credentials {
		if o, err := url.Parse(cred.Origin); err == nil && o.Host != "" && SameOrigin(o, u) {
			return cred.Authorization
		}
	}
	return ""
}
