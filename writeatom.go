package feedhistory

import (
	"cmp"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// atomHead writes the beginning of an Atom document. Language is omitted if there are
// entries: they have their own, and would inherit this one.
func (w *xmlWriter) atomHead(d *Document, updated time.Time, hasEntries bool, authors []Person) {
	w.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed")
	xmlscan.WriteAttr(&w.b.Builder, "xmlns", vocab.Atom)
	if d.Language != "" && !hasEntries {
		xmlscan.WriteAttr(&w.b.Builder, "xml:lang", d.Language)
	}
	w.b.WriteString(">\n")
	w.b.Element("id", d.identity())
	w.b.Element("title", d.Title)
	if d.Subtitle != "" {
		w.b.Element("subtitle", d.Subtitle)
	}
	w.b.Element("updated", updated.Format(time.RFC3339Nano))
	for _, p := range authors {
		w.person("author", p)
	}
	alternates := map[string]bool{}
	for _, l := range d.Links {
		if kind := l.Type + " " + l.HrefLang; l.Rel == RelAlternate && alternates[kind] && !w.verbatim {
			l.Rel = "related" // RFC 4287 §4.1.1: one alternate of a type and language
		} else if l.Rel == RelAlternate {
			alternates[kind] = true
		}
		w.link("link", l)
	}
	if d.Icon != "" && (d.Format != Atom || d.scope == nil) { // otherwise headAs writes it as published
		w.b.Element("icon", iri.Writable(d.Icon))
	}
	w.flags(d)
	w.headAs(d, Atom)
}

// nominalAuthor stands for the author whom Atom requires, of the feed or of each entry
// (RFC 4287 §4.1.1), and who is unknown.
func (d *Document) nominalAuthor() Person {
	return Person{Name: cmp.Or(d.Title, d.identity(), "unknown")}
}

// atomEntry writes an entry of another format.
func (w *xmlWriter) atomEntry(e *Entry) {
	item := w.decode(e)
	others := e.extensions()
	w.b.WriteString("<entry" + others.attrs + ">\n")
	w.b.Element("id", e.ID)
	w.text("title", e.Title())
	w.b.Element("updated", e.lastChange().Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		w.b.Element("published", e.Published.Format(time.RFC3339Nano))
	}
	for _, person := range item.Authors {
		w.person("author", Person{Name: person.Name, Email: person.Email, URI: person.URL})
	}
	for _, category := range item.Categories {
		if category != "" {
			w.b.Empty("category", "term", category)
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
	case t.Src != "", vocab.IsMedia(t.Type):
		w.media(name, t)
	case t.Type == TextHTML || t.Type == TextXHTML:
		w.b.Element(name+` type="html"`, t.absolute())
	default:
		w.b.Element(name, t.Body)
	}
}

// media writes content of a media type, or content at another URL. Ill-formed markup
// becomes text.
func (w *xmlWriter) media(name string, t Text) {
	if t.Src != "" {
		w.b.Empty(name, "type", xmlscan.MediaType(t.Type), "src", t.Src) // RFC 4287 §4.1.3.2: the element is empty then
		return
	}
	body, err := xmlscan.Construct(t).Written()
	if err != nil {
		t.Type = "text/plain"
		body, _ = xmlscan.Construct(t).Written()
	}
	w.b.Open(name, "type", t.Type)
	w.b.WriteString(">" + body + "</" + name + ">\n")
}

// headAs writes the other elements of the head section: all of them in their own
// format, only the extensions in another.
func (w *xmlWriter) headAs(d *Document, format Format) {
	if d.scope == nil {
		return
	}
	var elements strings.Builder
	for _, raw := range d.extra {
		if r := feedxml.Fragment(raw, d.scope, feedxml.Format(d.Format)); d.Format != format {
			if r.Native = ""; r.IsOwn() {
				continue
			}
		}
		elements.WriteString(d.scope.Standalone(raw, true) + "\n")
	}
	if w.verbatim {
		w.b.WriteString(elements.String())
	} else if elements.Len() > 0 {
		w.b.WriteString(xmlscan.RepairHead(elements.String(), format == RSS))
	}
}
