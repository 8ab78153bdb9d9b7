package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// check parses the URL of a request, and refuses what must not be requested.
func (c *Client) check(req *Request) (*url.URL, error) {
	if req.Method != "" && req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, &RefusedError{URL: Redact(req.URL), Rule: RuleMethod}
	}
	return c.parse(nil, req.URL)
}

// parse resolves ref against base, which may be nil, and refuses what must not be
// requested.
func (c *Client) parse(base *url.URL, ref string) (*url.URL, error) {
	if len(ref) > c.Limits.url() {
		shown := Redact(ref)
		return nil, &RefusedError{URL: shown[:min(len(shown), c.Limits.url())], Rule: RuleLength}
	}
	u, err := ParseLeniently(ref)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err // detail has the URL, and so perhaps a password
		}
		return nil, &RefusedError{URL: Redact(ref), Rule: RuleURL, Err: err}
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if rule := c.forbidden(u); rule != "" {
		refused := &RefusedError{URL: Redact(u.String()), Rule: rule}
		if rule == RuleScheme {
			refused.Err = fmt.Errorf("%q", u.Scheme)
		}
		return nil, refused
	}
	u.Fragment, u.RawFragment = "", "" // a fragment is never sent
	return u, nil
}

// ParseLeniently parses a reference whose path and query may have characters that should
// be escaped. net/url refuses some of these; others make it rewrite the whole path, so
// that %2F becomes a slash. The result has no fragment.
func ParseLeniently(ref string) (*url.URL, error) {
	ref, _, _ = strings.Cut(ref, "#")
	path := 0
	if i := strings.Index(ref, "//"); i >= 0 && !strings.ContainsAny(ref[:i], "/?") {
		if path = len(ref); strings.ContainsAny(ref[i+2:], "/?") {
			path = i + 2 + strings.IndexAny(ref[i+2:], "/?")
		}
	}
	return url.Parse(ref[:path] + Escape(ref[path:]))
}

// Escape makes the path or query of a URL fit for a request: it escapes a percent sign that
// begins no escape, and every other byte that RFC 3986 does not allow there. It leaves
// square brackets unchanged, as browsers do, and everything that is valid.
func Escape(s string) string {
	i := 0
	for i < len(s) && sendable(s, i) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	b := append(make([]byte, 0, len(s)+16), s[:i]...)
	for ; i < len(s); i++ {
		if c := s[i]; sendable(s, i) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// sendable reports whether the byte at i may be sent unescaped.
func sendable(s string, i int) bool {
	switch c := s[i]; c {
	case '"', '<', '>', '\\', '^', '`', '{', '|', '}':
		return false
	case '%':
		return i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])
	default:
		return ' ' < c && c < 0x7f
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// forbidden returns the rule that a URL breaks; "" if it breaks none.
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

// SameOrigin reports whether two URLs agree in scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

// AreSameOrigin does the same for URLs as text. An invalid URL has no origin.
func AreSameOrigin(a, b string) bool {
	ua, errA := ParseLeniently(a)
	ub, errB := ParseLeniently(b)
	return errA == nil && errB == nil && SameOrigin(ua, ub)
}

// portOf returns the port of a URL, which may be the scheme's default.
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

// Redact removes userinfo from a URL, which may be invalid.
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
