// Package markup reads HTML. In the texts of feeds, it makes references absolute where
// they are, finds images, and returns the plain text; in web pages, it finds the links to
// feeds.
package markup

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/html"
)

// References in HTML are made absolute in place; nothing else changes. The HTML is read
// once, as html.Tokenizer reads it, and without a copy.

// urlAttributes are the HTML attributes with references, the shortest first: gofeed's, and those
// of pictures in several sizes, pictures loaded late, long descriptions, buttons, tracking, and SVG.
var urlAttributes = [...]string{
	src: "src", href: "href", "cite", "data", "ping", "action", "poster", "srcset", "usemap", "codebase", "data-src", "longdesc",
	"background", "formaction", "xlink:href", "data-srcset", "imagesrcset",
}

// The indexes of the usual ones.
const src, href = 0, 1

// isSet reports whether an attribute has a list of references, each perhaps followed by a size.
func isSet(attr string) bool { return strings.HasSuffix(attr, "srcset") }

// Resolve returns an HTML attribute's value with its references made absolute. A reference to
// a place in the same text, such as a footnote, stays; so does a ping to several addresses.
func Resolve(name, base, value string) string {
	switch {
	case !slices.Contains(urlAttributes[:], name):
		return value
	case isSet(name):
		return resolveSet(base, value)
	case stays(name, value):
		return value
	}
	return iri.Resolve(base, value)
}

// stays reports whether a value is a reference to a place in the same text, or more than one.
func stays(attr, value string) bool {
	if attr == "ping" && strings.ContainsAny(strings.Trim(value, " \t\r\n\f"), " \t\r\n\f") {
		return true
	}
	for value != "" && isSpace(value[0]) {
		value = value[1:]
	}
	return strings.HasPrefix(value, "#")
}

// resolveSet makes the references in a srcset absolute, which its commas and sizes separate. Those
// to a place in the same text stay.
func resolveSet(base, value string) string {
	var b strings.Builder
	for rest := value; rest != ""; {
		url := strings.TrimLeft(rest, " \t\r\n\f,")
		b.WriteString(rest[:len(rest)-len(url)])
		if url == "" {
			break
		}
		end := strings.IndexAny(url, " \t\r\n\f")
		if end < 0 {
			end = len(url)
		}
		bare := strings.TrimRight(url[:end], ",")
		if rest = url[len(bare):]; strings.HasPrefix(bare, "#") {
			b.WriteString(bare)
		} else {
			b.WriteString(iri.Resolve(base, bare))
		}
		if end == len(bare) { // a size follows, and no comma is in it
			size := strings.IndexByte(rest, ',')
			if size < 0 {
				size = len(rest)
			}
			b.WriteString(rest[:size])
			rest = rest[size:]
		}
	}
	return b.String()
}

// urlAttribute returns the index of an attribute in urlAttributes; -1 if it is not one.
func urlAttribute(name string) int {
	switch name {
	case "href":
		return href
	case "src":
		return src
	}
	for i, attr := range urlAttributes {
		if len(attr) > len(name) {
			break
		}
		if len(attr) == len(name) && attr[0] == name[0]|0x20 && strings.EqualFold(attr, name) {
			return i
		}
	}
	return -1
}

// Absolute returns HTML with its references resolved against base.
func Absolute(body, base string) string {
	body, _, _ = absolute(body, base, false)
	return body
}

// AbsoluteAndImage is Absolute, with the result of FirstImage for the text.
func AbsoluteAndImage(body, base string) (text, image string, ok bool) {
	return absolute(body, base, true)
}

func absolute(body, base string, wantsImage bool) (text, image string, ok bool) {
	if strings.IndexByte(body, '=') < 0 || strings.IndexByte(body, '<') < 0 {
		return body, "", false
	}
	var b strings.Builder
	from := htmlBase{base: base}
	done, tags, source := 0, tagReader{html: body}, tagReference{}
	for tags.next() {
		for _, ref := range tags.room[:tags.refs] {
			abs, end := from.absolute(body, ref)
			isFirst := wantsImage && !ok && ref.isImage(tags.name())
			if isFirst {
				source, ok = ref, true
				source.begin += b.Len() - done // in the result
			}
			if end > 0 {
				if b.Len() == 0 {
					b.Grow(len(body) + len(body)/4 + 64)
				}
				b.WriteString(body[done:ref.begin])
				b.WriteString(abs)
				done = end
			}
			if isFirst {
				source.end += b.Len() - done
			}
		}
	}
	text = body
	if done > 0 {
		b.WriteString(body[done:])
		text = b.String()
	}
	if ok {
		image = source.value(text)
	}
	return text, image, ok
}

// isImage reports whether a reference is the source of an image, in a tag of this name.
func (r tagReference) isImage(tag string) bool { return r.attr == src && strings.EqualFold(tag, "img") }

// value returns the meaning of a value in a text, which may have got quotes.
func (r tagReference) value(text string) string {
	raw := text[r.begin:r.end]
	if !r.quoted && strings.HasPrefix(raw, `"`) {
		raw = raw[1 : len(raw)-1]
	}
	return unescapeValue(raw)
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
	attr := urlAttributes[ref.attr]
	if ref.attr > href && isSet(attr) {
		return b.absoluteSet(raw, ref)
	}
	escaped, dots := strings.IndexByte(raw, '&') >= 0, strings.Contains(raw, "/.")
	if iri.IsHTTP(raw) && !dots && (!escaped || !strings.Contains(raw, "&#")) {
		return "", 0
	}
	if ref.quoted && attr != "ping" && !dots && (!escaped || strings.Count(raw, "&") == strings.Count(raw, "&amp;")) { // the parts are visible
		if prefix := b.prefix(raw); prefix != "" {
			return prefix, ref.begin
		}
	}
	if stays(attr, raw) {
		return "", 0
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

// absoluteSet is absolute for a srcset.
func (b *htmlBase) absoluteSet(raw string, ref tagReference) (abs string, end int) {
	value := unescapeValue(raw)
	if abs = resolveSet(b.base, value); abs == value {
		return "", 0
	}
	if abs = html.EscapeString(abs); !ref.quoted {
		abs = `"` + abs + `"`
	}
	return abs, ref.end
}

// prefix returns the part of the base, as HTML, to put before a reference to make it
// absolute; "" if a prefix is not enough. No segment but the first may begin with a dot.
func (b *htmlBase) prefix(ref string) string {
	if ref == "" || ref[len(ref)-1] <= ' ' {
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
	directory := b.base[:root+strings.LastIndexByte(parts.Path, '/')+1]
	if b.directory = html.EscapeString(directory); b.directory == directory {
		b.root = directory[:root]
	} else {
		b.root = html.EscapeString(directory[:root])
	}
}

// unescapeValue unescapes an attribute's value, whose character references differ
// slightly from those of text.
func unescapeValue(raw string) string {
	if strings.IndexByte(raw, '&') < 0 && strings.IndexByte(raw, '\r') < 0 {
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
		if !mayHaveImage(text) {
			continue
		}
		tags := tagReader{html: text}
		for tags.next() {
			for _, ref := range tags.room[:tags.refs] {
				if ref.isImage(tags.name()) {
					return ref.value(text), true
				}
			}
		}
	}
	return "", false
}

// mayHaveImage reports whether there is the beginning of an image's tag in a text. It is cheaper than
// reading tags.
func mayHaveImage(text string) bool {
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '<')
		if n < 0 {
			return false
		}
		if i += n + 1; i+len("img") <= len(text) && text[i]|0x20 == 'i' && strings.EqualFold(text[i:i+len("img")], "img") {
			return true
		}
	}
}

// A tagReader finds the start tags with references in HTML.
type tagReader struct {
	html             string
	at               int                              // the place to continue
	nameAt, nameEnds int                              // the place of the tag's name
	refs             int                              // the number of references in the tag
	room             [len(urlAttributes)]tagReference // the references: of several attributes with one name, the first
}

func (t *tagReader) name() string { return t.html[t.nameAt:t.nameEnds] }

// A tagReference is the value of an attribute, without its quotes.
type tagReference struct {
	attr       int // in urlAttributes
	begin, end int
	quoted     bool
}

// next moves to the next start tag with references.
func (t *tagReader) next() bool {
	s := t.html
	for i := t.at; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 || i+n+1 == len(s) {
			return false
		}
		i += n + 1
		c := s[i]
		isEnd := c == '/' && i+1 < len(s) && isLetter(s[i+1])
		if !isEnd && !isLetter(c) {
			i = t.skipOther(i)
			continue
		}
		begin := i
		for i++; i < len(s) && htmlClass[s[i]]&tagEnd == 0; i++ {
		}
		t.nameAt, t.nameEnds = begin, i
		if t.refs = 0; i < len(s) && s[i] == '>' {
			i++
		} else if i = t.attributes(i); i < 0 {
			return false
		}
		if isEnd {
			continue
		}
		if htmlClass[c]&rawStart != 0 && isRawText(t.name()) {
			i = t.skipRawText(i)
		}
		if t.refs > 0 {
			t.at = i
			return true
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
	rawStart  // begins the name of an element without tags
)

var htmlClass = [256]uint8{
	' ': htmlSpace | tagEnd | nameEnd, '\n': htmlSpace | tagEnd | nameEnd, '\t': htmlSpace | tagEnd | nameEnd,
	'\r': htmlSpace | tagEnd | nameEnd, '\f': htmlSpace | tagEnd | nameEnd,
	'/': tagEnd | nameEnd, '>': tagEnd | nameEnd, '=': nameEnd,
	'i': rawStart, 'n': rawStart, 'p': rawStart, 's': rawStart, 't': rawStart, 'x': rawStart,
	'I': rawStart, 'N': rawStart, 'P': rawStart, 'S': rawStart, 'T': rawStart, 'X': rawStart,
}

// skipOther returns where the markup ends that begins at i, after its "<", and is no tag.
func (t *tagReader) skipOther(i int) int {
	switch c := t.html[i]; {
	case strings.HasPrefix(t.html[i:], "!--"):
		return t.skipComment(i)
	case c == '/', c == '!', c == '?':
		if n := strings.IndexByte(t.html[i:], '>'); n >= 0 {
			return i + n + 1
		}
		return len(t.html)
	}
	return i
}

// skipComment returns where the comment at i ends. It ends with "-->" or "--!>"; at its very beginning,
// fewer hyphens are enough.
func (t *tagReader) skipComment(i int) int {
	first := i + len("!--")
	for i = first; ; {
		rest := strings.TrimLeft(t.html[i:], "-")
		hyphens := len(t.html) - len(rest) - i
		switch end := i + hyphens; {
		case strings.HasPrefix(rest, ">") && (hyphens >= 2 || i == first):
			return end + len(">")
		case strings.HasPrefix(rest, "!>") && hyphens >= 2:
			return end + len("!>")
		}
		n := strings.Index(rest, "--")
		if n < 0 {
			return len(t.html)
		}
		i += hyphens + n
	}
}

// attributes reads the rest of a tag from i on, and returns where it ends; -1 if it does not.
func (t *tagReader) attributes(i int) int {
	s := t.html
	for seen := 0; i < len(s); {
		if isSpace(s[i]) || s[i] == '/' {
			i++
			continue
		}
		if s[i] == '>' {
			return i + 1
		}
		if begin, attr := usualValue(s, i); begin > 0 {
			n := strings.IndexByte(s[begin:], '"')
			if n < 0 {
				return -1
			}
			if i = begin + n + 1; seen&(1<<attr) == 0 {
				seen |= 1 << attr
				t.room[t.refs] = tagReference{attr, begin, begin + n, true}
				t.refs++
			}
			continue
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
	return -1
}

// usualValue returns where the value of an attribute at i begins, if it is one with a reference, as they
// are usually written; zero if it is not.
func usualValue(s string, i int) (begin, attr int) {
	const hrefStart, srcStart = `href="`, `src="`
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, hrefStart):
		return i + len(hrefStart), href
	case strings.HasPrefix(rest, srcStart):
		return i + len(srcStart), src
	}
	return 0, 0
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
	if len(name) >= len(rawText) {
		return false
	}
	for _, raw := range rawText[len(name)] {
		if raw[0] == name[0]|0x20 && strings.EqualFold(raw, name) {
			return true
		}
	}
	return false
}

// rawText are the names of these elements, by their lengths.
var rawText = [...][]string{
	3: {"xmp"}, 5: {"style", "title"}, 6: {"iframe", "script"}, 7: {"noembed"}, 8: {"noframes", "noscript", "textarea"}, 9: {"plaintext"},
}

// skipRawText returns where the end tag of such an element begins, whose content is at i.
func (t *tagReader) skipRawText(i int) int {
	for i < len(t.html) {
		n := strings.Index(t.html[i:], "</")
		if n < 0 || strings.EqualFold(t.name(), "plaintext") {
			break
		}
		begin := i + n
		i = begin + len("</")
		if end := i + t.nameEnds - t.nameAt; end < len(t.html) && strings.EqualFold(t.html[i:end], t.name()) &&
			(isSpace(t.html[end]) || t.html[end] == '/' || t.html[end] == '>') {
			return begin
		}
	}
	return len(t.html)
}

// MayBeRelative reports whether markup may have a relative reference.
func MayBeRelative(markup string) bool {
	for range relativeReferences(markup) {
		return true
	}
	return false
}

// relativeReferences yields the places of possible relative references in markup,
// escaped or not: the equals signs of possible attributes. It is cheap, and rather
// yields too many.
func relativeReferences(markup string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; ; {
			n := strings.IndexByte(markup[i:], '=')
			if n < 0 {
				return
			}
			i += n
			named, isSet := endsInReference(markup[:i])
			equals := i
			i++
			if !named {
				continue
			}
			value := afterQuote(markup[i:])
			rest, ok := afterAbsolute(value, isSet)
			if i = len(markup) - len(rest); !ok && !yield(equals) { // a long value is read only once
				return
			}
		}
	}
}

// endsInReference reports whether text ends in the name of an attribute with a
// reference, or with a set of them.
func endsInReference(text string) (named, isSet bool) {
	text = strings.TrimRight(text, " \t\r\n\f")
	isSet = endsIn(text, "srcset")
	ends := func(attr string) bool { return endsIn(text, attr) }
	return isSet || slices.ContainsFunc(urlAttributes[:], ends) || slices.ContainsFunc(otherAttributes[:], ends), isSet
}

// otherAttributes are the attributes with references of XML itself and of extensions.
var otherAttributes = [...]string{"base", "resource", "uri", "url"}

func endsIn(text, name string) bool {
	n := len(text) - len(name)
	return n >= 0 && strings.EqualFold(text[n:], name)
}

// afterQuote removes white space and the quote before an attribute's value.
func afterQuote(value string) string {
	value = strings.TrimLeft(value, " \t\r\n\f\"'\\")
	if strings.HasPrefix(value, "&") {
		for _, quote := range [...]string{"&quot;", "&#34;", "&#39;", "&apos;"} {
			if rest, ok := strings.CutPrefix(value, quote); ok {
				return rest
			}
		}
	}
	return value
}

// afterAbsolute returns the text after the absolute URLs at its beginning, one or a set, and
// whether there are no others in the value.
func afterAbsolute(text string, isSet bool) (rest string, ok bool) {
	for {
		n, ok := absoluteURL(text)
		if !ok {
			return text, false
		}
		url := text[:n]
		if text = text[n:]; !isSet {
			return text, true
		}
		if text = strings.TrimLeft(text, " \t\r\n\f"); !strings.HasSuffix(url, ",") { // a size may follow
			text = strings.TrimLeft(strings.TrimLeft(text, ".0123456789"), "wxh \t\r\n\f")
			if !strings.HasPrefix(text, ",") {
				return text, true
			}
		}
		if text = strings.TrimLeft(text, " \t\r\n\f,"); text == "" || strings.IndexByte("\"'\\&<>", text[0]) >= 0 {
			return text, true
		}
	}
}

// absoluteURL reports whether text begins with an absolute URL unchanged by resolving,
// and its length.
func absoluteURL(text string) (n int, ok bool) {
	if !iri.IsHTTP(text) {
		return 0, false
	}
	if n = strings.IndexAny(text, " \t\r\n\f\"'<>"); n < 0 {
		n = len(text)
	}
	return n, !strings.Contains(text[:n], "/.")
}

// CountRelative returns the largest number of relative references markup may have, in
// attributes, elements and escaped markup. It counts paths separately from references
// that keep the whole base, such as #top.
func CountRelative(markup string) (paths, others int) {
	others = hidden(markup) + strings.Count(markup, "equals;")
	paths = strings.Count(markup, "link>") + strings.Count(markup, "uri>") + strings.Count(markup, "url>")
	counted := 0 // the commas before it are counted
	for equals := range relativeReferences(markup) {
		value := afterQuote(markup[equals+1:])
		if _, isSet := endsInReference(markup[:equals]); isSet {
			begin := max(len(markup)-len(value), counted) // to count a comma only once
			counted = len(markup)
			if n := strings.IndexAny(markup[begin:], "\"'<>"); n >= 0 {
				counted = begin + n
			}
			paths += 1 + strings.Count(markup[begin:counted], ",")
		} else if value == "" || strings.IndexByte("#?&> ", value[0]) >= 0 {
			others++
		} else {
			paths++
		}
	}
	return paths, others
}

// hidden counts the character references that could be part of an attribute's name, or
// of the text after it: those to ASCII, except for the characters usually escaped.
func hidden(markup string) (n int) {
	for {
		_, rest, ok := strings.Cut(markup, "&#")
		if !ok {
			return n
		}
		digits, base := rest, 10
		if rest != "" && rest[0]|0x20 == 'x' {
			digits, base = rest[1:], 16
		}
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789abcdefABCDEF"))]
		if c, err := strconv.ParseUint(digits, base, 32); err == nil && c < 0x80 && !strings.ContainsRune(`"&'<>`, rune(c)) {
			n++
		}
		markup = rest
	}
}

// Plain returns the text of HTML without markup. It separates blocks by a newline and
// leaves out invisible elements such as scripts and styles.
func Plain(body string) string {
	if !strings.ContainsAny(body, "<&") {
		return body
	}
	var b strings.Builder
	hidden, apart := "", false
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			if hidden != "" {
				continue
			}
			text := z.Text()
			if len(bytes.TrimSpace(text)) > 0 && apart {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				text, apart = bytes.TrimLeft(text, " \t\r\n"), false
			}
			if !apart {
				b.Write(text)
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch {
			case hidden != "":
				if string(name) == hidden && kind == html.EndTagToken {
					hidden = ""
				}
			case kind == html.StartTagToken && isHidden(string(name)):
				hidden = string(name)
			case isBlock(string(name)):
				apart = true
			}
		}
	}
}

// isHidden reports whether browsers do not show an element's text. The tokenizer finds
// no tags in such elements.
func isHidden(name string) bool {
	switch name {
	case "script", "style", "title", "noembed", "noframes", "iframe", "textarea":
		return true
	}
	return false
}

// isBlock reports whether an element begins on a new line.
func isBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "dialog", "div", "dl", "dt",
		"fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
		"main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul":
		return true
	}
	return false
}

// IsVoid reports whether an HTML element has no end tag.
func IsVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// IsInline reports whether text has markup, all of it elements for words within a line,
// each with its end tag: the title "H<sub>2</sub>O", but not "Use <div> in HTML".
func IsInline(text string) bool {
	if !strings.Contains(text, "</") {
		return false
	}
	var open []string
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return len(open) == 0
		case html.StartTagToken:
			name, _ := z.TagName()
			if !slices.Contains(inline, string(name)) || len(open) == 8 {
				return false
			}
			open = append(open, string(name))
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return false
			}
			open = open[:len(open)-1]
		case html.TextToken:
		default:
			return false
		}
	}
}

var inline = []string{"a", "abbr", "b", "cite", "code", "del", "em", "i", "ins", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "tt", "u"}
