package feedhistory

import (
	"io"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An xmlWriter writes XML. It keeps the first error.
type xmlWriter struct {
	w        io.Writer
	b        xmlscan.Markup
	verbatim bool // see Writer.Verbatim
	err      error
}

// flush writes out the buffer, so memory stays small.
func (w *xmlWriter) flush() {
	if w.err == nil {
		_, w.err = io.WriteString(w.w, w.b.String())
	}
	w.b.Reset()
}

// decode returns the entry in gofeed's form. The result may be empty, because texts,
// times and links are known without it.
func (w *xmlWriter) decode(e *Entry) *gofeed.Item {
	item, err := e.Decode()
	if item == nil {
		return &gofeed.Item{}
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	return item
}

// link writes an Atom link, under the given element name.
func (w *xmlWriter) link(name string, l Link) { w.b.Link(name, xmlscan.Link(l)) }

// person writes a person, under the given element name.
func (w *xmlWriter) person(element string, p Person) { w.b.Person(element, xmlscan.Person(p)) }

// flags writes the history flags and tombstones of a head section.
func (w *xmlWriter) flags(d *Document) {
	if d.Complete {
		w.b.Empty("fh:complete", "xmlns:fh", vocab.History)
	}
	if d.Archive {
		w.b.Empty("fh:archive", "xmlns:fh", vocab.History)
	}
	w.coverage(d.Coverage)
	for _, t := range d.Deleted {
		when := ""
		if !t.When.IsZero() {
			when = t.When.Format(time.RFC3339Nano)
		}
		w.b.Empty("at:deleted-entry", "xmlns:at", vocab.Tombstones, "ref", t.Ref, "when", when)
	}
}

// coverage writes a Coverage.
func (w *xmlWriter) coverage(c *Coverage) {
	if c == nil {
		return
	}
	w.b.WriteString("<m:mirror")
	xmlscan.WriteAttr(&w.b.Builder, "xmlns:m", vocab.Coverage)
	if c.Of != "" {
		xmlscan.WriteAttr(&w.b.Builder, "of", c.Of)
	}
	xmlscan.WriteAttr(&w.b.Builder, "kind", c.Kind.String())
	xmlscan.WriteAttr(&w.b.Builder, "verdict", c.Verdict.String())
	if !c.AsOf.IsZero() {
		xmlscan.WriteAttr(&w.b.Builder, "as-of", c.AsOf.UTC().Format(time.RFC3339))
	}
	w.b.WriteByte('>')
	for _, g := range c.Gaps {
		w.b.WriteString("<m:gap")
		xmlscan.WriteAttr(&w.b.Builder, "reason", g.word())
		if g.URL != "" {
			xmlscan.WriteAttr(&w.b.Builder, "href", iri.Redact(g.URL))
		}
		w.b.WriteString("/>")
	}
	w.b.WriteString("</m:mirror>\n")
}
