package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Parser reads feed documents. Its zero value is ready to use.
//
// A document beyond a limit is refused with a *ParseError. Real feeds do not reach the
// limits: MaxBytes and 200 times its compressed size, beyond the first MiB; MaxEntries;
// 256 nested elements, 256 attributes of one element, and 256 namespaces at one place;
// 1,000,000 elements; 64 links in the head section; 4 KiB for an id, and 8 KiB for a link's
// target. Three limits concern a single entry, which is then left out and becomes a Gap (see
// [Document.Missing]): the length of its id, 4,096 links, and its inheritance.
//
// A document has its namespaces, xml:base and xml:lang once, but each entry needs a copy,
// and each relative reference needs the base. An entry may take 16 times its own length plus
// 1 KiB of them; no honest entry comes near this. So everything derived from a document of n
// bytes (its links, texts and XML, and the document in another format) has at most 80 times n
// bytes, plus 4 KiB for each entry. Only 64 KiB of a head section are kept, because every
// document of a republished feed repeats it.
type Parser struct {
	// MaxBytes is the maximum size of a document, decompressed and decoded; zero means 16
	// MiB. A negative one is an error.
	MaxBytes int64

	// MaxEntries is the maximum number of entries of a document, and of its deletions; zero
	// means 50,000. The number of elements may be 20 times as large, and is at least a
	// million. A negative one is an error.
	MaxEntries int

	// Header is the header of the HTTP response; nil means there is none. It contributes
	// the charset of Content-Type, which takes precedence over the XML declaration's if
	// the bytes permit (RFC 7303 §3), Last-Modified, and links with relations missing
	// from the document itself. The document decides about the format; a Content-Type
	// of another one leads to a Note.
	Header http.Header

	// Trusted lifts all limits but a MaxBytes and a MaxEntries other than zero, for a document
	// the program has written itself or read before.
	Trusted bool

	// Strict makes the parser stop where XML or JSON is not well-formed, except at
	// harmless errors of XML, such as a bare ampersand, and take UTF-8 encoded twice as
	// it is. Otherwise it mends the document there.
	Strict bool
}

// Parse reads one feed document with the default limits. Relative references resolve
// against base, the URL where the document was found, which may be empty. The Document keeps the
// text; the string of a strings.Reader is not copied.
//
// The error is a *ParseError, or one from r: the context's, if it has cut short a
// response. Together with a *ParseError, Parse may return the part of the document
// before the error.
func Parse(r io.Reader, base string) (*Document, error) { return Parser{}.Parse(r, base) }

// Parse is like the function Parse, with p's settings.
func (p Parser) Parse(r io.Reader, base string) (*Document, error) {
	switch {
	case p.MaxBytes < 0:
		return nil, errors.New("feedhistory: Parser.MaxBytes is negative")
	case p.MaxEntries < 0:
		return nil, errors.New("feedhistory: Parser.MaxEntries is negative")
	}
	if r == nil {
		return nil, errors.New("feedhistory: Parse: the io.Reader is nil")
	}
	limit := p.limits().bytes
	text, err := readAll(r, limit)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, limitError(base, tooLarge(limit))
	}
	return p.decode(text, base)
}

// readAll reads all of r, or one byte more than the limit.
func readAll(r io.Reader, limit int64) (string, error) {
	var text textBuilder
	if known, ok := r.(interface { // strings.Reader, bytes.Buffer …
		io.WriterTo
		Len() int
	}); ok && int64(known.Len()) <= limit {
		text.whole = known.Len()
		_, err := known.WriteTo(&text)
		return text.String(), err
	}
	_, err := io.Copy(&text, io.LimitReader(r, max(limit, limit+1))) // the largest limit does not overflow
	return text.String(), err
}

// A textBuilder is a strings.Builder without a copy of a text given as one string, as a strings.Reader
// gives it.
type textBuilder struct {
	strings.Builder
	whole int    // the expected length; zero if unknown
	given string // the whole text; "" if it is in the Builder
}

func (b *textBuilder) WriteString(s string) (int, error) {
	if len(s) == b.whole && b.given == "" && b.Len() == 0 {
		b.given = s
		return len(s), nil
	}
	return b.Write([]byte(s))
}

func (b *textBuilder) Write(p []byte) (int, error) {
	if b.Len() == 0 {
		b.Grow(max(b.whole, len(b.given)+len(p)))
		_, _ = b.Builder.WriteString(b.given)
		b.given = ""
	}
	return b.Builder.Write(p)
}

func (b *textBuilder) String() string {
	if b.given != "" {
		return b.given
	}
	return b.Builder.String()
}

// decode reads a whole document as received, in the format told by its first character.
func (p Parser) decode(data, base string) (doc *Document, err error) {
	if strings.TrimLeft(data, " \t\r\n") == "" {
		return nil, &ParseError{URL: base, Reason: ReasonTruncated, Clause: clauseFeed, Line: 1, Column: 1, Err: errors.New("the document is empty")}
	}
	if isJSON(data) {
		doc, err = p.parseJSON(data, base)
	} else {
		doc, err = p.readXML(data, base)
	}
	if doc != nil {
		doc.noteMediaType(p.Header, data)
	}
	return doc, err
}

// newReading returns a reading of a text from the given URL.
func (p Parser) newReading(text, url string) reading {
	return reading{
		text: text, limits: p.limits(),
		doc: &Document{URL: url}, head: new(Document),
	}
}

// noteMediaType notes a Content-Type that promises another format. General types, such as
// application/xml and text/plain, promise none.
func (d *Document) noteMediaType(header http.Header, data string) {
	declared := mediaType(header)
	var promised Format
	switch declared {
	default:
		return
	case "text/html", "application/xhtml+xml": // a web page, and no feed
	case "application/atom+xml":
		promised = FormatAtom
	case "application/rss+xml":
		promised = FormatRSS
	case "application/feed+json", "application/json":
		promised = FormatJSONFeed
	}
	if promised == d.Format || promised == FormatJSONFeed && isJSON(data) {
		return
	}
	note := Note{Code: "media-type-mismatch", Message: "Content-Type is " + declared + ", but the document is read as " +
		map[Format]string{FormatAtom: "Atom", FormatRSS: "RSS", FormatJSONFeed: "JSON Feed"}[d.Format]}
	d.Notes = slices.Insert(d.Notes[:min(len(d.Notes), maxNotes-1)], 0, note)
}

// mediaType returns a response's media type in lower case, without its parameters.
func mediaType(header http.Header) string {
	kind, _, _ := strings.Cut(strings.ToLower(header.Get("Content-Type")), ";")
	return strings.TrimSpace(kind)
}

func (p Parser) readXML(data, base string) (*Document, error) {
	r, err := p.openXML(data, base)
	if err != nil {
		return nil, err
	}
	defer r.xml.Release()
	r.document()
	return p.mend(r).finish()
}

// peek reads the head section from the beginning of a document, and reports whether it
// is whole: an entry has begun. It ignores Link header fields, which later elements may
// override.
func (p Parser) peek(prefix, base string) (*Document, bool) {
	if isJSON(prefix) {
		return nil, false
	}
	r, err := p.openXML(prefix, base)
	if err != nil {
		return nil, false
	}
	defer r.xml.Release()
	r.headOnly = true
	r.document()
	return r.doc, r.xml.Stopped() && r.err == nil
}

// openXML returns a reader of a document, decoded to UTF-8.
func (p Parser) openXML(data, base string) (*documentReader, error) {
	xml := feedxml.New(base)
	notes, err := xml.Read(data, p.Header.Get("Content-Type"), p.Strict, p.limits().xml)
	if err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	}
	r := p.newDocumentReader(xml.Document(), base, xml)
	r.decoding = notes
	r.xml.Around(base)
	r.addNotes(notes)
	return r, nil
}

// A documentReader reads an XML document: its head section itself, its entries by an
// entryReader over the same elements. atom.go and rss.go have the parts in which the
// formats differ.
type documentReader struct {
	xmlReading
	head     headReader
	list     entryList
	entries  entryReader
	header   http.Header
	headOnly bool              // stop where the first entry begins
	decoding []xmlscan.Note    // the notes on the text's characters
	scopes   [4]*xmlscan.Scope // the scopes of the root's children, and of the channel's

	polls      scheduleReader
	knownBytes int // the bytes kept for Feed only
	loose      int // the place of an entry's element outside all entries; -1 if there is none
}

// newDocumentReader returns a reader of a text by its elements.
func (p Parser) newDocumentReader(text, url string, xml *feedxml.Elements) *documentReader {
	r := &documentReader{header: p.Header, loose: -1}
	r.reading, r.xml = p.newReading(text, url), xml
	r.xml.MaxURL, r.xml.Note = r.limits.url, r.note
	r.head.in, r.list.in = &r.reading, &r.reading
	r.entries = entryReader{xmlReading: &r.xmlReading, list: &r.list, host: iri.Split(url).Authority, leftOut: -1, twoInOne: -1, linkAt: -1}
	return r
}

// document reads the root element.
func (r *documentReader) document() {
	if !r.xml.Child(0) {
		return
	}
	space, root := r.xml.Space(), r.xml.Local()
	switch {
	case strings.EqualFold(root, "feed") && (feedxml.IsAtom(space) || space == ""):
		r.begin(FormatAtom)
		r.atomFeed()
	case strings.EqualFold(root, "rss"), root == "RDF" && space == feedxml.RDF:
		r.begin(FormatRSS)
		if root != "RDF" {
			r.xml.SetNative(space)
		}
		r.rss()
	default:
		what := "the root element is " + clip(root)
		switch {
		case root == "entry" && feedxml.IsAtom(space):
			what = "this is an Atom entry document, which has one entry and no feed"
		case root == "Channel" && space == "http://purl.org/net/rss1.1#":
			what = "this is RSS 1.1, which is not supported: few readers know it"
		}
		r.fail(ReasonNotFeed, clauseFeed, what)
		if strings.EqualFold(root, "html") {
			r.failPage(r.err.Offset)
		}
	}
	for !r.xml.Stopped() && r.xml.Next() != xmlscan.Stop {
	}
}

// begin begins a document of the given format.
func (r *documentReader) begin(format Format) {
	r.doc.Format, r.xml.Format = format, feedxml.Format(format)
}

// entry reads the current element as an entry, unless reading ends here; odd if its name or
// namespace is misspelt.
func (r *documentReader) entry(odd bool) {
	switch {
	case r.headOnly:
		r.xml.Stop()
	case r.list.full():
		r.fail(ReasonLimit, clauseLimits, "")
		r.err.Err = tooManyEntries(r.limits.entries)
	default:
		r.entries.read(r.entries.begin(r.scopes[r.xml.Depth()-1], odd))
	}
}

// wrapped reads the entries in an element around them, unknown to all formats. In RSS
// 1.0, items has a list of references instead.
func (r *documentReader) wrapped(name string) {
	offset, depth := r.xml.Offset(), r.xml.Depth()
	if depth == len(r.scopes) {
		return
	}
	r.enter()
	noted := false
	for r.xml.Child(depth) {
		if r.xml.Local() != name || r.xml.Space() != r.xml.Native() && r.xml.Space() != "" && feedxml.RDFVersion(r.xml.Space()) == "" {
			continue
		}
		if !noted {
			r.note("entries-wrapped", "the entries are in an element which the format does not have", offset)
			noted = true
		}
		r.entry(r.xml.Row().Name != name || r.xml.Space() != r.xml.Cursor.Space())
	}
}

// finish completes the document, and returns the reader's error.
func (r *documentReader) finish() (*Document, error) {
	r.head.addHeader(r.header)
	notes, _ := r.xml.Notes()
	r.addNotes(notes)
	r.findDamage()
	if err := r.xml.Err(); err != nil && r.err == nil {
		r.err = r.scanError(err)
	}
	return r.reading.finish(&r.list)
}

// enter keeps the scope of the current element's children.
func (r *documentReader) enter() {
	sc := r.xml.NewScope()
	sc.Clean = r.xml.Clean()
	r.scopes[r.xml.Depth()] = sc
}

// children reads the children of feed or channel. Atom allows any order, so a link or
// a flag counts even after the entries.
func (r *documentReader) children(depth int, entry string) {
	r.enter()
	r.tell(feedxml.Begins)
	for r.xml.Child(depth) {
		row, odd := r.xml.NoteName()
		if !r.unnamed && r.isUnnamed(row) {
			r.noteUnnamed()
		}
		switch row.Form {
		case feedxml.Entries:
			r.entry(odd)
		case feedxml.Wrapper:
			r.wrapped(entry)
		default:
			r.tell(feedxml.Child)
			r.keep(row, false)
		}
	}
	r.tell(feedxml.Ends)
}

// headElement reads the current element of the head section, and reports whether the
// Document's fields express all of it.
func (r *documentReader) headElement(row *feedxml.Row) (known bool) {
	doc, offset, n := r.doc, r.xml.Offset(), row.Rank(r.xml.Format)
	isAtom := r.xml.Format == feedxml.FormatAtom
	if n == 0 || n < feedxml.FirstRank && isAtom && row.Feed == feedxml.MeansTitle || r.isStray(row) {
		return false
	}
	switch row.Feed {
	case feedxml.MeansID:
		doc.ID = cmp.Or(doc.ID, r.documentID()) // a second one is of an entry that has lost its beginning
		return isAtom
	case feedxml.MeansTitle:
		if !r.head.better(row) {
			return false
		}
		doc.Title = r.head.shorten(r.xml.Construct().Plain(), offset)
	case feedxml.MeansSubtitle:
		var text feedxml.Construct
		if isAtom {
			text = r.xml.Construct()
		} else {
			text = r.xml.TextOrMarkup(feedxml.Construct{Type: textPlain, Base: r.xml.Base()})
		}
		doc.Subtitle = r.head.shorten(text.Plain(), offset)
	case feedxml.MeansAuthor:
		if row.Form == feedxml.PersonForm {
			r.author()
			return isAtom
		}
		if !isAtom {
			r.channelAuthor(row)
		}
		return false
	case feedxml.MeansContributor, feedxml.MeansCategory, feedxml.MeansRights, feedxml.MeansGenerator:
		r.description(row)
		return false
	case feedxml.MeansUpdated: // 5005#22
		if !r.head.better(row) {
			return false
		}
		doc.Updated = r.timeText()
	case feedxml.MeansPublished:
		if isAtom {
			return false
		}
		if t := r.timeText(); !t.IsZero() && n > r.head.ranks[row.Feed] {
			doc.Published, r.head.ranks[row.Feed] = t, n
		}
		return false
	case feedxml.MeansLanguage:
		if (!isAtom || doc.Language == "") && r.head.better(row) {
			doc.Language = r.xml.LanguageText()
		}
		return false
	case feedxml.MeansIcon, feedxml.MeansLogo:
		r.icon(row)
		return false
	case feedxml.MeansLink:
		r.headLink(row)
	case feedxml.MeansSchedule:
		r.scheduleElement(row.Name)
		return false
	case feedxml.MeansFlag:
		r.flag()
	case feedxml.MeansDeleted:
		r.tombstone()
	case feedxml.MeansCoverage:
		r.coverage()
	default:
		return false
	}
	return true
}

// isStray reports whether the current element, after the entries of an ill-formed document, seems
// to be of an entry: the head section has one of its kind.
func (r *documentReader) isStray(row *feedxml.Row) bool {
	if r.xml.Mender == nil || len(r.doc.Entries) == 0 {
		return false
	}
	switch row.Feed {
	case feedxml.MeansID:
		return r.doc.ID != ""
	case feedxml.MeansTitle, feedxml.MeansUpdated:
		return r.head.ranks[row.Feed] > 0
	}
	return false
}

// The limits on the parts kept of a head section, which every document of a republished
// feed repeats.
const (
	maxHead  = 64 << 10 // bytes
	maxExtra = 1000     // authors, and other elements
)

// A headReader fills in the fields of a document's head section, within its quota.
type headReader struct {
	in    *reading
	ranks headRanks
	bytes int // the bytes kept of the head section

	fields  int      // the bytes of the fields filled in by elements kept
	podcast []Person // the authors of itunes:author, who count if there are no others
}

// headRanks are the ranks of the elements read so far, by their meanings: a better one
// replaces them.
type headRanks [feedxml.Meanings]int

// better reports whether an element is better than those of its meaning before, or is the
// format's own.
func (h *headReader) better(row *feedxml.Row) bool {
	n := row.Rank(feedxml.Format(h.in.doc.Format))
	if n <= h.ranks[row.Feed] && (n != feedxml.FirstRank || h.ranks[row.Feed] > n) {
		return false
	}
	h.ranks[row.Feed] = n
	return true
}

// fits reports whether the head section has room for n more bytes. If not, it makes a
// note of an element left out.
func (h *headReader) fits(n, offset int) bool {
	if h.bytes+n > maxHead {
		h.in.note("element-skipped", fmt.Sprintf("an element of the head section is left out: the head section takes more than %d bytes", maxHead), offset)
		return false
	}
	h.bytes += n
	return true
}

// holds reports whether the fields have room for n more bytes, of an element that also counts
// itself.
func (h *headReader) holds(n int) bool {
	h.fields += n
	return h.fields <= maxHead
}

// shorten returns a text of the head section, or "" if there is no room for it.
func (h *headReader) shorten(text string, offset int) string {
	if !h.fits(len(text), offset) {
		return ""
	}
	return text
}

// setIcon sets the feed's icon, unless it has a better one.
func (h *headReader) setIcon(url string, rank int) {
	if url != "" && rank > h.ranks[feedxml.MeansIcon] {
		h.in.doc.Icon, h.ranks[feedxml.MeansIcon] = url, rank
	}
}

// addHeader adds the properties only in the HTTP response, not in the document.
func (h *headReader) addHeader(header http.Header) {
	if header == nil {
		return
	}
	doc := h.in.doc
	modified := header.Get("Last-Modified")
	if t, err := http.ParseTime(modified); err == nil {
		doc.LastModified = t
	} else if t, ok := h.in.date(modified); ok { // not by RFC 9110, such as a day of one digit
		doc.LastModified = t
	}
	own := doc.Links
	links, lost := headerLinks(header.Values("Link"), doc.URL, h.in.limits.url)
	for _, link := range links {
		switch {
		case own.has(link.Rel):
		case len(doc.Links) >= h.in.limits.headLinks:
			doc.lose(link.Rel)
		default:
			doc.Links = append(doc.Links, link)
		}
	}
	for _, rel := range lost {
		doc.lose(rel)
	}
}

// keep reads the current element of the head section, and remembers it: elements
// without a meaning here for writing the document again, and the others for Feed.
func (r *documentReader) keep(row *feedxml.Row, known bool) {
	start, mended := r.xml.Offset(), r.xml.Mender.Mended()
	r.notice(row)
	known = known || r.doc.Format == FormatRSS && r.xml.Prefix() == "" && feedxml.RDFVersion(r.xml.Space()) != "" // RSS 1.0: not an element RSS 2.0 could have
	known = r.headElement(row) || known
	r.xml.Skip()
	if r.xml.Err() != nil || r.err != nil {
		return
	}
	sc, raw := r.scopes[r.xml.Depth()], r.text[start:r.xml.End()]
	switch {
	case known && (len(r.doc.known) == maxExtra || r.knownBytes+len(raw) > maxHead), len(r.doc.extra) == maxExtra:
		return
	case r.xml.Mender.Mended() > mended:
		raw = r.xml.Mended(raw, sc)
	}
	lends := sc.Lends(xmlscan.Loan{Raw: raw, Markup: raw})
	switch {
	case known && lends:
		r.knownBytes += len(raw)
		r.doc.known = append(r.doc.known, raw)
		if r.doc.scope == nil {
			r.doc.scope = sc
		}
	case known:
	case !lends:
		r.note("element-skipped", "an element of the head section is left out: it takes too much from its surroundings", start)
	case r.head.fits(len(raw), start):
		r.doc.extra, r.doc.scope = append(r.doc.extra, raw), sc
	}
}

// icon reads the URL of the feed's icon, or of its logo: the current element's text, an attribute,
// or the text of a child.
func (r *documentReader) icon(row *feedxml.Row) {
	rank := row.Rank(r.xml.Format)
	set := func(url string) {
		r.head.setIcon(url, rank)
		if row.Feed == feedxml.MeansLogo && url != "" && rank > r.head.ranks[row.Feed] {
			r.doc.Logo, r.head.ranks[row.Feed] = url, rank
		}
	}
	switch row.Form {
	case feedxml.HrefForm:
		href, _ := r.xml.Attr("", "href")
		set(r.xml.Reference(trim(href), r.xml.Offset()))
	case feedxml.ImageForm:
		for depth := r.xml.Depth(); r.xml.Child(depth); {
			if r.xml.Local() == "url" {
				set(r.xml.TextReference())
			}
		}
	default:
		set(r.xml.TextReference())
	}
}

// description reads the current element of the head section, which describes the feed.
func (r *documentReader) description(row *feedxml.Row) {
	doc := r.doc
	switch row.Feed {
	case feedxml.MeansContributor:
		if p := r.xml.AnyPerson(row); len(doc.Contributors) < maxExtra && r.head.holds(len(p.Name)+len(p.Email)+len(p.URI)) {
			doc.Contributors = append(doc.Contributors, personOf(p))
		}
	case feedxml.MeansCategory:
		c := Category(r.xml.Category(row))
		isThere := func(k Category) bool { return k == c || c.Label == "" && k.Term == c.Term && k.Scheme == c.Scheme }
		if c.Term != "" && len(doc.Categories) < maxExtra && !slices.ContainsFunc(doc.Categories, isThere) && r.head.holds(len(c.Term)+len(c.Scheme)+len(c.Label)) {
			doc.Categories = append(doc.Categories, c)
		}
	case feedxml.MeansRights:
		if r.head.better(row) {
			if t := r.xml.Rights(row); r.head.holds(len(t.Body) + len(t.Base)) {
				doc.Rights = Text(t)
			}
		}
	case feedxml.MeansGenerator:
		if g := r.xml.Generator(row); r.head.better(row) && r.head.holds(len(g.Name)+len(g.URI)+len(g.Version)) {
			doc.Generator = Generator(g)
		}
	}
}

// flag reads fh:complete and fh:archive (5005#2, 5005#14), and the elements drafts of
// the RFC had instead.
func (r *documentReader) flag() {
	offset := r.xml.Offset()
	switch r.xml.Local() {
	case "complete":
		r.doc.Complete = true
	case "archive":
		r.doc.Archive = true
	case "prev":
		r.note("legacy-draft", "fh:prev is read as a link with rel=\"prev-archive\"", offset)
		links := r.appendText(r.doc.Links, relPrevArchive)
		if len(links) == len(r.doc.Links) {
			r.doc.lose(relPrevArchive)
		}
		r.setLinks(links)
	case "incremental":
		incremental := strings.TrimSpace(r.xml.ElementText())
		r.note("legacy-draft", "fh:incremental comes from a draft of RFC 5005", offset)
		if incremental == "false" { // draft 04 §2: this document has all entries
			r.doc.Complete = true
		}
	}
}

// Head returns a document describing the same feed: the head section without entries,
// deletions, notes and response, and without the links and marks of its part in a history.
func (d *Document) Head() *Document {
	head := d.headOnly()
	head.Complete, head.Archive, head.Notes, head.Response, head.lost = false, false, nil, Response{}, nil
	head.Links = slices.DeleteFunc(slices.Clone(d.Links), func(l Link) bool { return isHistory(l.Rel) })
	return &head
}

// headOnly returns the document without its entries and texts.
func (d *Document) headOnly() Document {
	head := *d
	head.Entries, head.Deleted, head.gaps, head.text = nil, nil, nil, ""
	return head
}

// coverage reads the current element. A verdict unknown here makes a note and has no
// effect.
func (r *documentReader) coverage() {
	offset, depth := r.xml.Offset(), r.xml.Depth()
	c, tooMany := &Coverage{}, false
	attr := func(name string) string { value, _ := r.xml.Attr("", name); return trim(value) }
	if of := attr("of"); iri.IsHTTP(of) && len(of) <= r.limits.url {
		c.Of = iri.Redact(of)
	}
	switch kind := Kind(attr("kind")); kind {
	case KindPlain, KindComplete, KindPaged, KindArchived:
		c.Kind = kind
	}
	if at, err := time.Parse(time.RFC3339, attr("as-of")); err == nil {
		c.AsOf = at.UTC()
	}
	verdict := attr("verdict")
	err := c.Verdict.UnmarshalText([]byte(verdict))
	if err != nil {
		r.note("coverage-unread", "the feed declares how much it has of another one as "+clip(verdict)+", which is not a verdict", offset)
	}
	for r.xml.Child(depth) {
		switch {
		case r.xml.Cursor.Space() != feedxml.Coverage || r.xml.Local() != "gap":
		case len(c.Gaps) == feedxml.MaxDeclared:
			tooMany = true
		default:
			c.Gaps = append(c.Gaps, r.declaredGap())
		}
	}
	if c.Verdict == VerdictUnknown { // so it may be anything
		c.Verdict = VerdictPartial
	}
	if tooMany {
		r.note("coverage-unread", fmt.Sprintf("the feed declares more than %d gaps", feedxml.MaxDeclared), offset)
	}
	if err == nil || len(c.Gaps) > 0 {
		r.doc.Coverage = r.doc.Coverage.join(c)
	}
}

// declaredGap reads a gap of a Coverage.
func (r *documentReader) declaredGap() *Gap {
	reason, _ := r.xml.Attr("", "reason")
	href, _ := r.xml.Attr("", "href")
	reason = clip(trim(reason))
	g := &Gap{Reason: Reason(reason), Err: declaredGap(reason)}
	if advice[g.Reason] == "" || g.Reason == ReasonUnknown {
		g.Reason = ReasonDeclared
	}
	if href = trim(href); iri.IsHTTP(href) && len(href) <= r.limits.url {
		g.URL = iri.Redact(href)
	}
	return g
}

// An ill-formed document is read a second time and mended; package xmlscan says how.
// Well-formed documents never come here.

// mend returns a reader that has read the document of r again, mended, if it is not
// well-formed. It returns r if it is, or if mending does not help.
func (p Parser) mend(r *documentReader) *documentReader {
	if p.Strict || !r.isBroken() {
		return r
	}
	scanned, begin := r.text, 0
	if r.doc.Format == "" {
		var page bool
		if begin, page = xmlscan.FindFeed(r.text); page {
			r.failPage(0)
			return r
		}
		switch {
		case begin < 0:
			return r
		case begin > 0 && (xmlscan.IsQuoted(r.text, begin) || isProse(p.Header)):
			r.failAt(begin, ReasonNotFeed, clauseFeed, "the document only quotes a feed")
			return r
		}
		scanned = strings.Repeat(" ", begin) + r.text[begin:] // which keeps the offsets
	}
	again := p.newDocumentReader(r.text, r.doc.URL, feedxml.New(r.doc.URL))
	again.decoding = r.decoding
	again.addNotes(r.decoding)
	if begin > 0 {
		again.note("content-before-root", "there is something before the feed", 0)
	}
	again.xml.Cursor = xmlscan.Mend(scanned, again.limits.xml)
	again.xml.Around(r.doc.URL)
	again.document()
	if again.doc.Format == "" || len(again.doc.Entries) < len(r.doc.Entries) || r.isTruncated() && is[*xmlscan.LimitError](again.xml.Err()) {
		return r
	}
	return again
}

// isProse reports whether a document has a media type no feed has: its text may quote one.
func isProse(header http.Header) bool {
	kind, subtype, _ := strings.Cut(mediaType(header), "/")
	switch kind {
	case "message", "multipart", "image", "audio", "video", "font":
		return true
	}
	return strings.Contains(subtype, "javascript") || strings.Contains(subtype, "markdown") || subtype == "css" || subtype == "csv"
}

// isBroken reports whether mending may help.
func (r *documentReader) isBroken() bool {
	if r.err != nil {
		return r.err.Reason == ReasonNotFeed
	}
	if limit, ok := errors.AsType[*xmlscan.LimitError](r.xml.Err()); ok {
		return limit.Limit == "depth" || limit.Limit == "namespaces" // which elements without end tags may reach
	}
	return is[*xmlscan.SyntaxError](r.xml.Err())
}

func (r *documentReader) isTruncated() bool {
	syntax, ok := errors.AsType[*xmlscan.SyntaxError](r.xml.Err())
	return ok && syntax.Truncated
}

// notice remembers the current element of the head section, if only entries have such
// elements.
func (r *documentReader) notice(row *feedxml.Row) {
	if r.loose >= 0 || len(r.doc.Entries) == 0 {
		return
	}
	if row.Feed == feedxml.MeansNothing && row.Entry != feedxml.MeansNothing && row.Rank(r.xml.Format) == feedxml.FirstRank {
		r.loose = r.xml.Offset()
	}
}

// findDamage finds the losses mending has not restored, or may not have restored.
func (r *documentReader) findDamage() {
	if r.err != nil || r.xml.Err() != nil {
		return
	}
	for _, loss := range [...]struct {
		find    func(*documentReader) (at int, ok bool)
		outcome lossOutcome
		what    string
	}{ // the worst first
		{(*documentReader).swallowed, lossFails, "because of damage, an entry is inside another element, where it is not read"},
		{func(r *documentReader) (int, bool) { return r.entries.leftOut, r.entries.leftOut >= 0 }, lossFails, "an entry is left out because its id is damaged"},
		{func(r *documentReader) (int, bool) { return r.entries.twoInOne, r.entries.twoInOne >= 0 }, lossFails, "an entry has two ids, or two links instead of an id: damage has merged two entries"},
		{(*documentReader).outsideEntries, lossOfEntries, "a part of an entry is outside all entries: the rest is not read"},
		{func(r *documentReader) (int, bool) { return r.xml.Mender.Lost() }, lossOfEntries, "an entry has lost its beginning or its end: the rest of it is not read, nor what may have been next to it"},
		{func(r *documentReader) (int, bool) { return r.hidden(true) }, lossOfEntries, "a CDATA section without its end has the beginning of another entry, which is not read"},
		{(*documentReader).entryAfterRoot, lossOfEntries, "there are entries after the end of the root element, where they are not read"},
		{func(r *documentReader) (int, bool) { return r.xml.Mender.Outside() }, lossOfLink, "damage outside the entries: a link to older entries may be lost"},
		{func(r *documentReader) (int, bool) { return r.entries.linkAt, r.entries.linkAt >= 0 }, lossOfLink, "an entry without an end tag has a link that may belong to the feed"},
	} {
		if at, ok := loss.find(r); ok {
			r.failAt(at, ReasonMalformed, clauseXML, loss.what)
			if loss.outcome != lossFails {
				r.doc.damage, r.err = &damage{r.err, loss.outcome == lossOfEntries, 0, len(r.text)}, nil
				if lost, ok := r.xml.Mender.Lost(); ok && lost == at {
					r.doc.damage.from, r.doc.damage.to = r.xml.Mender.LostPart()
				}
			}
			return
		}
	}
}

// A lossOutcome says what follows from a loss.
type lossOutcome uint8

const (
	lossFails     lossOutcome = iota // the document cannot be read
	lossOfEntries                    // it can, but entries are missing
	lossOfLink                       // a link to older entries may be missing
)

// outsideEntries returns the place of a part of an entry which mending has put outside all entries.
func (r *documentReader) outsideEntries() (at int, ok bool) {
	return r.loose, r.loose >= 0 && r.xml.Mender.Mended() > 0
}

// swallowed returns the place of the first entry inside something else.
func (r *documentReader) swallowed() (at int, ok bool) {
	if at, ok = r.xml.Mender.Swallowed(); ok {
		return at, true
	}
	return r.hidden(false)
}

// hidden returns the place of the first comment, or CDATA section, that joins two entries:
// it lacks its end.
func (r *documentReader) hidden(cdata bool) (at int, ok bool) {
	local := "item"
	if r.doc.Format == FormatAtom {
		local = "entry"
	}
	for _, section := range r.xml.OddSections() {
		if strings.HasPrefix(section, "<![CDATA[") == cdata && xmlscan.JoinsEntries(section, local) {
			return strings.Index(r.text, section), true
		}
	}
	return 0, false
}

// entryAfterRoot returns the place of the first entry after the root element.
func (r *documentReader) entryAfterRoot() (at int, ok bool) {
	end := r.xml.Offset()
	tag := "<item"
	if r.doc.Format == FormatAtom {
		tag = "<entry"
	}
	at = xmlscan.IndexTag(r.text[end:], tag)
	return end + at, at >= 0
}

// A reading is the state of reading one document in any format: the document so far, its
// notes, and the error at its end.
type reading struct {
	doc    *Document
	head   *Document // the head entries point to; filled in at the end
	text   string    // the document, in UTF-8
	limits limits
	err    *ParseError

	dated dateResult      // the last date of the current entry
	zones map[string]bool // the zones with a note
}

// addNotes adds the scanner's notes.
func (r *reading) addNotes(notes []xmlscan.Note) {
	for _, n := range notes {
		r.note(n.Code, n.Message, n.Offset)
	}
}

const maxNotes = 100

func (r *reading) note(code, message string, offset int) {
	if len(r.doc.Notes) == maxNotes {
		return
	}
	line, column := xmlscan.Line(r.text, offset)
	r.doc.Notes = append(r.doc.Notes, Note{code, message, offset, line, column})
}

// date reads a date of any feed format, and reports whether it is one.
func (r *reading) date(s string) (t time.Time, ok bool) {
	if d := &r.dated; s != d.text { // both times of an entry are often the same
		d.text = s
		d.time, d.zone, d.ok = feedtime.Read(s)
	}
	return r.dated.time, r.dated.ok
}

// A dateResult is the outcome of reading a date; the zero value is the one of an empty text.
type dateResult struct {
	text string
	time time.Time
	zone feedtime.Zone
	ok   bool
}

// noteZone notes an ambiguous zone of the last date, once for each zone, and an unknown
// one, once for all of them.
func (r *reading) noteZone(offset int) {
	z := r.dated.zone
	if z.Doubt == feedtime.Sure {
		return
	}
	key, code, means := strings.ToLower(z.Name), "zone-ambiguous", time.Time{}.In(z.Location()).Format("-07:00")
	if z.Doubt == feedtime.Unknown {
		key, code, means = "", "zone-unknown", "UTC"
	}
	if r.zones[key] {
		return
	}
	if r.zones == nil {
		r.zones = map[string]bool{}
	}
	r.zones[key] = true
	r.note(code, fmt.Sprintf("the time zone %s is read as %s", clip(z.Name), means), offset)
}

// parseTime reads a date, and notes one it cannot read.
func (r *reading) parseTime(value string, offset int) time.Time {
	t, ok := r.date(value)
	if !ok && trim(value) != "" {
		r.note("date-unreadable", "this is not a date: "+clip(trim(value)), offset)
	}
	r.noteZone(offset)
	return t
}

// absolute resolves a reference; "" with a note if the result exceeds the limit.
func (r *reading) absolute(base, ref string, offset int) string {
	return feedxml.Absolute(base, ref, r.limits.url, r.note, offset)
}

// failAt ends the reading.
func (r *reading) failAt(offset int, reason Reason, clause, what string) {
	r.err = r.failure(offset, reason, clause, what)
}

// failPage ends the reading, because the document is a web page.
func (r *reading) failPage(offset int) {
	r.failAt(offset, ReasonNotFeed, clauseFeed, "")
	r.err.Err = ErrWebPage
}

func (r *reading) failure(offset int, reason Reason, clause, what string) *ParseError {
	line, column := xmlscan.Line(r.text, offset)
	return &ParseError{
		URL: r.doc.URL, Reason: reason, Clause: clause,
		Offset: offset, Line: line, Column: column, Err: errors.New(what),
	}
}

// scanError returns the ParseError for an error of the scanner.
func (r *reading) scanError(err error) *ParseError {
	e := &ParseError{URL: r.doc.URL, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	var syntax *xmlscan.SyntaxError
	var limit *xmlscan.LimitError
	switch {
	case errors.As(err, &syntax):
		e.Offset, e.Err = syntax.Offset, errors.New(syntax.Msg)
		if syntax.Truncated {
			e.Reason = ReasonTruncated
		}
	case errors.As(err, &limit):
		e.Offset, e.Reason, e.Clause = limit.Offset, ReasonLimit, clauseLimits
		e.Err = errors.New(limit.Detail())
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
}

func limitError(url string, exceeded error) *ParseError {
	return &ParseError{URL: url, Reason: ReasonLimit, Clause: clauseLimits, Err: exceeded}
}

// finish completes the document after its last element.
func (r *reading) finish(entries *entryList) (*Document, error) {
	entries.addGaps()
	r.doc.text = r.text
	*r.head = r.doc.headOnly()
	entries.noteShared()
	tellApart(r.doc.Entries)
	switch {
	case r.err == nil:
		return r.doc, nil
	case r.doc.Format == "":
		return nil, r.err
	}
	return r.doc, r.err
}
