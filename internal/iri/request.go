package iri

import (
	"iter"
	"net/url"
	"slices"
	"strings"
)

// ParseLeniently parses a reference whose path and query may have characters that should
// be escaped. net/url refuses some of these; others make it rewrite the whole path, so
// %2F becomes a slash. The result has no fragment.
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

// Escape makes the path or query of a URL fit for a request: it escapes a percent sign
// without an escape, and every other byte RFC 3986 forbids there. It leaves everything
// valid unchanged and, as browsers do, square brackets.
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

// SameOrigin reports whether two URLs agree in scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && Port(a) == Port(b)
}

// AreSameOrigin does the same for URLs as text. An invalid URL has no origin.
func AreSameOrigin(a, b string) bool {
	ua, errA := ParseLeniently(a)
	ub, errB := ParseLeniently(b)
	return errA == nil && errB == nil && ua.Host != "" && SameOrigin(ua, ub)
}

// Port returns the port of a URL, which may be the scheme's default.
func Port(u *url.URL) string {
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

// secretNames are the words by which the names of parameters say that the value is a
// secret.
var secretNames = []string{
	"token", "secret", "password", "passwd", "pass", "pwd", "key", "apikey", "authkey", "auth", "authorization", "jwt",
	"credential", "credentials", "sig", "signature", "hmac", "session", "sessionid", "sid",
}

// shortestSecret is the length of the shortest value that can be a secret.
const shortestSecret = 4

// HasSecret reports whether the query of a URL seems to have a secret: whoever knows the
// URL of a paid podcast, for instance, may read it.
func HasSecret(url string) bool {
	for field := range fieldsOf(Split(url).Query) {
		if isSecret(field) {
			return true
		}
	}
	return false
}

// Shown returns a URL, which may be invalid, for messages and logs: without userinfo, and
// with … in place of the values of its query that seem to be secrets.
func Shown(url string) string {
	url = Redact(url)
	query := Split(url).Query
	var shown strings.Builder
	rest := query
	for field := range fieldsOf(query) {
		before, after, _ := strings.Cut(rest, field)
		if rest = after; isSecret(field) {
			name, _, _ := strings.Cut(field, "=")
			field = name + "=…"
		}
		shown.WriteString(before + field)
	}
	if shown.WriteString(rest); shown.String() == query {
		return url
	}
	return strings.Replace(url, "?"+query, "?"+shown.String(), 1)
}

// fieldsOf yields the fields of a query, in whatever way a document escapes what is
// between them: & and ; delimit, and so does the backslash of \u0026.
func fieldsOf(query string) iter.Seq[string] {
	return strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' || c == '\\' })
}

func isSecret(field string) bool { return isNamed(field, secretNames) }

// isNamed reports whether a field's name contains one of some words, and its value is
// long enough to matter.
func isNamed(field string, names []string) bool {
	name, value, _ := strings.Cut(field, "=")
	return len(value) >= shortestSecret && slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(names, word) })
}

// timeNames are the words by which the names of parameters say that the value bounds a
// secret in time: se is Azure's, policy CloudFront's.
var timeNames = []string{
	"expires", "expire", "expiry", "expiration", "exp", "time", "timestamp", "ts", "date", "modified", "valid", "until", "policy", "se",
}

// Unsigned returns a text, such as an address or an entry's element, without the
// signatures of the addresses in it. A query is signed if it has both a secret and a
// time, as those of Patreon (token-hash, token-time), Amazon, Google, Azure and audioboom
// (sid, modified) do. A server that bounds a secret in time must make it again and again,
// so the secret and the time do not tell one file from another: only the rest of the
// address does. A secret without a time may be the file's own name, and stays. The result
// is for comparing, not for requests.
func Unsigned(text string) string {
	var b strings.Builder
	done := 0 // bytes of text in b
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '?')
		if i < 0 {
			break
		}
		at += i + 1
		end := strings.IndexFunc(text[at:], func(c rune) bool { return c <= ' ' || strings.ContainsRune("\"'<>#?", c) })
		if end < 0 {
			end = len(text) - at
		}
		if query := text[at : at+end]; unsigned(query) != query {
			b.WriteString(text[done:at])
			b.WriteString(unsigned(query))
			done = at + end
		}
		at += end
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// unsigned returns a query without its signature.
func unsigned(query string) string {
	var kept []string
	var secret, bounded bool
	for field := range fieldsOf(query) {
		hidden, timed := isSecret(field), isNamed(field, timeNames)
		secret, bounded = secret || hidden && !timed, bounded || timed
		if !hidden && !timed {
			kept = append(kept, field)
		}
	}
	if !secret || !bounded {
		return query
	}
	return strings.Join(kept, "&")
}

// words returns the words of a name such as access_token, feedToken or API-KEY, in lower
// case.
func words(name string) (words []string) {
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
	}
	for i, c := range []byte(name) {
		isUpper, afterLower := 'A' <= c && c <= 'Z', i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z'
		switch isLetter := isUpper || 'a' <= c && c <= 'z'; {
		case !isLetter:
			cut(i)
			start = i + 1
		case isUpper && afterLower:
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return words
}
