package xmlscan

import (
	"cmp"
	"encoding/base64"
	"math"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// The constructs of Atom, as the elements of an entry are read again to be repaired.

// base returns the base at the current element.
func (r *reviser) base() string { return r.bases.Resolve("", r.Bases(), math.MaxInt) }

// construct reads the current element as a text construct or content of Atom.
func (r *reviser) construct() Construct {
	kind, _ := r.Attr("", "type")
	mode, _ := r.Attr("", "mode")
	t := Construct{Type: vocab.TextType(kind, mode), Base: r.base()}
	t.Lang, _ = r.Lang()
	content := r.Local() == "content"
	if src, ok := r.Attr("", "src"); ok && content {
		t.Src = iri.Resolve(t.Base, src)
	}
	if vocab.IsMedia(t.Type) && (!content || !strings.Contains(t.Type, "/")) {
		t.Type = "text"
	}
	return r.Content(t, mode, r.plainText, r.base, r.textOrMarkup)
}

// Content reads the current element as the content of a construct, by the construct's type
// and the mode of Atom 0.3 (RFC 4287 §3.1.1, §4.1.3.3). The functions read the element's
// characters, its base, and a text whose markup the publisher may not have escaped.
func (c *Cursor) Content(t Construct, mode string, text, base func() string, unescaped func(Construct) Construct) Construct {
	switch {
	case mode == "base64":
		t.Body = decodeBase64(text())
	case t.Type == "xhtml":
		t.Body, t.Base = c.HTML(true, base)
	case !vocab.IsMedia(t.Type):
		return unescaped(t)
	case vocab.IsXMLType(t.Type):
		t.Body = Trim(c.Inner())
	case t.isBytes():
		t.Body = decodeBase64(text())
	default:
		t.Body = text()
	}
	return t
}

// textOrMarkup reads the current element's characters or, if there are elements among
// them, its markup.
func (r *reviser) textOrMarkup(t Construct) Construct {
	start, base := r.start, r.base()
	if t.Body = r.plainText(); !r.nested {
		return t
	}
	c := r.within(start)
	own, bases := len(c.Bases()), BaseChain{}
	t.Type = "html"
	t.Body, t.Base = c.HTML(false, func() string { return bases.Resolve(base, c.Bases()[own:], math.MaxInt) })
	return t
}

// absolute returns the markup with absolute references.
func (t Construct) absolute() string {
	if t.Base == "" || t.Type == "text" {
		return t.Body
	}
	return markup.Absolute(t.Body, t.Base)
}

// decodeBase64 decodes a text, or returns it unchanged if it is not base64.
func decodeBase64(text string) string {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return text
	}
	return string(data)
}

// LinkAttrs returns the attributes of the current element, a link of Atom, as published, and
// whether there is a href.
func (c *Cursor) LinkAttrs() (link Link, hasHref bool) {
	for _, a := range c.Attrs() {
		if a.Space != "" {
			continue
		}
		switch a.Local {
		case "rel":
			link.Rel = Trim(a.Value())
		case "href":
			link.Href, hasHref = a.Value(), true
		case "type":
			link.Type = a.Value()
		case "title":
			link.Title = a.Value()
		case "hreflang":
			link.HrefLang = a.Value()
		case "length":
			link.Length = a.Value()
		}
	}
	return link, hasHref
}

// links reads the current element as a link of Atom, once for each of its relations.
func (r *reviser) links() (links []Link) {
	base := r.base()
	l, hasHref := r.LinkAttrs()
	if !hasHref {
		l.Href = r.plainText()
	}
	if l.Href = iri.Resolve(base, l.Href); l.Href == "" {
		return nil
	}
	for name := range strings.FieldsSeq(cmp.Or(l.Rel, "alternate")) {
		if strings.EqualFold(name, "alternate") {
			name = "alternate"
		}
		l.Rel = name
		links = append(links, l)
	}
	return links
}

// Person reads the current element as a person construct (RFC 4287 §3.2); base returns the
// base at the current element. The uri is called url in Atom 0.3, and homepage elsewhere.
func (c *Cursor) Person(base func() string) (p Person) {
	for depth := c.Depth(); c.Child(depth); {
		switch at := base(); vocab.AtomName(c.Local()) {
		case "name":
			p.Name = Trim(c.ElementText())
		case "email":
			p.Email = Trim(c.ElementText())
		case "uri", "url", "homepage":
			p.URI = iri.Resolve(at, Trim(c.ElementText()))
		}
	}
	return p
}
