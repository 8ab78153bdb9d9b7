package feedxml

import (
	"cmp"
	"encoding/base64"
	"html"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Markup is XML being written, an element a line.
type Markup struct{ strings.Builder }

// Element writes an element with text. Attributes may follow the name, and are as in Open.
func (m *Markup) Element(name, text string, attrs ...string) {
	m.Open(name, attrs...)
	m.WriteByte('>')
	xmlscan.WriteText(&m.Builder, text)
	tag, _, _ := strings.Cut(name, " ")
	m.WriteString("</")
	m.WriteString(tag)
	m.WriteString(">\n")
}

// Title writes a title of RSS: escaped twice if it would be read as HTML, or as references.
func (m *Markup) Title(text string) {
	if markup.IsInline(text) || xmlscan.Unescape(text) != text {
		text = html.EscapeString(text)
	}
	m.Element("title", text)
}

// Empty writes an element without content. The attributes are names, each followed by its
// value.
func (m *Markup) Empty(name string, attrs ...string) {
	m.Open(name, attrs...)
	m.WriteString("/>\n")
}

// Open writes a start tag without its final ">". The attributes are names, each followed
// by its value; it omits those whose value is empty.
func (m *Markup) Open(name string, attrs ...string) {
	m.WriteByte('<')
	m.WriteString(name)
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			xmlscan.WriteAttr(&m.Builder, attrs[i], attrs[i+1])
		}
	}
}

// A Link is a link of Atom, with the attributes it may have.
type Link struct{ Rel, Href, Type, Title, HrefLang, Length string }

// Link writes a link of Atom under the given element name, without attributes Atom does
// not allow.
func (m *Markup) Link(name string, l Link) {
	if l.Title = xmlscan.Trim(l.Title); !IsMediaType(l.Type) {
		l.Type = ""
	}
	if !IsLanguage(l.HrefLang) {
		l.HrefLang = ""
	}
	if !isNumber(l.Length) {
		l.Length = ""
	}
	m.Empty(name, "rel", l.Rel, "href", iri.Writable(l.Href), "type", l.Type, "hreflang", l.HrefLang, "title", l.Title, "length", l.Length)
}

// Enclosure writes a link as RSS's element for media, which needs all its attributes.
func (m *Markup) Enclosure(l Link) {
	if !isNumber(l.Length) {
		l.Length = "0"
	}
	if !IsMediaType(l.Type) {
		l.Type = "application/octet-stream"
	}
	m.Empty("enclosure", "url", cmp.Or(iri.URI(l.Href), iri.Writable(l.Href)), "length", l.Length, "type", l.Type)
}

// Category writes a category of Atom under the given element name.
func (m *Markup) Category(name string, c Category) {
	m.Empty(name, "term", c.Term, "scheme", c.Scheme, "label", c.Label)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// A Person is a person construct of Atom.
type Person struct{ Name, URI, Email string }

// Person writes a person under the given element name; attributes may follow it. A person must have a name (RFC
// 4287 §3.2.1): the email address or URI if there is none; without either, Person writes
// nothing.
func (m *Markup) Person(element string, p Person) {
	name := cmp.Or(p.Name, p.Email, p.URI)
	if name == "" {
		return
	}
	m.WriteString("<" + element + ">")
	m.Element("name", name)
	if p.URI != "" {
		m.Element("uri", iri.Writable(p.URI))
	}
	if email := strings.TrimPrefix(p.Email, "mailto:"); IsEmail(email) {
		m.Element("email", email)
	}
	tag, _, _ := strings.Cut(element, " ")
	m.WriteString("</" + tag + ">\n")
}

// AtomAuthor is the name of an author where the default namespace is not Atom's.
const AtomAuthor = `author xmlns="` + Atom + `"`

// A Construct is a text construct or content of Atom (RFC 4287 §3.1, §4.1.3).
type Construct struct{ Type, Body, Src, Base, Lang string }

// Text writes a construct under the given element name. The error says where markup is not
// well-formed; then Text writes nothing.
func (m *Markup) Text(name string, t Construct) error {
	if kind := t.Type; (kind == "html" || kind == "text" || kind == "") && t.Src == "" { // the same without a copy
		m.Element(name, t.Body, "type", kind, "xml:base", t.Base, "xml:lang", t.Lang)
		return nil
	}
	body, err := t.Written()
	if err == nil {
		m.Open(name, "type", t.Type, "src", t.Src, "xml:base", t.Base, "xml:lang", t.Lang)
		m.WriteString(">" + body + "</" + name + ">\n")
	}
	return err
}

// Written returns the content of the element for a construct (RFC 4287 §3.1.1, §4.1.3.3).
// The error says where markup is not well-formed.
func (t Construct) Written() (string, error) {
	kind := strings.ToLower(t.Type)
	switch {
	case kind == "xhtml":
		div := "<div xmlns=\"" + XHTML + "\">" + t.Body + "</div>"
		return div, xmlscan.WellFormed(div)
	case t.Src != "" && t.Body == "":
		return "", nil
	case IsXMLType(kind):
		return t.Body, xmlscan.WellFormed(t.Body)
	case t.isBytes():
		return base64.StdEncoding.EncodeToString([]byte(t.Body)), nil
	}
	var b strings.Builder
	xmlscan.WriteText(&b, t.Body)
	return b.String(), nil
}

// isMarkup reports whether the body is HTML, or XHTML written as HTML.
func (t Construct) isMarkup() bool { return t.Type == "html" || t.Type == "xhtml" }

// Plain returns the text without markup. It separates blocks by a newline, and leaves
// out invisible elements, such as scripts and styles.
func (t Construct) Plain() string {
	if !t.isMarkup() {
		return t.Body
	}
	return markup.Plain(t.Body)
}

// Absolute returns the body with absolute references.
func (t Construct) Absolute() string {
	if !t.isMarkup() || t.Base == "" {
		return t.Body
	}
	return markup.Absolute(t.Body, t.Base)
}

// AbsoluteAndImage is Absolute, with the source of the first image in it, and whether there is one.
func (t Construct) AbsoluteAndImage() (body, image string, ok bool) {
	if !t.isMarkup() || t.Base == "" {
		image, ok = markup.FirstImage(t.Body)
		return t.Body, image, ok
	}
	return markup.AbsoluteAndImage(t.Body, t.Base)
}

// AsHTML returns the text as HTML with absolute references.
func (t Construct) AsHTML() string {
	if t.isMarkup() {
		return t.Absolute()
	}
	if n := len(t.Body); !xmlscan.IsDense(n, n) {
		if escaped := html.EscapeString(t.Body); !xmlscan.IsDense(n, len(escaped)) {
			return escaped
		}
	}
	var b strings.Builder
	b.Grow(len(t.Body))
	for i := range len(t.Body) { // only those before which HTML would see something else
		c, next := t.Body[i:i+1], t.Body[i+1:min(len(t.Body), i+2)]
		if (c == "&" || c == "<") && next != "" && (isAlphanumeric(rune(next[0])) || strings.Contains("#/!?", next)) {
			c = html.EscapeString(c)
		}
		b.WriteString(c)
	}
	return b.String()
}

// isBytes reports whether the media type is neither text nor XML, so that Atom has the
// content in base64.
func (t Construct) isBytes() bool {
	kind := strings.ToLower(t.Type)
	return IsMedia(kind) && !IsXMLType(kind) && !strings.HasPrefix(kind, "text/")
}

// MediaType returns the type of content elsewhere, which must be a media type (RFC 4287
// §4.1.3.2); "" if it is unknown.
func MediaType(kind string) string {
	switch {
	case kind == "html":
		return "text/html"
	case kind == "xhtml":
		return "application/xhtml+xml"
	case IsMediaType(kind):
		return kind
	}
	return ""
}
