// Package compose makes feed documents and entries, and writes them: entries from drafts and
// from JSON; complete, paged and archived feeds; Atom and RSS.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package compose

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Write writes a document in its own format: RSS as RSS 2.0, and Atom as Atom 1.0. A
// document in another format, such as JSON Feed, becomes Atom.
func Write(w io.Writer, d *feedhistory.Document) error {
	format := feedhistory.FormatAtom
	if d != nil && d.Format == feedhistory.FormatRSS {
		format = feedhistory.FormatRSS
	}
	return NewWriter(w, format, d).Close()
}

// WriteAtom writes a document as Atom 1.0. Entries read from Atom 1.0 keep their own
// XML; others are converted.
func WriteAtom(w io.Writer, d *feedhistory.Document) error {
	return NewWriter(w, feedhistory.FormatAtom, d).Close()
}

// WriteRSS writes a document as RSS 2.0, with the elements of RFC 5005 as in its
// Appendix B. Items read from RSS 2.0 keep their own XML; others are converted.
func WriteRSS(w io.Writer, d *feedhistory.Document) error {
	return NewWriter(w, feedhistory.FormatRSS, d).Close()
}

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

	form int // see door.Former; zero means the present one

	w      io.Writer
	b      feedxml.Markup // the text to be written next
	err    error          // the first one
	author string         // the nominal author of entries without one, if the head names nobody
	doc    *feedhistory.Document
	format feedhistory.Format
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
func NewWriter(w io.Writer, format feedhistory.Format, doc *feedhistory.Document) *Writer {
	d := &Writer{w: w, doc: cmp.Or(doc, new(feedhistory.Document)), format: format}
	switch {
	case w == nil:
		d.err = errors.New("compose: NewWriter: the io.Writer is nil")
	case format != feedhistory.FormatAtom && format != feedhistory.FormatRSS:
		d.err = fmt.Errorf("compose: NewWriter: documents are written as Atom or RSS, not as %v", format)
	}
	return d
}

// isBefore reports whether the document is written in a form before the given one.
func (w *Writer) isBefore(form int) bool { return w.form != 0 && w.form < form }

// Add writes entries, in the given order. Entries of the document's own format keep
// their XML; others are converted. After an error, nothing more is written.
func (w *Writer) Add(entries ...*feedhistory.Entry) error {
	if w.closed {
		return errors.New("compose: Writer: Add after Close")
	}
	w.begin(entries)
	w.write(entries)
	return w.err
}

// Close ends the document. It does not close the underlying io.Writer. It returns the
// first error of all calls; a second call does nothing else.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.begin(nil)
	w.closed = true
	if w.format == feedhistory.FormatRSS {
		w.b.WriteString("</channel></rss>\n")
	} else {
		w.b.WriteString("</feed>\n")
	}
	w.flush()
	return w.err
}

// begin writes everything before the first entries to add, once.
func (w *Writer) begin(added []*feedhistory.Entry) {
	if w.begun || w.err != nil {
		return
	}
	w.begun = true
	updated := documentTime(w.doc, w.doc.Entries)
	if len(w.doc.Entries) == 0 {
		updated = documentTime(w.doc, added)
	}
	if w.format == feedhistory.FormatRSS {
		w.rssHead(w.doc, updated)
	} else {
		w.atomHead(w.doc, updated, len(w.doc.Entries)+len(added) > 0, w.authors(added))
	}
	w.write(w.doc.Entries)
}

// authors returns the authors of an Atom document's head section. If there are none, the
// first entries decide whether it needs one.
func (w *Writer) authors(added []*feedhistory.Entry) []feedhistory.Person {
	nominal := []feedhistory.Person{nominalAuthor(w.doc)}
	given := w.doc.Authors
	if w.isBefore(2) {
		given = formerAuthors(w.doc)
	}
	switch {
	case len(given) > 0:
		return given
	case w.doc.Format != feedhistory.FormatAtom:
		return nominal
	case w.Verbatim:
		return nil
	}
	for _, e := range slices.Concat(w.doc.Entries, added) {
		if e == nil {
			continue
		}
		if element, err := door.Root.Element(e); err == nil && (element.Format != feedxml.FormatAtom || !element.Signed && len(element.Authors) == 0) {
			return nominal
		}
	}
	w.author = nominal[0].Name
	return nil
}

// write writes entries: those of the format with their own XML, the others converted.
func (w *Writer) write(entries []*feedhistory.Entry) {
	for _, e := range entries {
		if w.err == nil && e == nil {
			w.err = errors.New("compose: Writer: an entry is nil")
		}
		if w.err != nil {
			return
		}
		w.flush()
		element, err := w.element(e)
		if w.err = cmp.Or(w.err, err); w.err != nil {
			return
		}
		var facts *feedxml.Facts
		if !w.Verbatim {
			facts = &feedxml.Facts{
				ID: e.ID, Title: func() string { return e.Title().Plain() }, Published: e.Published, Changed: changed(e), Author: w.author,
			}
		}
		element.Write(w.format == feedhistory.FormatRSS, facts, w.put)
		w.b.WriteByte('\n')
	}
}

// element returns an entry as an element of the document: its own, if that is of the format, or
// else converted. It has the authors of its feed if the document has others.
func (w *Writer) element(e *feedhistory.Entry) (feedxml.Element, error) {
	element, err := door.Root.Element(e)
	native, convert := feedxml.Atom, w.atomEntry
	if w.format == feedhistory.FormatRSS {
		native, convert = "", w.rssItem
	}
	switch {
	case err != nil:
	case !isNative(element, feedxml.Format(w.format), native):
		convert(e, element)
		text := w.b.String()
		w.b.Reset()
		return feedxml.Element{Raw: strings.TrimSuffix(text, "\n"), Scope: new(xmlscan.Scope)}, nil
	case w.format == feedhistory.FormatAtom && !w.isBefore(3):
		element.Raw = atomOfRSS2(element.Raw)
	}
	if err == nil && slices.EqualFunc(element.Authors, w.doc.Authors, func(a feedxml.Person, b feedhistory.Person) bool { return a == personXML(b) }) {
		element.Authors = nil
	}
	return element, err
}

// changed returns when the entry changed or, if it does not say, when its document did.
// Atom requires a time, so the last resort is the epoch.
func changed(e *feedhistory.Entry) time.Time {
	return feedtime.First(e.Changed(), dated(e.Head), epoch)
}

// epoch replaces an unknown time where a format requires one.
var epoch = time.Unix(0, 0).UTC()

// dated returns the time of a document: its own, or the response's. It is the same at each
// run.
func dated(d *feedhistory.Document) time.Time {
	if d == nil {
		return time.Time{}
	}
	return feedtime.First(d.Updated, d.Published, d.LastModified)
}

// documentTime returns when the document was updated or, if it does not say, the latest
// change of the given entries. It is the epoch if none has a time, and zero if there are
// none.
func documentTime(d *feedhistory.Document, entries []*feedhistory.Entry) time.Time {
	t := dated(d)
	if t.IsZero() {
		for _, e := range entries {
			if e != nil {
				t = feedtime.Later(t, changed(e))
			}
		}
	}
	return t
}

// identity returns the feed's id, or else a URL.
func identity(d *feedhistory.Document) string {
	self, _ := d.Links.Rel("self")
	return cmp.Or(d.ID, self.Href, d.URL)
}

// flush writes out the buffer, so memory stays small.
func (w *Writer) flush() {
	w.put(w.b.String())
	w.b.Reset()
}

// put writes a text out without a copy.
func (w *Writer) put(text string) {
	if w.err == nil && text != "" {
		_, w.err = io.WriteString(w.w, text)
	}
}

// flags writes the history flags and tombstones of a head section.
func (w *Writer) flags(d *feedhistory.Document) {
	if d.Complete {
		w.b.Empty("fh:complete", "xmlns:fh", feedxml.History)
	}
	if d.Archive {
		w.b.Empty("fh:archive", "xmlns:fh", feedxml.History)
	}
	w.coverage(d.Coverage)
	for _, t := range d.Deleted {
		when := ""
		if !t.When.IsZero() {
			when = t.When.Format(time.RFC3339Nano)
		}
		w.b.Empty("at:deleted-entry", "xmlns:at", feedxml.Tombstones, "ref", t.Ref, "when", when)
	}
}

// coverage writes a Coverage.
func (w *Writer) coverage(c *feedhistory.Coverage) {
	if c == nil {
		return
	}
	kind, asOf := string(c.Kind), ""
	if c.Kind == feedhistory.KindUnknown {
		kind = ""
	}
	if !c.AsOf.IsZero() {
		asOf = c.AsOf.UTC().Format(time.RFC3339)
	}
	w.b.Open("m:mirror", "xmlns:m", feedxml.Coverage, "of", c.Of, "kind", kind, "verdict", c.Verdict.String(), "as-of", asOf)
	w.b.WriteByte('>')
	for _, g := range c.Gaps {
		w.b.Open("m:gap", "reason", g.Word(), "href", iri.Redact(g.URL))
		w.b.WriteString("/>")
	}
	w.b.WriteString("</m:mirror>\n")
}

// atomHead writes the beginning of an Atom document.
func (w *Writer) atomHead(d *feedhistory.Document, updated time.Time, hasEntries bool, authors []feedhistory.Person) {
	lang := d.Language
	if w.isBefore(2) && hasEntries || !w.isBefore(2) && !feedxml.IsLanguage(lang) {
		lang = ""
	}
	w.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n")
	w.b.Open("feed", "xmlns", feedxml.Atom, "xml:lang", lang)
	w.b.WriteString(">\n")
	w.b.Element("id", identity(d))
	w.b.Element("title", d.Title)
	if d.Subtitle != "" {
		w.b.Element("subtitle", d.Subtitle)
	}
	w.b.Element("updated", updated.Format(time.RFC3339Nano))
	for _, p := range authors {
		w.b.Person("author", personXML(p))
	}
	alternates := map[string]bool{}
	for _, l := range d.Links {
		if kind := l.Type + " " + l.HrefLang; l.Rel == "alternate" && alternates[kind] && !w.Verbatim {
			l.Rel = "related" // RFC 4287 §4.1.1: one alternate of a type and language
		} else if l.Rel == "alternate" {
			alternates[kind] = true
		}
		w.b.Link("link", feedxml.Link(l))
	}
	if !w.isBefore(3) { // here are the elements of a published head, too, when it is written again
		w.flags(d)
	}
	var head description
	if w.isBefore(2) {
		if d.Icon != "" && (d.Format != feedhistory.FormatAtom || door.Root.Head(d).Scope == nil) { // otherwise headAs writes it as published
			w.b.Element("icon", iri.Writable(d.Icon))
		}
	} else {
		head = w.describe(d)
		w.atomDescription(d, head)
	}
	if w.isBefore(3) {
		w.flags(d)
	}
	w.headAs(d, feedhistory.FormatAtom, head)
}

// nominalAuthor stands for the author whom Atom requires, of the feed or of each entry
// (RFC 4287 §4.1.1), and who is unknown.
func nominalAuthor(d *feedhistory.Document) feedhistory.Person {
	return feedhistory.Person{Name: cmp.Or(d.Title, identity(d), "unknown")}
}

// atomEntry writes an entry of another format.
func (w *Writer) atomEntry(e *feedhistory.Entry, element feedxml.Element) {
	item, native := w.parts(element)
	attrs, others := item.Foreign(native...)
	lang := item.Language
	if lang == "" && e.Head != nil {
		lang = e.Head.Language
	}
	if !w.isBefore(2) && lang != w.doc.Language && feedxml.IsLanguage(lang) && !strings.Contains(attrs, " xml:lang=") {
		var b strings.Builder
		xmlscan.WriteAttr(&b, "xml:lang", lang)
		attrs += b.String()
	}
	w.b.WriteString("<entry" + attrs + ">\n")
	w.b.Element("id", e.ID)
	w.text("title", e.Title())
	w.b.Element("updated", changed(e).Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		w.b.Element("published", e.Published.Format(time.RFC3339Nano))
	}
	for _, person := range item.Authors {
		w.b.Person("author", person)
	}
	for _, category := range item.Categories {
		w.b.Category("category", category)
	}
	for _, l := range e.Links {
		w.b.Link("link", feedxml.Link(l))
	}
	w.text("summary", e.Summary())
	w.text("content", e.Content())
	if native != nil {
		w.atomParts(e, item, native)
	}
	w.mediaParts(e, element)
	w.b.WriteString(others + item.Own(native...) + "</entry>\n")
}

// text writes a text construct. A title is never left out.
func (w *Writer) text(name string, t feedhistory.Text) {
	switch {
	case t == feedhistory.Text{} && name != "title":
	case t.Src != "", feedxml.IsMedia(t.Type):
		w.media(name, t)
	case t.Type == "html" || t.Type == "xhtml":
		w.b.Element(name+` type="html"`, t.HTML())
	default:
		w.b.Element(name, t.Body)
	}
}

// media writes content of a media type, or content at another URL. Ill-formed markup
// becomes text.
func (w *Writer) media(name string, t feedhistory.Text) {
	if t.Src != "" {
		w.b.Empty(name, "type", feedxml.MediaType(t.Type), "src", t.Src) // RFC 4287 §4.1.3.2: the element is empty then
		return
	}
	if w.b.Text(name, feedxml.Construct{Type: t.Type, Body: t.Body}) != nil {
		_ = w.b.Text(name, feedxml.Construct{Type: "text/plain", Body: t.Body})
	}
}

// headAs writes the other elements of the head section: those of the format and extensions as
// they are, those of another format as extensions.
func (w *Writer) headAs(d *feedhistory.Document, format feedhistory.Format, written description) {
	head := door.Root.Head(d)
	hasNoNamespace := sync.OnceValue(head.IsBare) // reads many elements, and is asked rarely
	var elements strings.Builder
	for _, raw := range head.Others {
		r, scope := feedxml.Again(raw, head.Scope, head.Format), *head.Scope
		native, isStranger := r.Native(), d.Format == feedhistory.FormatAtom && r.Cursor.Space() == "" && !hasNoNamespace()
		if isStranger && format == feedhistory.FormatRSS { // which would take it for its own
			r.Release()
			continue
		}
		r.SetNative("") // the element is not the format's because of its own namespace
		row := r.Row()
		has := written.has(row, r.IsOwn())
		if !w.isBefore(3) {
			isOther := d.Format == feedhistory.FormatAtom && row.Space == feedxml.DC && row.Feed == feedxml.MeansAuthor
			has = has && !isOther || written.saysSame(raw, row, d)
		}
		if has || written != nil && d.Format != w.format && row.Feed == feedxml.MeansLogo && isPlainImage(raw, row, d) {
			r.Release()
			continue
		}
		r.SetNative(native)
		if !markup.MayBeRelative(raw) && (r.Row().Form < feedxml.PersonForm || !relativeText.MatchString(raw)) {
			scope.Base = "" // feedparser takes an attribute of docs for its value
		}
		if (format == feedhistory.FormatRSS || !w.isBefore(3)) && scope.Lang == d.Language && feedxml.IsLanguage(d.Language) {
			scope.Lang = "" // the channel's element says it, or the root; feedparser takes attributes of icon and logo for their value
		}
		_, element := scope.Standalone(raw, true)
		if isStranger {
			element = xmlscan.Standalone(element, nil, ` xmlns=""`)
		} else if d.Format == format && !w.isBefore(3) {
			element = undeclared(element, raw, format)
		}
		if d.Format != format {
			element = carried(r, element, format)
		}
		r.Release()
		if element != "" {
			elements.WriteString(element + "\n")
		}
	}
	if w.Verbatim {
		w.b.WriteString(elements.String())
	} else if elements.Len() > 0 {
		w.b.WriteString(feedxml.RepairHead(elements.String(), format == feedhistory.FormatRSS))
	}
}

// undeclared returns an element of a head section without the declaration that it has been given
// and that the document's root has, so a head that is read and written again stays the same.
func undeclared(element, raw string, format feedhistory.Format) string {
	declaration := ` xmlns="` + feedxml.Atom + `"`
	if format == feedhistory.FormatRSS {
		declaration = ` xmlns:atom="` + feedxml.Atom + `"`
	}
	end := strings.IndexByte(element, '>')
	at := strings.Index(element, declaration)
	if at < 0 || at > end || strings.Contains(raw[:strings.IndexByte(raw, '>')+1], declaration) {
		return element
	}
	return element[:at] + element[at+len(declaration):]
}

// relativeText matches text that may be a relative reference.
var relativeText = regexp.MustCompile(`>\s*[^<:\s][^<:]*<|<!\[CDATA\[`)

// carried returns an element of a head section for a document of another format; "" if that
// says the same already. The elements of RSS have the namespace feedxml.RSS2 in Atom, those
// of Atom their own in RSS, so both survive the way back.
func carried(r *feedxml.Elements, element string, format feedhistory.Format) string {
	r.SetNative("")
	switch space := r.Cursor.Space(); {
	case r.Format == feedxml.FormatRSS && space == "":
		return feedxml.Into(feedxml.RSS2, element)
	case format == feedhistory.FormatRSS && space == feedxml.RSS2 && r.Prefix() == "":
		return feedxml.OutOfRSS2(element)
	case r.IsAtom():
		row := r.Row()
		isKept := row.Feed.Travels() || slices.Contains([]feedxml.Meaning{feedxml.MeansCategory, feedxml.MeansPublished, feedxml.MeansNothing}, row.Feed)
		isIcon := row.Feed == feedxml.MeansIcon || row.Feed == feedxml.MeansLogo
		if !isKept && (!isIcon || format != feedhistory.FormatRSS && row.RSSRank > 0) {
			return ""
		}
		if space == "" {
			return feedxml.Into(feedxml.Atom, element)
		}
	case r.IsOwn():
		return ""
	case r.Format == feedxml.FormatRSS:
		return new(xmlscan.Scope).Alone(element, true)
	}
	return element
}

// hasRSS reports whether the head section has an element of RSS that came through another
// format.
func hasRSS(d *feedhistory.Document, name string) bool {
	return slices.ContainsFunc(door.Root.Head(d).Others, func(raw string) bool {
		return strings.HasPrefix(raw, "<"+name) && feedxml.OutOfRSS2(raw) != raw
	})
}

// hasImage reports whether the head section of RSS has an image saying more than the document's Logo.
func hasImage(d *feedhistory.Document) bool {
	head := door.Root.Head(d)
	return d.Format == feedhistory.FormatRSS && slices.ContainsFunc(head.Others, func(raw string) bool {
		r := feedxml.Again(raw, head.Scope, head.Format)
		row := r.Row()
		r.Release()
		return row.Feed == feedxml.MeansLogo && row.Form == feedxml.ImageForm && !isPlainImage(raw, row, d)
	})
}

// formerAuthors returns the authors of a document as earlier versions read them: of RSS, only the
// person constructs of Atom.
func formerAuthors(d *feedhistory.Document) (authors []feedhistory.Person) {
	if d.Format != feedhistory.FormatRSS {
		return d.Authors
	}
	head := door.Root.Head(d)
	r := head.Read()
	for depth := r.Depth(); r.Child(depth); {
		if row := r.Row(); row.Feed == feedxml.MeansAuthor && row.Form == feedxml.PersonForm {
			p := r.Person()
			authors = append(authors, feedhistory.Person{Name: p.Name, URI: p.URI, Email: p.Email})
		}
	}
	return authors
}

// rssHead writes the beginning of an RSS document.
func (w *Writer) rssHead(d *feedhistory.Document, updated time.Time) {
	w.b.WriteString("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n")
	w.b.Open("rss", "version", "2.0", "xmlns:atom", feedxml.Atom)
	w.b.WriteString("><channel>\n")
	w.b.Title(d.Title)
	home := w.page(d.Links)
	w.b.Element("link", cmp.Or(iri.URI(cmp.Or(home.Href, d.URL)), iri.Writable(cmp.Or(home.Href, d.URL))))
	w.b.Element("description", cmp.Or(d.Subtitle, d.Title))
	if updated.After(epoch) {
		second := updated.Add(time.Second - 1).Truncate(time.Second) // so no entry is newer (5005#21)
		w.b.Element("lastBuildDate", second.UTC().Format(http.TimeFormat))
	}
	if version := door.Root.Head(d).Version; w.isBefore(2) && d.Icon != "" && (d.Format == feedhistory.FormatJSONFeed || version == "1.0" || version == "0.9") && !hasRSS(d, "image") { // otherwise headAs writes it as published
		w.b.WriteString("<image>\n")
		w.b.Element("url", iri.Writable(d.Icon))
		w.b.Element("title", d.Title)
		w.b.Element("link", iri.Writable(cmp.Or(home.Href, d.URL)))
		w.b.WriteString("</image>\n")
	}
	for _, l := range d.Links {
		if l != home {
			w.b.Link("atom:link", feedxml.Link(l))
		}
	}
	if w.isBefore(2) && d.Format == feedhistory.FormatAtom && !slices.Equal(d.Authors, []feedhistory.Person{nominalAuthor(d)}) {
		for _, p := range d.Authors {
			w.b.Person(feedxml.AtomAuthor, personXML(p))
		}
	}
	if !w.isBefore(3) {
		w.flags(d)
	}
	if d.Format == feedhistory.FormatAtom && d.ID != "" {
		w.b.Element("atom:id", d.ID)
	}
	if w.isBefore(2) && d.Format == feedhistory.FormatAtom && feedxml.IsLanguage(d.Language) && !hasRSS(d, "language") {
		w.b.Element("language", d.Language)
	}
	var head description
	if !w.isBefore(2) {
		head = w.describe(d)
		w.rssDescription(d, head, home.Href)
	}
	if w.isBefore(3) {
		w.flags(d)
	}
	w.headAs(d, feedhistory.FormatRSS, head)
}

// rssItem writes an entry of another format.
func (w *Writer) rssItem(e *feedhistory.Entry, element feedxml.Element) {
	item, native := w.parts(element)
	attrs, others := item.Foreign(native...)
	w.b.WriteString("<item" + attrs + ">\n")
	w.b.Title(e.Title().Plain())
	w.b.Element(`guid isPermaLink="false"`, e.ID)
	if !e.Published.IsZero() {
		w.b.Element("pubDate", e.Published.Format(time.RFC1123Z))
	}
	if !e.Updated.IsZero() {
		w.b.Element("atom:updated", e.Updated.Format(time.RFC3339Nano))
	}
	comments := ""
	if !w.isBefore(2) && slices.ContainsFunc(e.Links, func(l feedhistory.Link) bool { return l.Rel == "replies" }) {
		comments = e.Comments()
	}
	w.rssLinks(e.Links, comments)
	if lang := item.Language; !w.isBefore(2) && lang != w.doc.Language && feedxml.IsLanguage(lang) && !strings.Contains(others, ":language") {
		w.b.Element(`dc:language xmlns:dc="`+feedxml.DC+`"`, lang)
	}
	authors := item.Authors
	if len(authors) == 0 && !w.isBefore(3) { // those of its source, which RSS's has not
		for _, p := range e.Authors() {
			authors = append(authors, personXML(p))
		}
	}
	for i, person := range authors {
		w.rssPerson("author", person, i == 0 && !w.isBefore(2))
	}
	for _, category := range item.Categories {
		w.rssCategory(category)
	}
	summary := e.Summary()
	if summary.Body != "" {
		w.b.Element("description", summary.HTML())
	}
	switch content := e.Content(); {
	case content.Body+content.Src == "":
	case summary == feedhistory.Text{} && content.Src == "" && !feedxml.IsMedia(content.Type):
		w.b.Element("description", content.HTML()) // readers expect the only text here
	case content.Src != "", feedxml.IsMedia(content.Type) && !strings.HasPrefix(content.Type, "text/"):
		w.media("atom:content", content) // RSS has no element for it
	default:
		w.b.Element(`content:encoded xmlns:content="`+feedxml.Content+`"`, content.HTML())
	}
	if comments != "" && item.Comments == "" {
		w.b.Element("comments", iri.Writable(comments))
	}
	source, isWhole := "", false
	if !w.isBefore(2) {
		source, isWhole = w.rssSource(e, item)
	}
	if isWhole {
		native = append(native, feedxml.MeansSource)
	}
	if w.isBefore(3) {
		w.b.WriteString(source + feedxml.OutOfRSS2(others) + item.Own(native...) + "</item>\n")
		return
	}
	w.rssParts(item, native)
	w.mediaParts(e, element)
	w.b.WriteString(feedxml.OutOfRSS2(others) + item.Own(native...) + source + "</item>\n") // of two sources, readers take the last
}

// page returns the first link to a page for people; in the first form, the first alternate.
func (w *Writer) page(links feedhistory.Links) feedhistory.Link {
	if w.isBefore(2) {
		for _, l := range links {
			if l.Rel == "alternate" {
				return l
			}
		}
	}
	home, _ := links.Rel("alternate")
	return home
}

// rssLinks writes links. RSS has elements of its own for the first alternate and for
// enclosures.
func (w *Writer) rssLinks(links feedhistory.Links, comments string) {
	home := w.page(links)
	for _, l := range links {
		switch {
		case l == home:
			w.b.Element("link", iri.Writable(l.Href))
		case l.Rel == "enclosure":
			w.b.Enclosure(feedxml.Link(l))
		case comments != "" && l == (feedhistory.Link{Rel: "replies", Href: comments, Type: "text/html"}): // rssParts writes it
		default:
			w.b.Link("atom:link", feedxml.Link(l))
		}
	}
}

// isNative reports whether an element has the given format and namespace, and can be written
// unchanged in such a document.
func isNative(e feedxml.Element, format feedxml.Format, space string) bool {
	if e.Raw == "" || e.Odd || e.Format != format {
		return false
	}
	if space == feedxml.Atom && strings.HasPrefix(e.Raw, `<entry xmlns="`+feedxml.Atom+`">`) { // nearly always
		return true
	}
	r := e.Read()
	defer r.Release()
	return r.Cursor.Space() == space
}
