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
	"slices"
	"strconv"
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
	if i := strings.IndexByte(s, ':'); i > 0 && IsScheme(s[:i]) {
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

// IsScheme reports whether text is a URL's scheme (RFC 3986 §3.1).
func IsScheme(s string) bool {
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
	switch hasDots := strings.Contains(ref, "/."); { // most references have one of these forms
	case hasDots:
	case IsHTTP(ref):
		return ref
	case strings.HasPrefix(ref, "/") && !strings.HasPrefix(ref, "//") && IsHTTP(base):
		return base[:authorityEnd(base)] + ref
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

// IsOn reports whether a URL has the given authority, which is not empty.
func IsOn(url, authority string) bool {
	if !IsHTTP(url) {
		return Split(url).Authority == authority
	}
	rest, ok := strings.CutPrefix(url[strings.IndexByte(url, '/')+len("//"):], authority)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?' || rest[0] == '#')
}

// authorityEnd returns where the authority of a URL ends, for which IsHTTP is true.
func authorityEnd(url string) int {
	end := strings.Index(url, "//") + len("//")
	for end < len(url) && url[end] != '/' && url[end] != '?' && url[end] != '#' {
		end++
	}
	return end
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

// Address returns the URL under which a link's target is requested and remembered. It has no
// fragment and no session number: some servers write a new number into each link.
func Address(link string) string {
	path, query, hasQuery := strings.Cut(withoutSession(WithoutFragment(link)), "?")
	if !hasQuery {
		return path
	}
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(parameter string) bool {
		name, _, _ := strings.Cut(strings.ToLower(parameter), "=")
		return name == "jsessionid" || name == "phpsessid"
	})
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// withoutSession returns a link without the number of a session in its path, as servlet
// containers write it.
func withoutSession(link string) string {
	const name = "jsessionid="
	if !strings.Contains(link, ";") {
		return link
	}
	var b strings.Builder
	for i, part := range strings.Split(link, ";") {
		if i == 0 {
			b.WriteString(part)
		} else if len(part) < len(name) || !strings.EqualFold(part[:len(name)], name) {
			b.WriteString(";" + part)
		} else if end := strings.IndexAny(part, "/?"); end >= 0 {
			b.WriteString(part[end:])
		}
	}
	return b.String()
}

// Post returns an http or https URL without its scheme and without campaign parameters;
// everything else stays as it is. It returns "" for any other text.
func Post(url string) string {
	if !IsHTTP(url) {
		return ""
	}
	_, rest, _ := strings.Cut(url, "://")
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	path, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		all := strings.Split(query, "&")
		kept := slices.DeleteFunc(slices.Clone(all), IsCampaign)
		if len(kept) > 0 || len(all) == len(kept) {
			path += "?" + strings.Join(kept, "&")
		}
	}
	if hasFragment && !IsCampaign(fragment) {
		path += "#" + fragment
	}
	return path
}

// IsCampaign reports whether a query parameter tells the site where its reader comes from.
func IsCampaign(parameter string) bool {
	name, _, _ := strings.Cut(strings.ToLower(parameter), "=")
	return strings.HasPrefix(name, "utm_") || slices.Contains([]string{"fbclid", "gclid", "mc_cid", "mc_eid", "igshid", "yclid", "msclkid"}, name)
}

// IsHTTP reports whether a URL is absolute and its scheme is http or https.
func IsHTTP(u string) bool {
	return strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://")
}

// OtherScheme returns an http URL with https, and the other way round; "" for any other text.
func OtherScheme(u string) string {
	if rest, ok := strings.CutPrefix(u, "http://"); ok {
		return "https://" + rest
	}
	if rest, ok := strings.CutPrefix(u, "https://"); ok {
		return "http://" + rest
	}
	return ""
}

// A Step is the difference between two URLs with one number, or month, changed.
type Step struct {
	at    int  // the index of the changing number
	By    int  // the difference of the numbers, or the number of months
	Month bool // the number is a month, and the one before it the year, or it has both
}

// numbersOf cuts the path and query of a URL into texts and the numbers between them. It
// returns none for a URL possibly signed, or with a secret.
func numbersOf(url string) (texts, numbers []string) {
	r := Split(url)
	for field := range strings.SplitSeq(strings.ToLower(r.Query), "&") {
		name, _, _ := strings.Cut(field, "=")
		for _, word := range []string{"token", "sig", "expire", "key", "auth", "secret", "hash", "session", "pass", "nonce", "hmac", "code"} {
			if strings.Contains(name, word) {
				return nil, nil
			}
		}
	}
	path := strings.Index(url, r.Authority) + len(r.Authority)
	text, rest := url[:path], url[path:]
	for rest != "" {
		i := strings.IndexAny(rest, "0123456789")
		if i < 0 {
			break
		}
		n := len(rest) - i - len(strings.TrimLeft(rest[i:], "0123456789"))
		texts, numbers = append(texts, text+rest[:i]), append(numbers, rest[i:i+n])
		text, rest = "", rest[i+n:]
	}
	return append(texts, text+rest), numbers
}

// StepBetween returns the step from one URL to another, if they differ in one number, or
// in a month and its year.
func StepBetween(from, to string) (Step, bool) {
	texts, a := numbersOf(from)
	others, b := numbersOf(to)
	if len(a) == 0 || strings.Join(texts, "\n") != strings.Join(others, "\n") {
		return Step{}, false
	}
	at, changed := -1, 0
	for i := range a {
		if a[i] != b[i] {
			at, changed = i, changed+1
		}
	}
	if at < 0 || changed > 2 || changed == 2 && a[at-1] == b[at-1] {
		return Step{}, false
	}
	before, wasMonth := months(a, texts, at)
	after, isMonth := months(b, texts, at)
	if wasMonth && isMonth {
		return Step{at, after - before, true}, true
	}
	x, err := strconv.Atoi(a[at])
	y, err2 := strconv.Atoi(b[at])
	return Step{at, y - x, false}, changed == 1 && err == nil && err2 == nil
}

// months returns the number of months counted by a number, or by it and the year before it.
func months(numbers, texts []string, at int) (int, bool) {
	number := numbers[at]
	switch {
	case len(number) == 6:
	case len(number) == 2 && at > 0 && len(numbers[at-1]) == 4 && (texts[at] == "/" || texts[at] == "-"):
		number = numbers[at-1] + number
	default:
		return 0, false
	}
	n, err := strconv.Atoi(number)
	year, month := n/100, n%100
	return 12*year + month - 1, err == nil && year >= 1980 && year < 2100 && month >= 1 && month <= 12
}

// From returns the URL one step from another.
func (s Step) From(url string) (string, bool) {
	texts, numbers := numbersOf(url)
	if s.at >= len(numbers) {
		return "", false
	}
	old := numbers[s.at]
	if s.Month {
		n, ok := months(numbers, texts, s.at)
		if n += s.By; !ok || n < 12*1980 {
			return "", false
		}
		numbers[s.at] = fmt.Sprintf("%02d", n%12+1)
		if year := strconv.Itoa(n / 12); len(old) == 6 {
			numbers[s.at] = year + numbers[s.at]
		} else {
			numbers[s.at-1] = year
		}
	} else {
		n, err := strconv.Atoi(old)
		if n += s.By; err != nil || n < 0 || n == 0 && s.By == -1 {
			return "", false
		}
		numbers[s.at] = strconv.Itoa(n)
		switch padded := old[0] == '0'; {
		case padded:
			numbers[s.at] = fmt.Sprintf("%0*d", len(old), n)
		case len(numbers[s.at]) < len(old): // 9 or 09?
			return "", false
		}
	}
	var b strings.Builder
	for i, text := range texts {
		b.WriteString(text)
		if i < len(numbers) {
			b.WriteString(numbers[i])
		}
	}
	return b.String(), true
}

// Directory returns the URL of the directory of a document, without userinfo and
// query. References with a path resolve against it as against the document.
func Directory(url string) string {
	url, _, _ = strings.Cut(Redact(url), "#")
	url, _, _ = strings.Cut(url, "?")
	start := strings.Index(url, "//") + 2
	if start == 1 {
		start = 0
	}
	if slash := strings.LastIndexByte(url[start:], '/'); slash >= 0 {
		return url[:start+slash+1]
	}
	return url
}
