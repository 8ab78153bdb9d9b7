package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Write writes a document in its own format: RSS as RSS 2.0, and Atom as Atom 1.0. A
// document in another format, such as JSON Feed, becomes Atom.
func Write(w io.Writer, d *Document) error {
	format := Atom
	if d != nil && d.Format == RSS {
		format = RSS
	}
	return NewWriter(w, format, d).Close()
}

// WriteAtom writes a document as Atom 1.0. Entries read from Atom 1.0 keep their own
// XML; others are converted.
func WriteAtom(w io.Writer, d *Document) error { return NewWriter(w, Atom, d).Close() }

// WriteRSS writes a document as RSS 2.0, with the elements of RFC 5005 as in its
// Appendix B. Items read from RSS 2.0 keep their own XML; others are converted.
func WriteRSS(w io.Writer, d *Document) error { return NewWriter(w, RSS, d).Close() }

// A Writer writes one Atom or RSS document while its entries arrive, so a long
// document need not fit in memory. Make one with NewWriter.
//
// What was read leniently is written as its format requires: an entry of the document's
// own format keeps its XML as far as that is valid. IDs stay as published, even those that
// are no IRIs.
type Writer struct {
	// Verbatim keeps the entries' own XML even where it is not valid. Other entries are
	// converted element by element, and not made valid as a whole.
	Verbatim bool

	xml    xmlWriter
	author string // the nominal author of entries without one, if the head names nobody
	doc    *Document
	format Format
	begun  bool
	closed bool
}

// NewWriter returns a Writer of a document in the given format, Atom or RSS. The head
// section and the first entries are doc's; Add writes more. A nil doc is an empty one.
//
// If doc has neither Updated, Published nor LastModified, the document's update time is
// that of doc's newest entry or, if it has none, of the newest among those of the first
// Add. In Atom, an entry without a time has its document's, by the same order; the last
// resort is 1970, because Atom requires a time.
func NewWriter(w io.Writer, format Format, doc *Document) *Writer {
	d := &Writer{xml: xmlWriter{w: w}, doc: doc, format: format}
	if doc == nil {
		d.doc = new(Document)
	}
	switch {
	case w == nil:
		d.xml.err = errors.New("feedhistory: NewWriter: the io.Writer is nil")
	case format != Atom && format != RSS:
		d.xml.err = fmt.Errorf("feedhistory: NewWriter: documents are written as Atom or RSS, not as %v", format)
	}
	return d
}

// Add writes entries, in the given order. Entries of the document's own format keep
// their XML; others are converted. After an error, nothing more is written.
func (w *Writer) Add(entries ...*Entry) error {
	if w.closed {
		return errors.New("feedhistory: Writer: Add after Close")
	}
	w.begin(entries)
	w.write(entries)
	return w.xml.err
}

// Close ends the document. It does not close the underlying io.Writer. It returns the
// first error of all calls; a second call does nothing else.
func (w *Writer) Close() error {
	if w.closed {
		return w.xml.err
	}
	w.begin(nil)
	w.closed = true
	if w.format == RSS {
		w.xml.b.WriteString("</channel></rss>\n")
	} else {
		w.xml.b.WriteString("</feed>\n")
	}
	w.xml.flush()
	return w.xml.err
}

// begin writes everything before the first entries to add, once.
func (w *Writer) begin(added []*Entry) {
	if w.begun || w.xml.err != nil {
		return
	}
	w.begun, w.xml.verbatim = true, w.Verbatim
	updated := w.doc.lastChange(w.doc.Entries)
	if len(w.doc.Entries) == 0 {
		updated = w.doc.lastChange(added)
	}
	if w.format == RSS {
		w.xml.rssHead(w.doc, updated)
	} else {
		w.xml.atomHead(w.doc, updated, len(w.doc.Entries)+len(added) > 0, w.authors(added))
	}
	w.write(w.doc.Entries)
}

// authors returns the authors of an Atom document's head section. If there are none, the
// first entries decide whether it needs one.
func (w *Writer) authors(added []*Entry) []Person {
	nominal := []Person{w.doc.nominalAuthor()}
	switch {
	case len(w.doc.Authors) > 0:
		return w.doc.Authors
	case w.doc.Format != Atom:
		return nominal
	case w.Verbatim:
		return nil
	}
	for _, e := range slices.Concat(w.doc.Entries, added) {
		if e != nil && e.format() != Atom || e != nil && !e.signed && len(e.authors()) == 0 {
			return nominal
		}
	}
	w.author = nominal[0].Name
	return nil
}

// write writes entries: those of the format with their own XML, the others converted.
func (w *Writer) write(entries []*Entry) {
	for _, e := range entries {
		switch {
		case w.xml.err != nil:
		case e == nil:
			w.xml.err = errors.New("feedhistory: Writer: an entry is nil")
		default:
			e, w.xml.err = current(e)
		}
		if w.xml.err != nil {
			return
		}
		element := w.element(e)
		if !w.Verbatim {
			element = xmlscan.RepairEntry(element, w.format == RSS, xmlscan.Entry{
				ID: e.ID, Title: e.Title().Plain(), Published: e.Published, Changed: e.lastChange(), Author: w.author,
			})
		}
		w.xml.b.WriteString(element + "\n")
		w.xml.flush()
	}
}

// element returns an entry as an element of the document: with its own XML, if that is of
// the format, or else converted.
func (w *Writer) element(e *Entry) string {
	native, convert := vocab.Atom, w.xml.atomEntry
	if w.format == RSS {
		native, convert = "", w.xml.rssItem
	}
	switch {
	case !e.isNative(w.format, native):
		before := w.xml.b.Len()
		convert(e)
		text := w.xml.b.String()
		w.xml.b.Reset()
		w.xml.b.WriteString(text[:before])
		return strings.TrimSuffix(text[before:], "\n")
	case slices.Equal(e.authors(), w.doc.Authors):
		return string(e.XML())
	}
	return string(e.Signed().XML())
}

// current returns the entry as its fields say. An entry unchanged since it was read is
// returned as it is.
func current(e *Entry) (*Entry, error) {
	if e.raw == "" || !e.isAltered() {
		return e, nil
	}
	made, err := e.Draft().entry()
	if err != nil {
		return nil, err
	}
	made.Source.Updated = e.lastChange()
	return made, nil
}

// Document returns the history as one document, which is complete if the verdict is
// Whole. Its Coverage declares the gaps. People who read the feed
// do not see that: see PseudoEntries.
func (h *History) Document() *Document {
	d := Document{Format: Atom}
	if h.Head != nil {
		d = *h.Head
	}
	d.Complete, d.Archive, d.Notes, d.lost, d.Coverage = h.Verdict() == Whole, false, nil, nil, h.Coverage()
	d.Links = slices.DeleteFunc(slices.Clone(d.Links), func(l Link) bool {
		return l.Rel != RelAlternate && l.Rel != RelSelf && known(l.Rel)
	})
	d.Entries = slices.Clone(h.Entries)
	d.Deleted = h.Deleted
	return &d
}

// PseudoEntries returns the PseudoEntry of each gap, to put before the entries of a
// document for people to read (5005#23).
func (h *History) PseudoEntries() (entries []*Entry) {
	for _, gap := range h.Gaps {
		entries = append(entries, gap.PseudoEntry())
	}
	return entries
}

// identity returns the feed's id, or else a URL.
func (d *Document) identity() string {
	self, _ := d.Links.Rel(RelSelf)
	return cmp.Or(d.ID, self.Href, d.URL)
}
