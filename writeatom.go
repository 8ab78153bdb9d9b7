package feedhistory

import (
	"cmp"
	"io"
	"time"
)

// WriteAtom writes a document as Atom 1.0. Entries that were read from Atom 1.0
// are written with their own XML, others from what can be read of them.
func WriteAtom(w io.Writer, d *Document) error {
	out := &writer{w: w}
	out.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed")
	writeAttr(&out.b, "xmlns", nsAtom)
	out.b.WriteString(">\n")
	out.element("id", d.identity())
	out.element("title", d.Title)
	if d.Subtitle != "" {
		out.element("subtitle", d.Subtitle)
	}
	out.element("updated", d.lastChange().Format(time.RFC3339Nano))
	for _, p := range d.atomAuthors() {
		out.author(p)
	}
	for _, l := range d.Links {
		out.link("link", l)
	}
	out.flags(d)
	out.headAs(d, Atom)
	out.entries(d, Atom, nsAtom, out.atomEntry)
	out.b.WriteString("</feed>\n")
	out.flush()
	return out.err
}

// atomAuthors returns the feed's authors. Atom requires one unless all entries
// have their own (RFC 4287 §4.1.1), as other formats' do not.
func (d *Document) atomAuthors() []Person {
	if len(d.Authors) == 0 && d.Format != Atom {
		return []Person{{Name: cmp.Or(d.Title, d.identity(), "unknown")}}
	}
	return d.Authors
}

// author writes an author, who must have a name (RFC 4287 §3.2.1): nothing if
// there is nothing to call one by.
func (w *writer) author(p Person) {
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
func (w *writer) atomEntry(e *Entry) {
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
func (w *writer) text(name string, t Text) {
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

// media writes content of a media type, or that is found elsewhere. Markup that
// is not well-formed by itself becomes text.
func (w *writer) media(name string, t Text) {
	if t.Src != "" {
		w.empty(name, "type", t.Type, "src", t.Src) // RFC 4287 §4.1.3.2: then it has no content of its own
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

// headAs writes what else the head section says: all of it in the same format,
// the extensions in another.
func (w *writer) headAs(d *Document, format Format) {
	if d.scope == nil {
		return
	}
	for _, raw := range d.extra {
		if r := newFragment(raw, d.scope, d.Format); d.Format != format {
			if r.native = ""; r.isOwn() {
				continue
			}
		}
		w.b.WriteString(d.scope.standalone(raw, true))
		w.b.WriteByte('\n')
	}
}
