package feedhistory

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/quote"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Limits bound what one document may cost to read. A field that is zero or negative
// means its default, which real feeds do not reach.
//
// A document that exceeds a limit is refused with a *ParseError. Three limits concern
// a single entry, which is then left out and becomes a Gap of the document: the length
// of its id, 4,096 links, and what it takes from its surroundings.
//
// The last one is fixed. A document has its namespaces, xml:base and xml:lang once,
// but each entry needs a copy, and each relative reference needs the base. An entry
// may take 16 times its own length plus 1 KiB of them; no honest entry comes near
// that. So everything derived from a document of n bytes (its links, texts and XML,
// and the document in another format) has at most 80 times n bytes, plus 4 KiB for
// each entry. Only 64 KiB of a head section are kept, because every document of a
// republished feed repeats it.
type Limits struct {
	Bytes      int64 // Bytes is the size of a document, decompressed and decoded; the default is 16 MiB.
	Ratio      int   // Ratio is that of decompressed to compressed size, beyond the first MiB; the default is 200.
	Depth      int   // Depth is the number of nested elements; the default is 256.
	Attributes int   // Attributes is the number of attributes of one element; the default is 256.
	Namespaces int   // Namespaces is the number of namespaces in scope at one place; the default is 256.
	Elements   int   // Elements is the number of elements of a document; the default is 1,000,000.
	Entries    int   // Entries is the number of entries of a document; the default is 50,000.
	HeadLinks  int   // HeadLinks is the number of links in a head section; the default is 64.
	ID         int   // ID is the length of an entry's or feed's id in bytes; the default is 4 KiB.
	URL        int   // URL is the length of a link's target in bytes; the default is 8 KiB.
}

// withDefaults fills in the fields that are zero or negative.
func (l Limits) withDefaults() Limits {
	or := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	if l.Bytes <= 0 {
		l.Bytes = 16 << 20
	}
	or(&l.Ratio, 200)
	or(&l.Entries, 50_000)
	or(&l.HeadLinks, 64)
	or(&l.ID, 4<<10)
	or(&l.URL, 8<<10)
	return l
}

// A Parser reads feed documents. Its zero value is ready to use.
type Parser struct {
	Limits Limits // Limits are what a document may cost to read; zero means the defaults.

	// Header is the header of the HTTP response; nil means that there is none. It
	// contributes the charset of Content-Type, which takes precedence over that of
	// the XML declaration if the bytes permit (RFC 7303 §3), Last-Modified, and
	// links with relations that the document itself does not have.
	Header http.Header

	// Strict makes the parser stop where XML is not well-formed, except at harmless
	// errors, such as a bare ampersand. Otherwise it mends the document there. It
	// always stops where JSON is not well-formed.
	Strict bool
}

// Parse reads one feed document with the default limits. Relative references resolve
// against base, the URL where the document was found, which may be empty.
//
// The error is a *ParseError, or one that r returned. Together with a *ParseError,
// Parse may return the part of the document before the error.
func Parse(r io.Reader, base string) (*Document, error) { return Parser{}.Parse(r, base) }

// Parse is like the function Parse, with p's settings.
func (p Parser) Parse(r io.Reader, base string) (*Document, error) {
	limit := p.Limits.withDefaults().Bytes
	text, err := read(r, limit)
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &ParseError{URL: base, Reason: ReasonLimit, Clause: clauseLimits, Err: &LimitError{Limit: "bytes", Max: limit}}
	}
	return p.parse(text, base)
}

// read reads all of r, or one byte more than the limit.
func read(r io.Reader, limit int64) (string, error) {
	var text strings.Builder
	if known, ok := r.(interface { // strings.Reader, bytes.Buffer …
		io.WriterTo
		Len() int
	}); ok && int64(known.Len()) <= limit {
		text.Grow(known.Len())
		_, err := known.WriteTo(&text)
		return text.String(), err
	}
	_, err := io.Copy(&text, io.LimitReader(r, limit+1))
	return text.String(), err
}

// parse reads a whole document as received.
func (p Parser) parse(data, base string) (doc *Document, err error) {
	if isJSON(data) {
		doc, err = p.parseJSON(data, base)
	} else {
		doc, err = p.parseXML(data, base)
	}
	if doc != nil {
		doc.raw = data
	}
	return doc, err
}

func (p Parser) parseXML(data, base string) (*Document, error) {
	r, err := p.newReader(data, base)
	if err != nil {
		return nil, err
	}
	r.document()
	return p.mend(r).finish()
}

// peek reads the head section from the beginning of a document, and reports whether
// that has all of it: an entry has begun. It ignores Link header fields, which later
// elements may override.
func (p Parser) peek(prefix, base string) (*Document, bool) {
	if isJSON(prefix) {
		return nil, false
	}
	r, err := p.newReader(prefix, base)
	if err != nil {
		return nil, false
	}
	r.headOnly = true
	r.document()
	return r.doc, r.headDone && r.err == nil
}

func (p Parser) newReader(data, base string) (*reader, error) {
	text, notes, err := xmlscan.Decode(data, p.Header.Get("Content-Type"))
	if err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	}
	r := p.textReader(text, base)
	r.s = xmlscan.New(text, p.scanLimits())
	r.decoding = notes
	r.s.Around(base)
	r.addNotes(notes)
	return r, nil
}

// textReader returns a reader without its scanner.
func (p Parser) textReader(text, base string) *reader {
	return &reader{
		text: text, limits: p.Limits.withDefaults(), header: p.Header,
		doc: &Document{URL: base}, head: new(Document), mending: mending{leftOut: -1, twoInOne: -1, loose: -1},
	}
}

func (p Parser) scanLimits() xmlscan.Limits {
	l := p.Limits
	return xmlscan.Limits{Depth: l.Depth, Attributes: l.Attributes, Namespaces: l.Namespaces, Elements: l.Elements}
}

// finish completes the document, and returns what was wrong with it.
func (r *reader) finish() (*Document, error) {
	r.addHeader(r.header)
	notes, _ := r.s.Notes()
	r.addNotes(notes)
	r.findDamage()
	r.addGaps()
	r.finishHead()
	r.tellApart()
	if err := r.s.Err(); err != nil && r.err == nil {
		r.err = r.scanError(err)
	}
	if r.err != nil {
		if r.doc.Format == 0 {
			return nil, r.err
		}
		return r.doc, r.err
	}
	return r.doc, nil
}

// addNotes adds the scanner's notes.
func (r *reader) addNotes(notes []xmlscan.Note) {
	for _, n := range notes {
		r.note(n.Code, n.Message, n.Offset)
	}
}

const maxNotes = 100

func (r *reader) note(code, message string, offset int) {
	if len(r.doc.Notes) == maxNotes {
		return
	}
	line, column := xmlscan.Line(r.text, offset)
	r.doc.Notes = append(r.doc.Notes, Note{code, message, offset, line, column})
}

// A dateReader reads the dates of one document.
type dateReader struct {
	zone  feedtime.Zone   // the zone of the last date
	noted map[string]bool // the zones that have a note
}

// read reads a date of any feed format, and reports whether it could.
func (d *dateReader) read(s string) (t time.Time, ok bool) {
	t, d.zone, ok = feedtime.Read(s)
	return t, ok
}

// noteZone makes a note if the zone of the last date is ambiguous, once for each
// zone, or unknown, once for all of them.
func (r *reader) noteZone(offset int) {
	z := r.dates.zone
	if z.Doubt == feedtime.Sure {
		return
	}
	key, code, means := strings.ToLower(z.Name), "zone-ambiguous", time.Time{}.In(z.Location()).Format("-07:00")
	if z.Doubt == feedtime.Unknown {
		key, code, means = "", "zone-unknown", "UTC"
	}
	if r.dates.noted[key] {
		return
	}
	if r.dates.noted == nil {
		r.dates.noted = map[string]bool{}
	}
	r.dates.noted[key] = true
	r.note(code, fmt.Sprintf("the time zone %s is read as %s", clip(z.Name), means), offset)
}

// A reader turns the scanner's tokens into a Document. atom.go and rss.go have the
// parts in which the XML formats differ.
type reader struct {
	s        *xmlscan.Cursor
	text     string
	limits   Limits
	header   http.Header
	doc      *Document
	head     *Document // the head that entries point to; filled in at the end
	headOnly bool      // stop where the first entry begins
	headDone bool
	err      *ParseError
	decoding []xmlscan.Note // the notes on the text's characters

	mending
	exact  string            // the last of the common namespaces
	spaces map[string]string // the meanings of the other namespaces
	native string            // the namespace of the root, or of the entry that is read again
	lang   string            // xml:lang around that entry
	bases  []baseURL         // the xml:base attributes in scope
	scopes [3]*scope         // what the children of the root, and of the channel, inherit

	entries []Entry       // memory for entries, allocated together
	links   Links         // memory for their links
	odd     bool          // the current entry has misspelt names
	own     Links         // the current entry's links
	lent    int           // the bytes that they take; negative if there are too many
	start   int           // where the current entry begins
	reach   xmlscan.Reach // the reach of its own base
	length  int           // the length of the current entry in JSON
	item    *jsonItem     // memory for the next item
	inHead  bool          // the current link is in the head section
	dates   dateReader
	polls   scheduleReader

	ranks        headRanks
	headBytes    int // the bytes that are kept of the head section
	knownBytes   int // the bytes that are kept for Feed only
	skipped      int // the number of entries that were left out
	firstSkipped *ParseError
}

// document reads the root element.
func (r *reader) document() {
	if !r.s.Child(0) {
		return
	}
	space, root := r.space(), r.s.Local()
	switch {
	case strings.EqualFold(root, "feed") && (vocab.IsAtom(space) || space == ""):
		r.spelt("feed")
		r.doc.Format = Atom
		r.atomFeed()
	case strings.EqualFold(root, "rss"):
		r.doc.Format = RSS
		r.native = space
		r.rss()
	case root == "RDF" && space == vocab.RDF:
		r.doc.Format = RSS
		r.rss()
	default:
		r.fail(ReasonNotFeed, clauseFeed, "the root element is "+clip(root))
		if strings.EqualFold(root, "html") {
			r.failPage(r.err.Offset)
		}
		return
	}
	for r.proceed() && r.s.Next() != xmlscan.Stop {
	}
}

// clip shortens text that a message quotes.
func clip(s string) string { return quote.Clip(s, 40) }

// proceed reports whether to continue reading.
func (r *reader) proceed() bool { return r.err == nil && !r.headDone }

// child moves to the next child element, unless reading has ended.
func (r *reader) child(depth int) bool { return r.proceed() && r.s.Child(depth) }

// fail ends reading at the current token.
func (r *reader) fail(reason Reason, clause, what string) {
	r.failAt(r.s.Offset(), reason, clause, what)
}

func (r *reader) failAt(offset int, reason Reason, clause, what string) {
	r.err = r.failure(offset, reason, clause, what)
}

// failPage ends reading, because the document is a web page.
func (r *reader) failPage(offset int) {
	r.failAt(offset, ReasonNotFeed, clauseFeed, "")
	r.err.Err = ErrWebPage
}

func (r *reader) failure(offset int, reason Reason, clause, what string) *ParseError {
	line, column := xmlscan.Line(r.text, offset)
	return &ParseError{
		URL: r.doc.URL, Reason: reason, Clause: clause,
		Offset: offset, Line: line, Column: column, Err: errors.New(what),
	}
}

// language returns xml:lang at the current element.
func (r *reader) language() string {
	if lang, ok := r.s.Lang(); ok {
		return lang
	}
	return r.lang
}

// parseTime reads a date; a note says where one cannot be read.
func (r *reader) parseTime(value string, offset int) time.Time {
	t, ok := r.dates.read(value)
	if !ok && trim(value) != "" {
		r.note("date-unreadable", "this is not a date: "+clip(trim(value)), offset)
	}
	r.noteZone(offset)
	return t
}

// timeText reads the current element's text as a date.
func (r *reader) timeText() time.Time {
	offset := r.s.Offset()
	return r.parseTime(r.s.ElementText(), offset)
}

// plainText reads the current element's text, without the white space around it.
func (r *reader) plainText() string { return trim(r.s.ElementText()) }

func trim(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' { // nearly always
		return s
	}
	return strings.Trim(s, " \t\r\n")
}
