package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// check parses the URL of a request, and refuses forbidden ones.
func (c *Client) check(req *Request) (*url.URL, error) {
	if req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, refused(iri.Redact(req.URL), RuleMethod, nil)
	}
	return c.parse(nil, req.URL)
}

// parse resolves ref against base, which may be nil, and refuses forbidden URLs.
func (c *Client) parse(base *url.URL, ref string) (*url.URL, error) {
	if len(ref) > c.maxURL() {
		shown := iri.Redact(ref)
		return nil, refused(shown[:min(len(shown), c.maxURL())], RuleLength, nil)
	}
	u, err := iri.ParseLeniently(ref)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err // detail has the URL, and so perhaps a password
		}
		return nil, refused(iri.Redact(ref), RuleURL, err)
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if rule := c.forbidden(u); rule != "" {
		if rule == RuleScheme {
			err = fmt.Errorf("%q", u.Scheme)
		}
		return nil, refused(iri.Redact(u.String()), rule, err)
	}
	u.Fragment, u.RawFragment = "", "" // a fragment is never sent
	return u, nil
}

// forbidden returns the rule a URL breaks; "" if it breaks none.
func (c *Client) forbidden(u *url.URL) string {
	switch {
	case u.Scheme == "":
		return RuleURL
	case u.Scheme != "http" && u.Scheme != "https":
		return RuleScheme
	case u.User != nil:
		return RuleUserinfo
	case u.Opaque != "" || u.Hostname() == "" || !validPort(u.Port()):
		return RuleURL
	case len(u.Path)+len(u.RawQuery) > c.maxURL(): // a long base and a long reference
		return RuleLength
	}
	return ""
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
