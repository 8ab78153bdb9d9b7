package feedhistory

import (
	"io"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An xmlWriter writes XML. It keeps the first error.
type xmlWriter struct {
	w   io.Writer
	b   strings.Builder
	err error
}

// flush writes out the buffer, so memory stays small.
func (w *xmlWriter) flush() {
	if w.err == nil {
		_, w.err = io.WriteString(w.w, w.b.String())
	}
	w.b.Reset()
}

// native writes an entry with its own XML.
func (w *xmlWriter) native(e *Entry) {
	w.b.Write(e.XML())
	w.b.WriteByte('\n')
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
func (w *xmlWriter) link(name string, l Link) {
	w.empty(name, "rel", l.Rel, "href", iri.Writable(l.Href), "type", l.Type, "hreflang", l.HrefLang, "title", l.Title, "length", l.Length)
}

// flags writes the history flags and tombstones of a head section.
func (w *xmlWriter) flags(d *Document) {
	if d.Complete {
		w.empty("fh:complete", "xmlns:fh", vocab.History)
	}
	if d.Archive {
		w.empty("fh:archive", "xmlns:fh", vocab.History)
	}
	w.coverage(d.Coverage)
	for _, t := range d.Deleted {
		when := ""
		if !t.When.IsZero() {
			when = t.When.Format(time.RFC3339Nano)
		}
		w.empty("at:deleted-entry", "xmlns:at", vocab.Tombstones, "ref", t.Ref, "when", when)
	}
}

// element writes an element with text on a line of its own. Attributes may follow the
// name.
func (w *xmlWriter) element(name, text string) {
	w.b.WriteString("<" + name + ">")
	xmlscan.WriteText(&w.b, text)
	tag, _, _ := strings.Cut(name, " ")
	w.b.WriteString("</" + tag + ">\n")
}

// empty writes an element without content. The attributes are names, each followed by
// its value.
func (w *xmlWriter) empty(name string, attrs ...string) {
	w.open(name, attrs...)
	w.b.WriteString("/>\n")
}

// open writes a start tag without its final ">". The attributes are names, each
// followed by its value; it omits those whose value is empty.
func (w *xmlWriter) open(name string, attrs ...string) {
	w.b.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			xmlscan.WriteAttr(&w.b, attrs[i], attrs[i+1])
		}
	}
}
