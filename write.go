package feedhistory

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// XML returns the entry as published, as a separate element: with the namespaces,
// base and language that were in scope, and well-formed even if it was not. It
// changes nothing else. For a JSON Feed it returns nil; see JSON.
func (e *Entry) XML() []byte {
	if e.raw == "" || e.format() == JSONFeed {
		return nil
	}
	return []byte(e.scope.standalone(e.raw, e.lenient))
}

// Signed returns the entry with the authors of its feed, if it is an Atom entry
// without authors (RFC 4287 §4.2.1). An entry needs them outside its document.
func (e *Entry) Signed() *Entry {
	authors := e.authors()
	if len(authors) == 0 {
		return e
	}
	var w writer
	for _, p := range authors {
		w.author(p)
	}
	text := string(e.XML())
	end := strings.LastIndex(text, "</")
	if end < 0 {
		return e
	}
	signed := *e
	signed.raw = text[:end] + strings.ReplaceAll(w.b.String(), "<author>", `<author xmlns="`+vocab.Atom+`">`) + text[end:]
	signed.scope, signed.lenient, signed.signed = &scope{base: e.scope.base}, false, true
	signed.texts = textPlaces{}
	return &signed
}

// authors returns the authors that an entry has from its feed. Their number is
// limited, because every entry repeats them.
func (e *Entry) authors() []Person {
	if e.raw == "" || e.signed || e.format() != Atom {
		return nil
	}
	left := maxBorrowedExtra
	for i, p := range e.Source.Authors {
		if left -= len(p.Name) + len(p.Email) + len(p.URI); left < 0 {
			return e.Source.Authors[:i]
		}
	}
	return e.Source.Authors
}

// Document returns the history as one document, which is complete if the verdict is
// Whole, and has a PseudoEntry for each gap.
func (h *History) Document() *Document {
	d := Document{Format: Atom}
	if h.Head != nil {
		d = *h.Head
	}
	d.Complete, d.Archive, d.Notes, d.lost, d.Coverage = h.Verdict() == Whole, false, nil, nil, h.Coverage()
	d.Links = slices.DeleteFunc(slices.Clone(d.Links), func(l Link) bool {
		return l.Rel != RelAlternate && l.Rel != RelSelf && known(l.Rel)
	})
	for _, gap := range h.Gaps {
		d.Entries = append(d.Entries, gap.PseudoEntry())
	}
	d.Entries = append(d.Entries, h.Entries...)
	d.Deleted = h.Deleted
	return &d
}

// A writer writes XML, and remembers the first error.
type writer struct {
	w   io.Writer
	b   strings.Builder
	err error
}

// flush writes out the buffer, so that memory stays small.
func (w *writer) flush() {
	if w.err == nil {
		_, w.err = io.WriteString(w.w, w.b.String())
	}
	w.b.Reset()
}

// entries writes a document's entries: those of the given format and namespace with
// their own XML, the others by convert.
func (w *writer) entries(d *Document, format Format, space string, convert func(*Entry)) {
	for _, e := range d.Entries {
		if e.isNative(format, space) {
			if !slices.Equal(e.authors(), d.Authors) {
				e = e.Signed()
			}
			w.b.Write(e.XML())
			w.b.WriteByte('\n')
		} else {
			convert(e)
		}
		w.flush()
	}
}

// decode returns the entry in gofeed's form. The result may be empty, because texts,
// times and links are known without it.
func (w *writer) decode(e *Entry) *gofeed.Item {
	item, err := e.Decode()
	if item == nil {
		return &gofeed.Item{}
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	return item
}

// element writes an element with text on a line of its own. Attributes may follow the
// name.
func (w *writer) element(name, text string) {
	w.b.WriteString("<" + name + ">")
	escapeText(&w.b, text)
	tag, _, _ := strings.Cut(name, " ")
	w.b.WriteString("</" + tag + ">\n")
}

// empty writes an element without content. The attributes are names, each followed by
// its value.
func (w *writer) empty(name string, attrs ...string) {
	w.open(name, attrs...)
	w.b.WriteString("/>\n")
}

// open writes a start tag without its final ">". The attributes are names, each
// followed by its value; it omits those whose value is empty.
func (w *writer) open(name string, attrs ...string) {
	w.b.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			writeAttr(&w.b, attrs[i], attrs[i+1])
		}
	}
}

// link writes an Atom link, under the given element name.
func (w *writer) link(name string, l Link) {
	w.empty(name, "rel", l.Rel, "href", iri.Writable(l.Href), "type", l.Type, "hreflang", l.HrefLang, "title", l.Title, "length", l.Length)
}

// flags writes the history flags and tombstones of a head section.
func (w *writer) flags(d *Document) {
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

// lastChange returns when the entry last changed, as far as that is known.
func (e *Entry) lastChange() time.Time {
	var source time.Time
	if e.Source != nil {
		source = e.Source.documentTime()
	}
	return feedtime.First(e.Updated, e.Published, source, time.Unix(0, 0).UTC())
}

// lastChange returns when the document was updated, or the newest of its entries.
func (d *Document) lastChange() time.Time {
	t := d.documentTime()
	for _, e := range d.Entries {
		if change := e.lastChange(); t.IsZero() || d.documentTime().IsZero() && change.After(t) {
			t = change
		}
	}
	return t
}

// identity returns the feed's id, or else a URL.
func (d *Document) identity() string {
	self, _ := d.Links.Rel(RelSelf)
	return cmp.Or(d.ID, self.Href, d.URL)
}

// isNative reports whether the entry's element has the given format and namespace, so
// that it can be written unchanged in such a document.
func (e *Entry) isNative(format Format, space string) bool {
	if e.raw == "" || e.odd || e.format() != format {
		return false
	}
	r := e.reader()
	defer r.release()
	return r.s.Space() == space
}

// isMedia reports whether a text's type is a media type, which only content may have.
func isMedia(kind string) bool {
	return kind != "" && kind != TextPlain && kind != TextHTML && kind != TextXHTML
}

// atomBody returns the content of the Atom element for the text (RFC 4287 §3.1.1,
// §4.1.3.3). The error says where markup is not well-formed.
func (t Text) atomBody() (string, error) {
	kind := strings.ToLower(t.Type)
	switch {
	case kind == TextXHTML:
		div := "<div xmlns=\"" + vocab.XHTML + "\">" + t.Body + "</div>"
		return div, wellFormed(div)
	case t.Src != "" && t.Body == "":
		return "", nil
	case isXMLType(kind):
		return t.Body, wellFormed(t.Body)
	case isMedia(kind) && !strings.HasPrefix(kind, "text/"):
		return base64.StdEncoding.EncodeToString([]byte(t.Body)), nil
	}
	var b strings.Builder
	escapeText(&b, t.Body)
	return b.String(), nil
}

// wellFormed checks that an element is well-formed, without any leniency.
func wellFormed(element string) error {
	s := xmlscan.New(element, xmlscan.Limits{})
	for s.Next() != xmlscan.Stop {
	}
	if err := s.Err(); err != nil {
		return err
	}
	if notes, _ := s.Notes(); len(notes) > 0 {
		return fmt.Errorf("not well-formed: %s", notes[0].Message)
	}
	return nil
}

var (
	escaper     = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	attrEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;",
		`"`, "&#34;", "\t", "&#9;", "\n", "&#10;")
)

// newEscaper returns a replacer that also removes the characters that XML forbids.
func newEscaper(oldnew ...string) *strings.Replacer {
	for c := range ' ' {
		if c != '\t' && c != '\n' && c != '\r' {
			oldnew = append(oldnew, string(c), "")
		}
	}
	return strings.NewReplacer(append(oldnew, "\ufffe", "", "\uffff", "")...)
}

// escapeText writes characters as XML or HTML text.
func escapeText(b *strings.Builder, s string) {
	_, _ = escaper.WriteString(b, strings.ToValidUTF8(s, "\uFFFD"))
}

// writeAttr writes an attribute, with the space before it.
func writeAttr(b *strings.Builder, name, value string) {
	b.WriteString(" " + name + `="`)
	_, _ = attrEscaper.WriteString(b, strings.ToValidUTF8(value, "\uFFFD"))
	b.WriteByte('"')
}

// documentTime is the time that decides between duplicates that have the same
// update time or none (5005#21); zero if neither document nor response has one.
func (d *Document) documentTime() time.Time {
	return feedtime.First(d.Updated, d.LastModified)
}

// extended are the extensions of an entry, such as those of iTunes, Podcasting 2.0 and
// Media RSS, to be written in another format.
type extended struct {
	attrs    string // the attributes that the element around them needs
	elements string
}

// extensions returns an entry's extensions, without those for which every format has
// its own element.
func (e *Entry) extensions() (x extended) {
	if e.raw == "" || e.format() == JSONFeed {
		return x
	}
	raw := e.raw
	if e.lenient {
		raw = xmlscan.Standalone(raw, e.scope.bindings, "")
	}
	r := newFragment(raw, e.scope, e.format())
	sc := r.newScope()
	var elements []string
	for depth := r.s.Depth(); r.s.Child(depth); {
		if !r.isOwn() && !r.isMapped() {
			start := r.s.Offset()
			r.s.Skip()
			elements = append(elements, raw[start:r.s.End()])
		}
	}
	if len(elements) == 0 {
		return x
	}
	all := strings.Join(elements, "\n")
	shared, others := sc.shareable(all)
	var b strings.Builder
	left := maxBorrowed*len(all) + maxBorrowedExtra
	for _, element := range elements {
		attrs := declarations(element, others)
		if left -= len(attrs); left < 0 {
			return extended{} // too many declarations for the elements' length
		}
		if attrs != "" {
			element = xmlscan.Standalone(element, sc.bindings, attrs)
		}
		b.WriteString(element + "\n")
	}
	x.elements, x.attrs = b.String(), sc.attrs(shared, markup.MayBeRelative(all))
	return x
}

// isOwn reports whether the current element belongs to the format's own vocabulary.
func (r *reader) isOwn() bool {
	return vocab.IsAtom(r.space()) || r.doc.Format == RSS && r.isRSS() || r.space() == r.native && r.doc.Format == Atom
}

// isMapped reports whether every format has its own element for the meaning of the
// current element.
func (r *reader) isMapped() bool {
	switch local := r.s.Local(); r.space() {
	case vocab.DC:
		return local == "creator" || local == "date" || local == "subject"
	case vocab.DCTerms:
		return local == "modified" || local == "issued" || local == "created"
	case vocab.Content:
		return local == "encoded"
	}
	return false
}

// html returns the text as HTML with absolute references.
func (t Text) html() string {
	if t.isMarkup() {
		return t.absolute()
	}
	return html.EscapeString(t.Body)
}
