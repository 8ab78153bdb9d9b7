package feedhistory

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A reference is a URI or IRI reference in its five components (RFC 3986 §3).
// net/url is not used here, since it rewrites what it parses (%7E becomes ~),
// and a rewritten URL is another identity.
type reference struct {
	scheme, authority, path, query, fragment string
	hasAuthority, hasQuery, hasFragment      bool
}

// split takes a reference apart as the expression of RFC 3986 Appendix B does.
func split(s string) (r reference) {
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, r.fragment, r.hasFragment = s[:i], s[i+1:], true
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, r.query, r.hasQuery = s[:i], s[i+1:], true
	}
	if i := strings.IndexByte(s, ':'); i > 0 && isScheme(s[:i]) {
		r.scheme, s = s[:i], s[i+1:]
	}
	if strings.HasPrefix(s, "//") {
		s, r.hasAuthority = s[2:], true
		if i := strings.IndexByte(s, '/'); i >= 0 {
			r.authority, s = s[:i], s[i:]
		} else {
			r.authority, s = s, ""
		}
	}
	r.path = s
	return r
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return s != ""
}

func (r reference) String() string {
	var b strings.Builder
	b.Grow(len(r.scheme) + len(r.authority) + len(r.path) + len(r.query) + len(r.fragment) + 5)
	if r.scheme != "" {
		b.WriteString(r.scheme)
		b.WriteByte(':')
	}
	if r.hasAuthority {
		b.WriteString("//")
		b.WriteString(r.authority)
	}
	b.WriteString(r.path)
	if r.hasQuery {
		b.WriteByte('?')
		b.WriteString(r.query)
	}
	if r.hasFragment {
		b.WriteByte('#')
		b.WriteString(r.fragment)
	}
	return b.String()
}

const maxReference = 64 << 10

// resolve makes ref absolute by RFC 3986 §5.2, strictly. Characters are never
// escaped, unescaped or changed in case, so that IRIs stay IRIs (erratum 1806
// of RFC 5005). Without an absolute base a relative reference stays as it is,
// and so does one that is too long to be meant.
func resolve(base, ref string) string {
	ref = trim(ref)
	if len(ref) > maxReference {
		return ref
	}
	r := split(ref)
	if r.scheme != "" && !strings.Contains(r.path, "/.") {
		return ref
	}
	b := split(base)
	if r.scheme == "" && b.scheme == "" {
		return ref
	}
	return transform(b, r).String()
}

// transform is the algorithm of RFC 3986 §5.2.2, for the base b.
func transform(b, r reference) reference {
	switch {
	case r.scheme != "":
		r.path = removeDots(r.path)
		return r
	case r.hasAuthority:
		r.path = removeDots(r.path)
	case r.path == "":
		r.path = b.path
		if !r.hasQuery {
			r.query, r.hasQuery = b.query, b.hasQuery
		}
		r.authority, r.hasAuthority = b.authority, b.hasAuthority
	default:
		if r.path[0] != '/' {
			r.path = mergePaths(b, r.path)
		}
		r.path = removeDots(r.path)
		r.authority, r.hasAuthority = b.authority, b.hasAuthority
	}
	r.scheme = b.scheme
	return r
}

// mergePaths is RFC 3986 §5.2.3: all but the last segment of the base's path stays.
func mergePaths(b reference, path string) string {
	if b.hasAuthority && b.path == "" {
		return "/" + path
	}
	return b.path[:strings.LastIndexByte(b.path, '/')+1] + path
}

// removeDots is RFC 3986 §5.2.4.
func removeDots(path string) string {
	if !strings.Contains(path, "/.") && !strings.HasPrefix(path, ".") {
		return path
	}
	out := make([]byte, 0, len(path))
	for in := path; in != ""; {
		switch {
		case strings.HasPrefix(in, "../"):
			in = in[3:]
		case strings.HasPrefix(in, "./"):
			in = in[2:]
		case strings.HasPrefix(in, "/./"), in == "/.":
			in = cmp.Or(in[2:], "/")
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = cmp.Or(in[3:], "/")
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
		case in == ".", in == "..":
			in = ""
		default:
			end := strings.IndexByte(in[1:], '/') + 1
			if end == 0 {
				end = len(in)
			}
			out, in = append(out, in[:end]...), in[end:]
		}
	}
	return string(out)
}

// requestURL turns an absolute IRI into the URI that goes on the wire
// (RFC 3987 §3.1), with all escaped that a request may not have; the host's
// name is left to net/http.
func requestURL(iri string) string {
	r := split(iri)
	r.path, r.query = fetch.Escape(r.path), fetch.Escape(r.query)
	r.fragment, r.hasFragment = "", false
	return r.String()
}

// writable returns a reference as it may be written: the characters that no IRI
// has are escaped, as they would be in a request (RFC 3987 §3.1).
func writable(ref string) string {
	i := strings.IndexFunc(ref, notInIRI)
	if i < 0 {
		return ref
	}
	var b strings.Builder
	for _, c := range ref {
		if notInIRI(c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func notInIRI(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune("<>\"{}|\\^`", c) }

func withoutFragment(u string) string {
	u, _, _ = strings.Cut(u, "#")
	return u
}
