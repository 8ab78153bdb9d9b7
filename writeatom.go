package feedhistory

import (
	"cmp"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// atomHead writes the beginning of an Atom document. Language is omitted if there are
// entries: they have their own, and would inherit this one.
func (w *xmlWriter) atomHead(d *Document, updated time.Time, hasEntries bool) {
	w.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed")
	xmlscan.WriteAttr(&w.b, "xmlns", vocab.Atom)
	if d.Language != "" && !hasEntries {
		xmlscan.WriteAttr(&w.b, "xml:lang", d.Language)
	}
	w.b.WriteString(">\n")
	w.element("id", d.identity())
	w.element("title", d.Title)
	if d.Subtitle != "" {
		w.element("subtitle", d.Subtitle)
	}
	w.element("updated", updated.Format(time.RFC3339Nano))
	for _, p := range d.atomAuthors() {
		w.author(p)
	}
	for _, l := range d.Links {
		w.link("link", l)
	}
	if d.Icon != "" && (d.Format != Atom || d.scope == nil) { // otherwise headAs writes it as published
		w.element("icon", iri.Writable(d.Icon))
	}
	w.flags(d)
	w.headAs(d, Atom)
}

// atomAuthors returns the feed's authors. Atom requires one unless all entries have
// their own (RFC 4287 §4.1.1), which entries of other formats do not.
func (d *Document) atomAuthors() []Person {
	if len(d.Authors) == 0 && d.Format != Atom {
		return []Person{{Name: cmp.Or(d.Title, d.identity(), "unknown")}}
	}
	return d.Authors
}

// author writes an author, who must have a name (RFC 4287 §3.2.1). It uses the email
// address or URI if there is none, and writes nothing if there is neither.
func (w *xmlWriter) author(p Person) {
	name := cmp.Or(p.Name, p.Email, p.URI)
	if name == "" {
		return
	}
	w.b.WriteString("<author>")
	w.element("name", name)
	if p.URI != "" {
		w.element("uri", p.URI)
	}
	if p.Email != "" {
		w.element("email", p.Email)
	}
	w.b.WriteString("</author>\n")
}

// atomEntry writes an entry of another format.
func (w *xmlWriter) atomEntry(e *Entry) {
	item := w.decode(e)
	others := e.extensions()
	w.b.WriteString("<entry" + others.attrs + ">\n")
	w.element("id", e.ID)
	w.text("title", e.Title())
	w.element("updated", e.lastChange().Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		w.element("published", e.Published.Format(time.RFC3339Nano))
	}
	for _, person := range item.Authors {
		w.author(Person{Name: person.Name, Email: person.Email, URI: person.URL})
	}
	for _, category := range item.Categories {
		if category != "" {
			w.empty("category", "term", category)
		}
	}
	for _, l := range e.Links {
		w.link("link", l)
	}
	w.text("summary", e.Summary())
	w.text("content", e.Content())
	w.b.WriteString(others.elements + "</entry>\n")
}

// text writes a text construct. A title is never left out.
func (w *xmlWriter) text(name string, t Text) {
	switch {
	case t == Text{} && name != "title":
	case t.Src != "", isMedia(t.Type):
		w.media(name, t)
	case t.Type == TextHTML || t.Type == TextXHTML:
		w.element(name+` type="html"`, t.absolute())
	default:
		w.element(name, t.Body)
	}
}

// media writes content of a media type, or content at another URL. Ill-formed markup
// becomes text.
func (w *xmlWriter) media(name string, t Text) {
	if t.Src != "" {
		w.empty(name, "type", t.Type, "src", t.Src) // RFC 4287 §4.1.3.2: the element is empty then
		return
	}
	body, err := t.atomBody()
	if err != nil {
		t.Type = "text/plain"
		body, _ = t.atomBody()
	}
	w.open(name, "type", t.Type)
	w.b.WriteString(">" + body + "</" + name + ">\n")
}

// headAs writes the other elements of the head section: all of them in their own
// format, only the extensions in another.
func (w *xmlWriter) headAs(d *Document, format Format) {
	if d.scope == nil {
		return
	}
	for _, raw := range d.extra {
		if r := newFragment(raw, d.scope, d.Format); d.Format != format {
			if r.native = ""; r.isOwn() {
				continue
			}
		}
		w.b.WriteString(d.scope.Standalone(raw, true))
		w.b.WriteByte('\n')
	}
}
