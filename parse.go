package feedhistory

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
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
		return nil, limitError(base, "bytes", limit)
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

// A ParseError says why, and where, a document could not be read.
type ParseError struct {
	URL    string // of the document; "" if unknown
	Reason Reason // ReasonMalformed, Truncated, Limit or NotFeed
	Clause string // of the specification that the document breaks, or that asks for the limit
	Offset int    // of the document as decoded to UTF-8, in bytes
	Line   int    // from 1; 0 where there is no place
	Column int    // from 1, in characters
	Err    error  // in detail
}

// Error returns the place and what is wrong there.
func (e *ParseError) Error() string {
	place := e.URL
	if e.Line > 0 {
		place = strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", place, e.Line, e.Column), ":")
	}
	if place != "" {
		place += ": "
	}
	return fmt.Sprintf("%s%s: %v (%s)", place, e.Reason, e.Err, e.Clause)
}

// Unwrap returns the error in detail.
func (e *ParseError) Unwrap() error { return e.Err }

type stringError string

func (e stringError) Error() string { return string(e) }

const (
	clauseXML    = "RFC 4287 §2: a feed document is well-formed XML"
	clauseJSON   = "JSON Feed 1.1: a feed is a JSON object"
	clauseLimits = "RFC 5005 §6: clients should be mindful of resource limits"
	clauseFeed   = "RFC 5005 §1.2: a feed document"
)

func limitError[N int | int64](url, what string, limit N) *ParseError {
	return &ParseError{
		URL: url, Reason: ReasonLimit, Clause: clauseLimits,
		Err: fmt.Errorf("more than %d %s", limit, what),
	}
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

// addHeader lets the HTTP response speak where the document is silent.
func (r *reader) addHeader(h http.Header) {
	if h == nil {
		return
	}
	modified := h.Get("Last-Modified")
	if t, err := http.ParseTime(modified); err == nil {
		r.doc.LastModified = t
	} else if t, ok := r.dates.read(modified); ok { // such as a day of one digit
		r.doc.LastModified = t
	}
	own := r.doc.Links
	links, lost := headerLinks(h.Values("Link"), r.doc.URL, r.limits.URL)
	for _, link := range links {
		switch {
		case own.has(link.Rel):
		case len(r.doc.Links) >= r.limits.HeadLinks:
			r.doc.lose(link.Rel)
		default:
			r.doc.Links = append(r.doc.Links, link)
		}
	}
	for _, rel := range lost {
		r.doc.lose(rel)
	}
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

// finishHead completes what entries point to.
func (r *reader) finishHead() {
	r.doc.text = r.text
	*r.head = r.doc.headOnly()
}

// headOnly returns the document without what makes it large.
func (d *Document) headOnly() Document {
	head := *d
	head.Entries, head.Deleted, head.Gaps, head.text, head.raw = nil, nil, nil, "", ""
	return head
}

func (r *reader) scanError(err error) *ParseError {
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
		e.Err = fmt.Errorf("more than %d %s", limit.Max, limit.Limit)
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
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

// documentTime is the time that decides between duplicates that have the same
// update time or none (5005#21); zero if neither document nor response has one.
func (d *Document) documentTime() time.Time {
	if d.Updated.IsZero() {
		return d.LastModified
	}
	return d.Updated
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
