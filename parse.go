package feedhistory

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Parser reads feed documents. Its zero value is ready to use.
type Parser struct {
	Limits Limits // Limits bound the cost of reading the document; zero means the defaults.

	// Header is the header of the HTTP response; nil means there is none. It contributes
	// the charset of Content-Type, which takes precedence over the XML declaration's if
	// the bytes permit (RFC 7303 §3), Last-Modified, and links with relations missing
	// from the document itself. The document decides about the format; a Content-Type
	// of another one leads to a Note.
	Header http.Header

	// Strict makes the parser stop where XML or JSON is not well-formed, except at
	// harmless errors of XML, such as a bare ampersand, and take UTF-8 encoded twice as
	// it is. Otherwise it mends the document there.
	Strict bool
}

// Parse reads one feed document with the default limits. Relative references resolve
// against base, the URL where the document was found, which may be empty.
//
// The error is a *ParseError, or one from r: the context's, if it has cut short a
// response. Together with a *ParseError, Parse may return the part of the document
// before the error.
func Parse(r io.Reader, base string) (*Document, error) { return Parser{}.Parse(r, base) }

// Parse is like the function Parse, with p's settings.
func (p Parser) Parse(r io.Reader, base string) (*Document, error) {
	if err := checkNumbers("Parser", p.Limits.numbers()); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("feedhistory: Parse: the io.Reader is nil")
	}
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
	_, err := io.Copy(&text, io.LimitReader(r, max(limit, limit+1))) // the largest limit does not overflow
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
		doc.noteMediaType(p.Header)
	}
	return doc, err
}

// newReading returns a reading of a text from the given URL.
func (p Parser) newReading(text, url string) reading {
	return reading{
		text: text, limits: p.Limits.withDefaults(),
		doc: &Document{URL: url}, head: new(Document),
	}
}

// noteMediaType notes a Content-Type that promises another format. General types, such as
// application/xml and text/plain, promise none.
func (d *Document) noteMediaType(header http.Header) {
	declared := mediaType(header)
	var promised Format
	switch declared {
	default:
		return
	case "text/html", "application/xhtml+xml": // a web page, and no feed
	case "application/atom+xml":
		promised = Atom
	case "application/rss+xml":
		promised = RSS
	case "application/feed+json", "application/json":
		promised = JSONFeed
	}
	if promised == d.Format {
		return
	}
	note := Note{Code: "media-type-mismatch", Message: "Content-Type is " + declared + ", but the document is read as " +
		name(d.Format, "", "Atom", "RSS", "JSON Feed")}
	d.Notes = slices.Insert(d.Notes[:min(len(d.Notes), maxNotes-1)], 0, note)
}

// mediaType returns a response's media type in lower case, without its parameters.
func mediaType(header http.Header) string {
	kind, _, _ := strings.Cut(strings.ToLower(header.Get("Content-Type")), ";")
	return strings.TrimSpace(kind)
}

func (p Parser) parseXML(data, base string) (*Document, error) {
	r, err := p.newReader(data, base)
	if err != nil {
		return nil, err
	}
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
	r, err := p.newReader(prefix, base)
	if err != nil {
		return nil, false
	}
	r.headOnly = true
	r.document()
	return r.doc, r.Stopped() && r.err == nil
}

func (p Parser) newReader(data, base string) (*documentReader, error) {
	decode := xmlscan.DecodeOnce
	if p.Strict {
		decode = xmlscan.Decode
	}
	text, notes, err := decode(data, p.Header.Get("Content-Type"))
	if err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	}
	text = xmlscan.Expand(text)
	r := p.newDocumentReader(text, base)
	r.Cursor, r.decoding = xmlscan.New(text, p.scanLimits()), notes
	r.Around(base)
	r.addNotes(notes)
	return r, nil
}

func (p Parser) scanLimits() xmlscan.Limits {
	l := p.Limits
	return xmlscan.Limits{Depth: l.Depth, Attributes: l.Attributes, Namespaces: l.Namespaces, Elements: l.Elements}
}
