package xmlscan

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// The constructs of Atom, as the elements of an entry are read again to be repaired.

// A scopedBase is an xml:base attribute, by its place, and the base it resolves to.
type scopedBase struct {
	at  int
	url string
}

// base returns the base at the current element. It keeps what the attributes in scope
// resolve to.
func (r *reviser) base() (base string) {
	attributes := r.Bases()
	n := min(len(attributes), len(r.bases))
	for n > 0 && r.bases[n-1].at != attributes[n-1].At {
		n--
	}
	if r.bases = r.bases[:n]; n > 0 {
		base = r.bases[n-1].url
	}
	for _, b := range attributes[n:] {
		base = iri.Resolve(base, b.Ref)
		r.bases = append(r.bases, scopedBase{b.At, base})
	}
	return base
}

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
	switch {
	case mode == "base64":
		t.Body = DecodeBase64(r.plainText())
	case t.Type == "xhtml":
		t.Body, t.Base = r.HTML(true, r.base)
	case !vocab.IsMedia(t.Type):
		return r.textOrMarkup(t)
	case vocab.IsXMLType(t.Type):
		t.Body = Trim(r.Inner())
	case t.isBytes():
		t.Body = DecodeBase64(r.plainText())
	default:
		t.Body = r.plainText()
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
	own := len(c.Bases())
	t.Type = "html"
	t.Body, t.Base = c.HTML(false, func() string {
		inner := base
		for _, b := range c.Bases()[own:] {
			inner = iri.Resolve(inner, b.Ref)
		}
		return inner
	})
	return t
}

// absolute returns the markup with absolute references.
func (t Construct) absolute() string {
	if t.Base == "" || t.Type == "text" {
		return t.Body
	}
	return markup.Absolute(t.Body, t.Base)
}

// DecodeBase64 decodes a text, or returns it unchanged if it is not base64.
func DecodeBase64(text string) string {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return text
	}
	return string(data)
}

// links reads the current element as a link of Atom, once for each of its relations.
func (r *reviser) links() (links []Link) {
	l, rel := Link{}, ""
	base := r.base()
	for _, a := range r.Attrs() {
		if a.Space != "" {
			continue
		}
		switch value := a.Value(); a.Local {
		case "rel":
			rel = value
		case "href":
			l.Href = value
		case "type":
			l.Type = value
		case "title":
			l.Title = value
		case "hreflang":
			l.HrefLang = value
		case "length":
			l.Length = value
		}
	}
	if _, ok := r.Attr("", "href"); !ok {
		l.Href = r.plainText()
	}
	if l.Href = iri.Resolve(base, l.Href); l.Href == "" {
		return nil
	}
	for name := range strings.FieldsSeq(cmp.Or(Trim(rel), "alternate")) {
		if strings.EqualFold(name, "alternate") {
			name = "alternate"
		}
		l.Rel = name
		links = append(links, l)
	}
	return links
}

// person reads the current element as a person construct. The uri is called url in Atom
// 0.3, and homepage elsewhere.
func (r *reviser) person() (p Person) {
	for depth := r.Depth(); r.Child(depth); {
		switch base := r.base(); vocab.AtomName(r.Local()) {
		case "name":
			p.Name = r.plainText()
		case "email":
			p.Email = r.plainText()
		case "uri", "url", "homepage":
			p.URI = iri.Resolve(base, r.plainText())
		}
	}
	return p
}
