package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// References in HTML are made absolute in place; nothing else changes. The HTML is read
// once, as html.Tokenizer reads it, and without a copy.

// urlAttributes are the HTML attributes with references, the same as gofeed's.
var urlAttributes = []string{
	"action", "background", "cite", "codebase", "data", "href", "poster", "src", "usemap",
}

// IsReference reports whether the HTML attribute with this name has a reference.
func IsReference(name string) bool { return slices.Contains(urlAttributes, name) }

// urlAttribute returns the index of an attribute in urlAttributes; -1 if it is not one.
func urlAttribute(name string) int {
	for i, attr := range urlAttributes {
		if len(attr) == len(name) && attr[0] == name[0]|0x20 && strings.EqualFold(attr, name) {
			return i
		}
	}
	return -1
}

// Absolute returns HTML with its references resolved against base.
func Absolute(body, base string) string {
	var b strings.Builder
	from := htmlBase{base: base}
	done, tags := 0, tagReader{html: body}
	for tags.next() {
		for _, ref := range tags.room[:tags.refs] {
			abs, end := from.absolute(body, ref)
			if end == 0 {
				continue
			}
			if b.Len() == 0 {
				b.Grow(len(body) + len(body)/4 + 64)
			}
			b.WriteString(body[done:ref.begin])
			b.WriteString(abs)
			done = end
		}
	}
	if done == 0 {
		return body
	}
	b.WriteString(body[done:])
	return b.String()
}

// An htmlBase is the base of the references in a text.
type htmlBase struct {
	base            string
	split           bool
	root, directory string // the prefixes, as HTML, for making /path and path absolute; "" if none suffices
}

// absolute returns the HTML for making the value of an attribute absolute, and the end
// of the part of the body it replaces; 0 if the value stays.
func (b *htmlBase) absolute(body string, ref tagReference) (abs string, end int) {
	raw := body[ref.begin:ref.end]
	amps := strings.Count(raw, "&")
	if iri.IsHTTP(raw) && !strings.Contains(raw, "/.") && (amps == 0 || !strings.Contains(raw, "&#")) {
		return "", 0
	}
	if ref.quoted && (amps == 0 || amps == strings.Count(raw, "&amp;")) { // no other escapes, so the parts are visible
		if prefix := b.prefix(raw); prefix != "" {
			return prefix, ref.begin
		}
	}
	value := unescapeValue(raw)
	if abs = iri.Resolve(b.base, value); abs == strings.TrimSpace(value) {
		return "", 0
	}
	if abs = html.EscapeString(abs); !ref.quoted {
		abs = `"` + abs + `"`
	}
	return abs, ref.end
}

// prefix returns the part of the base, as HTML, to put before a reference to make it
// absolute; "" if a prefix is not enough.
func (b *htmlBase) prefix(ref string) string {
	if ref == "" || ref[len(ref)-1] <= ' ' || strings.Contains(ref, "/.") {
		return ""
	}
	if !b.split {
		b.read()
	}
	if ref[0] == '/' && !strings.HasPrefix(ref, "//") {
		return b.root
	}
	for i := 0; isLetter(ref[0]); i++ {
		if i == len(ref) || ref[i] == '/' || ref[i] == '?' || ref[i] == '#' {
			return b.directory
		} else if ref[i] == ':' {
			return ""
		}
	}
	return ""
}

// read splits the base.
func (b *htmlBase) read() {
	b.split = true
	parts := iri.Split(b.base)
	if parts.Scheme == "" || parts.Path == "" || strings.Contains(parts.Path, "/.") {
		return
	}
	root := len(parts.Scheme) + len(":")
	if parts.HasAuthority {
		root += len("//") + len(parts.Authority)
	}
	b.root = html.EscapeString(b.base[:root])
	b.directory = html.EscapeString(b.base[:root+strings.LastIndexByte(parts.Path, '/')+1])
}

// unescapeValue unescapes an attribute's value, whose character references differ
// slightly from those of text.
func unescapeValue(raw string) string {
	if !strings.ContainsAny(raw, "&\r") {
		return raw
	}
	z := html.NewTokenizer(strings.NewReader(`<a b="` + strings.ReplaceAll(raw, `"`, "&#34;") + `">`))
	z.Next()
	_, value, _ := z.TagAttr()
	return string(value)
}

// FirstImage returns the source of the first image in any of the texts, and whether
// there is one.
func FirstImage(texts ...string) (src string, ok bool) {
	for _, text := range texts {
		tags := tagReader{html: text}
		for tags.next() {
			if !strings.EqualFold(tags.name, "img") {
				continue
			}
			for _, ref := range tags.room[:tags.refs] {
				if urlAttributes[ref.attr] == "src" {
					return unescapeValue(text[ref.begin:ref.end]), true
				}
			}
		}
	}
	return "", false
}

// A tagReader finds the start tags with references in HTML.
type tagReader struct {
	html string
	at   int // the place to continue
	name string
	refs int             // the number of references in the tag
	room [9]tagReference // the references: of several attributes with one name, the first
}

// A tagReference is the value of an attribute, without its quotes.
type tagReference struct {
	attr       int // in urlAttributes
	begin, end int
	quoted     bool
}

// next moves to the next start tag with references.
func (t *tagReader) next() bool {
	for {
		n := strings.IndexByte(t.html[t.at:], '<')
		if n < 0 || t.at+n+1 == len(t.html) {
			return false
		}
		t.at += n + 1
		switch c := t.html[t.at]; {
		case isLetter(c):
			if !t.tag() {
				return false
			}
			if isRawText(t.name) {
				t.skipRawText()
			}
			if t.refs > 0 {
				return true
			}
		case c == '/' && t.at+1 < len(t.html) && isLetter(t.html[t.at+1]):
			t.at++
			if !t.tag() {
				return false
			}
		case strings.HasPrefix(t.html[t.at:], "!--"):
			t.skipComment()
		case c == '/', c == '!', c == '?':
			t.skipTo('>')
		}
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSpace(c byte) bool { return htmlClass[c]&htmlSpace != 0 }

// The classes of bytes in a tag.
const (
	htmlSpace = 1 << iota
	tagEnd    // ends the name of a tag
	nameEnd   // ends the name of an attribute
)

var htmlClass = [256]uint8{
	' ': htmlSpace | tagEnd | nameEnd, '\n': htmlSpace | tagEnd | nameEnd, '\t': htmlSpace | tagEnd | nameEnd,
	'\r': htmlSpace | tagEnd | nameEnd, '\f': htmlSpace | tagEnd | nameEnd,
	'/': tagEnd | nameEnd, '>': tagEnd | nameEnd, '=': nameEnd,
}

// skipTo moves past the next c, or to the end.
func (t *tagReader) skipTo(c byte) {
	if n := strings.IndexByte(t.html[t.at:], c); n >= 0 {
		t.at += n + 1
	} else {
		t.at = len(t.html)
	}
}

// skipComment moves past a comment. It ends with "-->" or "--!>"; at its very beginning,
// fewer hyphens are enough.
func (t *tagReader) skipComment() {
	first := t.at + len("!--")
	for i := first; ; {
		rest := strings.TrimLeft(t.html[i:], "-")
		hyphens := len(t.html) - len(rest) - i
		switch end := i + hyphens; {
		case strings.HasPrefix(rest, ">") && (hyphens >= 2 || i == first):
			t.at = end + len(">")
			return
		case strings.HasPrefix(rest, "!>") && hyphens >= 2:
			t.at = end + len("!>")
			return
		}
		n := strings.Index(rest, "--")
		if n < 0 {
			t.at = len(t.html)
			return
		}
		i += hyphens + n
	}
}

// tag reads a tag from its name on, and reports whether it ends.
func (t *tagReader) tag() bool {
	s, i := t.html, t.at
	for i < len(s) && htmlClass[s[i]]&tagEnd == 0 {
		i++
	}
	t.name, t.refs = s[t.at:i], 0
	for seen := 0; i < len(s); {
		if isSpace(s[i]) {
			i++
			continue
		}
		if s[i] == '>' {
			t.at = i + 1
			return true
		}
		name := i
		if s[i] == '=' { // a name may begin with it
			i++
		}
		for i < len(s) && htmlClass[s[i]]&nameEnd == 0 {
			i++
		}
		attr := urlAttribute(s[name:i])
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		var ref tagReference
		switch {
		case i < len(s) && s[i] == '/':
			i++
		case i < len(s) && s[i] == '=':
			i, ref = t.value(i + 1)
		}
		if attr >= 0 && seen&(1<<attr) == 0 {
			if seen |= 1 << attr; ref.begin > 0 {
				ref.attr = attr
				t.room[t.refs] = ref
				t.refs++
			}
		}
	}
	return false
}

// value reads an attribute's value after the equals sign, and returns where it ends,
// including its quotes.
func (t *tagReader) value(i int) (end int, ref tagReference) {
	s := t.html
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	if i == len(s) || s[i] == '>' {
		return i, ref
	}
	if s[i] == '"' || s[i] == '\'' {
		n := strings.IndexByte(s[i+1:], s[i])
		if n < 0 {
			return len(s), ref
		}
		end = i + 1 + n
		return end + 1, tagReference{begin: i + 1, end: end, quoted: true}
	}
	for end = i; end < len(s) && !isSpace(s[end]) && s[end] != '>'; {
		end++
	}
	return end, tagReference{begin: i, end: end}
}

// isRawText reports whether there are no tags in an element.
func isRawText(name string) bool {
	if len(name) < len("xmp") {
		return false
	}
	for _, raw := range &rawText {
		if len(raw) == len(name) && raw[0] == name[0]|0x20 && strings.EqualFold(raw, name) {
			return true
		}
	}
	return false
}

var rawText = [...]string{
	"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp",
}

// skipRawText moves to the end tag of such an element.
func (t *tagReader) skipRawText() {
	for t.at < len(t.html) {
		n := strings.Index(t.html[t.at:], "</")
		if n < 0 || strings.EqualFold(t.name, "plaintext") {
			t.at = len(t.html)
			return
		}
		begin := t.at + n
		t.at = begin + len("</")
		if end := t.at + len(t.name); end < len(t.html) && strings.EqualFold(t.html[t.at:end], t.name) &&
			(isSpace(t.html[end]) || t.html[end] == '/' || t.html[end] == '>') {
			t.at = begin
			return
		}
	}
}
