// Package iri handles URLs and IRIs: it resolves references without changing their
// spelling, reads web links, and prepares, compares and redacts the URLs of requests.
// References do not
// go through net/url, which rewrites them (%7E becomes ~): a rewritten URL is another
// identity.
package iri

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
)

// A Reference is a URI or IRI reference in its five components (RFC 3986 §3).
type Reference struct {
	Scheme, Authority, Path, Query, Fragment string
	HasAuthority, HasQuery, HasFragment      bool
}

// String returns the reference as it was before Split.
func (r Reference) String() string {
	var b strings.Builder
	b.Grow(len(r.Scheme) + len(r.Authority) + len(r.Path) + len(r.Query) + len(r.Fragment) + 5)
	if r.Scheme != "" {
		b.WriteString(r.Scheme)
		b.WriteByte(':')
	}
	if r.HasAuthority {
		b.WriteString("//")
		b.WriteString(r.Authority)
	}
	b.WriteString(r.Path)
	if r.HasQuery {
		b.WriteByte('?')
		b.WriteString(r.Query)
	}
	if r.HasFragment {
		b.WriteByte('#')
		b.WriteString(r.Fragment)
	}
	return b.String()
}

// Split splits a reference as the expression of RFC 3986 Appendix B does.
func Split(s string) (r Reference) {
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, r.Fragment, r.HasFragment = s[:i], s[i+1:], true
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, r.Query, r.HasQuery = s[:i], s[i+1:], true
	}
	if i := strings.IndexByte(s, ':'); i > 0 && isScheme(s[:i]) {
		r.Scheme, s = s[:i], s[i+1:]
	}
	if strings.HasPrefix(s, "//") {
		s, r.HasAuthority = s[2:], true
		if i := strings.IndexByte(s, '/'); i >= 0 {
			r.Authority, s = s[:i], s[i:]
		} else {
			r.Authority, s = s, ""
		}
	}
	r.Path = s
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

const maxReference = 64 << 10

// Resolve makes ref absolute by RFC 3986 §5.2, strictly. It never escapes, unescapes or
// changes the case of characters, so IRIs stay IRIs (erratum 1806 of RFC 5005). A
// relative reference stays unchanged without an absolute base, or if it is too long to
// be real.
func Resolve(base, ref string) string {
	if ref != "" && (ref[0] <= ' ' || ref[len(ref)-1] <= ' ') { // hardly ever
		ref = strings.Trim(ref, " \t\r\n")
	}
	if len(ref) > maxReference {
		return ref
	}
	r := Split(ref)
	if r.Scheme != "" && !strings.Contains(r.Path, "/.") {
		return ref
	}
	b := Split(base)
	if r.Scheme == "" && b.Scheme == "" {
		return ref
	}
	return transform(b, r).String()
}

// transform is the algorithm of RFC 3986 §5.2.2, for the base b.
func transform(b, r Reference) Reference {
	switch {
	case r.Scheme != "":
		r.Path = removeDots(r.Path)
		return r
	case r.HasAuthority:
		r.Path = removeDots(r.Path)
	case r.Path == "":
		r.Path = b.Path
		if !r.HasQuery {
			r.Query, r.HasQuery = b.Query, b.HasQuery
		}
		r.Authority, r.HasAuthority = b.Authority, b.HasAuthority
	default:
		if r.Path[0] != '/' {
			r.Path = mergePaths(b, r.Path)
		}
		r.Path = removeDots(r.Path)
		r.Authority, r.HasAuthority = b.Authority, b.HasAuthority
	}
	r.Scheme = b.Scheme
	return r
}

// mergePaths is RFC 3986 §5.2.3: the path replaces the last segment of the base's.
func mergePaths(b Reference, path string) string {
	if b.HasAuthority && b.Path == "" {
		return "/" + path
	}
	return b.Path[:strings.LastIndexByte(b.Path, '/')+1] + path
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

// ForRequest turns an absolute IRI into the URI to request (RFC 3987 §3.1). It escapes
// characters forbidden in a request, but leaves the host's name to net/http.
func ForRequest(iri string) string {
	r := Split(iri)
	r.Path, r.Query = Escape(r.Path), Escape(r.Query)
	r.Fragment, r.HasFragment = "", false
	return r.String()
}

// Writable escapes the characters no IRI may contain, as a request would (RFC 3987
// §3.1). Brackets belong to an address in the host only (RFC 3986 §3.2.2).
func Writable(ref string) string {
	i := strings.IndexFunc(ref, notInIRI)
	if i < 0 {
		return ref
	}
	host := 0
	if at := strings.Index(ref, "//"); at >= 0 && strings.Contains(ref[:at+2], "://") || at == 0 {
		host = len(ref)
		if end := strings.IndexAny(ref[at+2:], "/?#"); end >= 0 {
			host = at + 2 + end
		}
	}
	var b strings.Builder
	for i, c := range ref {
		if notInIRI(c) && (i >= host || c != '[' && c != ']') {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func notInIRI(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune("<>\"{}|\\^`[]", c) }

// URI turns an absolute IRI into a URI, which RSS has instead (RFC 3987 §3.1); "" if it is
// none.
func URI(ref string) string {
	r := Split(Writable(ref))
	if r.Scheme == "" || r.HasAuthority && r.Authority == "" || r.Authority+r.Path+r.Query == "" {
		return ""
	}
	if r.Authority != "" && !isASCII(r.Authority) {
		host, err := idna.Lookup.ToASCII(r.Authority)
		if err != nil {
			return ""
		}
		r.Authority = host
	}
	r.Path, r.Query, r.Fragment = Escape(r.Path), Escape(r.Query), Escape(r.Fragment)
	return r.String()
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= 0x80 }) < 0
}

// WithoutFragment returns a URL without its fragment.
func WithoutFragment(u string) string {
	u, _, _ = strings.Cut(u, "#")
	return u
}

// IsHTTP reports whether a URL is absolute and its scheme is http or https.
func IsHTTP(u string) bool {
	return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://")
}
