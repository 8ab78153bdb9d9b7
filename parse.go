package feedhistory

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Limits bound what one document may cost to read. A field that is zero or
// negative means its default, which real feeds do not reach.
//
// A document beyond a limit is refused with a *ParseError. Three limits concern
// a single entry, which is then left out and makes a Gap of the document: the
// length of its id, 4,096 links, and what it takes from its surroundings.
//
// That last one is fixed. The namespaces, xml:base and xml:lang of a document,
// and the base in front of each relative reference, are written once but count
// for each entry. An entry may take 16 times its own length and 1 KiB of them;
// no honest entry comes near. So everything that is made of a document of n bytes
// (its links, texts and XML, and the document in another format) comes to at most
// 80 times n, and 4 KiB for each entry. Of a head section 64 KiB are kept, since
// each document of a feed that is published again repeats it.
type Limits struct {
	Bytes      int64 // Bytes is the size of a document, decompressed and decoded; 16 MiB.
	Ratio      int   // Ratio is that of decompressed to compressed size, beyond the first MiB; 200.
	Depth      int   // Depth is the number of elements open at once; 256.
	Attributes int   // Attributes is the number of attributes of one element; 256.
	Namespaces int   // Namespaces is the number of namespaces in scope at one place; 256.
	Elements   int   // Elements is the number of elements of a document; 1,000,000.
	Entries    int   // Entries is the number of entries of a document; 50,000.
	HeadLinks  int   // HeadLinks is the number of links in a head section; 64.
	ID         int   // ID is the length of an entry's or feed's id in bytes; 4 KiB.
	URL        int   // URL is the length of a link's target in bytes; 8 KiB.
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
	Limits Limits

	// Header is that of the HTTP response, nil for none. It contributes the
	// charset of Content-Type, which goes before the XML declaration's where the
	// bytes allow for it (RFC 7303 §3), Last-Modified, and those Link relations
	// that the document itself does not have.
	Header http.Header

	// Strict ends the reading of XML where it is not well-formed, as JSON's does
	// in any case, but for what harms nobody, such as a bare ampersand. If it is
	// not set the document is mended there.
	Strict bool
}

// Parse reads one feed document with the default limits. Relative references
// resolve against base, the URL where the document was found; it may be empty.
//
// The error is a *ParseError, or what r returned. With a *ParseError the
// document may still be there, with what could be read before the damage.
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

// parse reads a whole document as it came off the wire.
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

// peek returns what the beginning of a document says of the chain it belongs
// to, and whether it is the whole head section: an entry has begun. Link header
// fields are left out, as what follows may speak against them.
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

// textReader returns a reader that still lacks its scanner.
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

// finish completes the document, and says what was wrong with it.
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

// addNotes takes over the scanner's notes.
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
	zone  feedtime.Zone   // of the last date
	noted map[string]bool // zones that a note has been made of
}

// read reads a date of any feed format, and reports whether it could.
func (d *dateReader) read(s string) (t time.Time, ok bool) {
	t, d.zone, ok = feedtime.Read(s)
	return t, ok
}

// noteZone notes that the zone of the last date may be another than was taken:
// once for each zone, and once for all that are unknown.
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

// A reader turns the scanner's tokens into a Document. What the XML formats
// have in common is here; atom.go and rss.go have what they do not.
type reader struct {
	s        *xmlscan.Scanner
	text     string
	limits   Limits
	header   http.Header
	doc      *Document
	head     *Document // what entries point to; filled in at the end
	headOnly bool      // stop where the first entry begins
	headDone bool
	err      *ParseError
	decoding []xmlscan.Note // of the text's characters

	mending
	exact  string            // the last namespace that is a usual one
	spaces map[string]string // what unusual namespaces are meant to be
	native string            // the namespace of the root, or of the entry that is read again
	lang   string            // xml:lang around that entry
	bases  []baseURL         // of xml:base in scope
	scopes [3]*scope         // what children of the root, and of the channel, inherit

	entries []Entry       // allocated together, as are
	links   Links         // the entries' links
	odd     bool          // names are misspelt in the current entry
	own     Links         // of the current entry
	lent    int           // bytes that its links take; negative: too many
	start   int           // where it begins
	reach   xmlscan.Reach // of its own base
	length  int           // of an entry in JSON
	item    *jsonItem     // memory for the next
	inHead  bool          // the current link is the head section's
	dates   dateReader
	polls   scheduleReader

	ranks        headRanks
	headBytes    int // of the head section that are kept
	knownBytes   int // and of what Feed alone needs
	skipped      int // entries that were left out
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

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// proceed reports whether reading goes on.
func (r *reader) proceed() bool { return r.err == nil && !r.headDone }

// child moves to the next child element, unless reading has come to an end.
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
