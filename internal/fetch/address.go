package fetch

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// check parses the URL of a request and refuses what no request may ask.
func (c *Client) check(req *Request) (*url.URL, error) {
	if req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, &RefusedError{URL: Redact(req.URL), Rule: RuleMethod}
	}
	return c.parse(nil, req.URL)
}

// parse resolves ref against base, which may be nil, and refuses what must
// not be requested.
func (c *Client) parse(base *url.URL, ref string) (*url.URL, error) {
	if len(ref) > c.Limits.url() {
		shown := Redact(ref)
		return nil, &RefusedError{URL: shown[:min(len(shown), c.Limits.url())], Rule: RuleLength}
	}
	u, err := url.Parse(ref)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err // the URL within would show a password
		}
		return nil, &RefusedError{URL: Redact(ref), Rule: RuleURL, Err: err}
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if rule := c.forbidden(u); rule != "" {
		return nil, &RefusedError{URL: Redact(u.String()), Rule: rule}
	}
	u.Fragment, u.RawFragment = "", "" // never sent, and no part of what is fetched
	return u, nil
}

// forbidden names the rule that a URL breaks by itself, or "".
func (c *Client) forbidden(u *url.URL) string {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return RuleScheme
	case u.User != nil:
		return RuleUserinfo
	case u.Opaque != "" || u.Hostname() == "" || !validPort(u.Port()):
		return RuleURL
	case len(u.Path)+len(u.RawQuery) > c.Limits.url(): // a long base and a long reference
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

// SameOrigin tells whether two URLs agree in scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// AreSameOrigin is SameOrigin for URLs as they are written. What is none has no
// origin.
func AreSameOrigin(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && SameOrigin(ua, ub)
}

// portOf is the port of a URL, the scheme's own where it has none.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// Redact takes userinfo out of a URL, well formed or not.
func Redact(rawURL string) string {
	start := strings.Index(rawURL, "//") + 2
	if start == 1 {
		start = 0
	}
	end := len(rawURL)
	if i := strings.IndexAny(rawURL[start:], "/?#"); i >= 0 {
		end = start + i
	}
	if at := strings.LastIndexByte(rawURL[start:end], '@'); at >= 0 {
		return rawURL[:start] + rawURL[start+at+1:]
	}
	return rawURL
}
