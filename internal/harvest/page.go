// Package harvest has what the protocols of package harvest share inside: the pages of data replication,
// read by its consumer and by the checks; the query of a producer; and the answers of its handler.
package harvest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Fetcher returns a fetcher with the settings of a Client, for pages of up to
// most bytes, because the limit of a Client is for documents. When it is no
// longer needed, done closes its connections.
func Fetcher(c *feedhistory.Client, most int64) (f *feedhistory.Client, done func()) {
	f, done = settings.Cloned(c)
	f.MaxBytes = most
	return f, done
}

// A Page is the header of a page, with its entities.
type Page struct {
	Requested string // the requested URL
	URL       string // the URL after redirects
	Status    int
	Header    http.Header

	Self, Prev, Next string    // absolute URLs; "" if there is none
	Modified         time.Time // zero if missing or invalid

	body   io.ReadCloser
	cancel context.CancelFunc
}

// longestPage is the time one page may take, however steadily its bytes come.
const longestPage = time.Hour

// Open requests a page by GET or HEAD. Close the page.
func Open(ctx context.Context, f *feedhistory.Client, method, address string) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, longestPage)
	resp, err := settings.Get(ctx, f, method, address, http.Header{"Accept": {"multipart/*, */*;q=0.1"}})
	if err != nil {
		cancel()
		return nil, err
	}
	p := &Page{
		Requested: address, URL: resp.Request.URL.String(), Status: resp.StatusCode, Header: resp.Header, body: resp.Body, cancel: cancel,
	}
	p.Modified, _ = ParseTime(resp.Header.Get(FieldModified))
	links := Links(resp.Header, p.URL)
	for rel, at := range map[string]*string{"self": &p.Self, "previous": &p.Prev, "next": &p.Next} {
		*at = iri.WithoutFragment(links[rel]) // a fragment does not identify a page
	}
	return p, nil
}

// Close ends the request.
func (p *Page) Close() error {
	defer p.cancel()
	return p.body.Close()
}

// IsEmpty reports whether the answer means there is no page yet
// (datareplication#feed-1).
func (p *Page) IsEmpty() bool { return p.Status == http.StatusNoContent }

// Key returns the URL that identifies a page: the one it gives itself, or else the one
// where it was found.
func (p *Page) Key() string {
	if p.Self != "" {
		return p.Self
	}
	return p.URL
}

// Is reports whether a URL identifies the page.
func (p *Page) Is(address string) bool {
	return address == p.Self || address == p.URL || address == p.Requested
}

// Body returns the page as it was sent.
func (p *Page) Body() io.Reader { return p.body }

// An Index is the list of a snapshot's pages (datareplication#snapshot-1).
type Index struct {
	ID        string   `json:"id"`
	CreatedAt string   `json:"createdAt"`
	Pages     []string `json:"pages"`
}

// mostIndex is the maximum size of an index: about a million pages.
const mostIndex = 128 << 20

// Index reads the page as an index.
func (p *Page) Index() (i Index, err error) {
	err = json.NewDecoder(io.LimitReader(p.body, mostIndex)).Decode(&i)
	return i, err
}

// The header fields of pages and entities.
const (
	FieldType      = "Content-Type"
	FieldModified  = "Last-Modified"
	FieldID        = "Content-Id" // in the form of net/textproto
	FieldOperation = "Operation-Type"
	FieldLink      = "Link"
)

// ParseTime reads the stamp in a Last-Modified leniently, as the dates of feeds are read: a day
// may have one digit, a year two, and the zone may be any that means the same everywhere.
func ParseTime(s string) (time.Time, error) {
	t, zone, ok := feedtime.Read(s)
	if !ok || zone.Doubt != feedtime.Sure {
		return time.Time{}, fmt.Errorf("%q is not a time", Clip(s))
	}
	return t.UTC().Truncate(time.Second), nil
}

// mostBoundary is the maximum length of a boundary; RFC 2046 allows 70.
const mostBoundary = 200

// Boundary returns the boundary of a multipart type with any subtype. It also
// reads boundaries that lack the required quotes, or have typographic ones.
func Boundary(contentType string) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, params = lenientType(contentType)
	}
	b := params["boundary"]
	switch {
	case !strings.HasPrefix(strings.ToLower(kind), "multipart/"):
		return "", fmt.Errorf("the media type %q is not multipart", Clip(contentType))
	case b == "":
		return "", fmt.Errorf("the media type %q has no boundary", Clip(contentType))
	case len(b) > mostBoundary:
		return "", fmt.Errorf("the boundary has %d bytes; the maximum is %d", len(b), mostBoundary)
	case strings.ContainsAny(b, "\r\n"):
		return "", fmt.Errorf("the boundary %q has line breaks", Clip(b))
	}
	return b, nil
}

func lenientType(s string) (kind string, params map[string]string) {
	kind, rest, _ := strings.Cut(s, ";")
	params = map[string]string{}
	for rest != "" {
		var name, value string
		name, rest, _ = strings.Cut(rest, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		value, rest = lenientValue(strings.TrimLeft(rest, " \t"))
		if _, again := params[name]; !again {
			params[name] = value
		}
	}
	return strings.TrimSpace(kind), params
}

// lenientValue reads a parameter's value up to the next semicolon.
func lenientValue(s string) (value, rest string) {
	for _, quotes := range [...][2]string{{`"`, `"`}, {"“", "”"}} {
		if inner, ok := strings.CutPrefix(s, quotes[0]); ok {
			if value, rest, ok = strings.Cut(inner, quotes[1]); ok {
				_, rest, _ = strings.Cut(rest, ";")
				return value, rest
			}
		}
	}
	value, rest, _ = strings.Cut(s, ";")
	return strings.Trim(value, " \t\"“”"), rest
}

// Links returns the targets of the links in a page's header by relation, the first one of
// each, as the feed reader reads them (feedhistory.HeaderLinks). A target may lack its angle
// brackets.
func Links(h http.Header, base string) map[string]string {
	const most = 1000
	var fields []string
	for _, line := range h.Values(FieldLink) {
		for len(fields) < most {
			line = bracketed(line)
			_, params, rest := iri.CutLink(line)
			if params == nil {
				break
			}
			fields, line = append(fields, line[:len(line)-len(rest)]), rest
		}
	}
	links := map[string]string{}
	for _, link := range feedhistory.HeaderLinks(http.Header{FieldLink: fields}, base) {
		if _, again := links[link.Rel]; !again {
			links[link.Rel] = link.Href
		}
	}
	return links
}

// bracketed adds the missing angle brackets to the first target of a line.
func bracketed(line string) string {
	line = strings.TrimLeft(line, " \t,")
	if i := strings.IndexByte(line, ';'); i >= 0 && line[0] != '<' {
		return "<" + strings.TrimSpace(line[:i]) + ">" + line[i:]
	}
	return line
}

// Operation returns the operation in an entity's header: PUT, DELETE or PATCH;
// any other word unchanged, in capitals; "" if there is none.
func Operation(h textproto.MIMEHeader) string {
	s := strings.TrimSpace(h.Get(FieldOperation))
	if name, value, ok := strings.Cut(s, "="); ok && strings.EqualFold(strings.TrimSpace(name), "http-equiv") {
		s = value
	}
	return strings.ToUpper(strings.Trim(s, "\" \t"))
}

// Clip shortens foreign text for a message.
func Clip(s string) string { return xmlscan.Clip(s, 200) }

// ErrTooLarge means the body of an entity is larger than allowed.
var ErrTooLarge = errors.New("the body of an entity is too large")

// ErrLength means the length of an entity is not the one in its header: the apparent
// delimiter after it may belong to the body, or the body was changed on the way.
var ErrLength = errors.New("the body of an entity is not as long as its Content-Length says")

// A Part is an entity as it was sent.
type Part struct {
	Header textproto.MIMEHeader
	Body   []byte
}

// Check returns an error if the header's length is not the body's.
func (p Part) Check() error {
	for _, s := range p.Header.Values("Content-Length") {
		if n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64); err != nil || n != uint64(len(p.Body)) {
			return fmt.Errorf("%w: %q, but has %d bytes", ErrLength, Clip(s), len(p.Body))
		}
	}
	return nil
}

// Parts reads the parts of a multipart body one after another. It keeps one at
// a time in memory.
type Parts struct {
	parts  *multipart.Reader
	source *proof
	most   int64 // maximum bytes of a part's body
	buf    bytes.Buffer
}

// NewParts returns the parts of a body, each of which may have up to most
// bytes.
func NewParts(body io.Reader, boundary string, most int64) *Parts {
	source := &proof{r: body, last: []byte("--" + boundary + "--")}
	return &Parts{parts: multipart.NewReader(source, boundary), source: source, most: most}
}

// Next returns the next part, once it is whole. The error is io.EOF after the delimiter
// at the end of the last part, and only there; io.ErrUnexpectedEOF if the body ends
// without it; the error of reading the body; ErrTooLarge; or one about a malformed
// part.
func (p *Parts) Next() (Part, error) {
	part, err := p.parts.NextRawPart()
	if err == io.EOF {
		return Part{}, io.EOF
	}
	if err != nil {
		return Part{}, p.failure(err)
	}
	p.buf.Reset()
	n, err := p.buf.ReadFrom(io.LimitReader(part, p.most+1))
	switch {
	case err != nil:
		return Part{}, p.failure(err)
	case n > p.most:
		return Part{}, ErrTooLarge
	}
	return Part{part.Header, bytes.Clone(p.buf.Bytes())}, nil
}

// failure returns why there is no part. If the body is cut short, or cannot be read,
// its error says more than the multipart reader's about the last line.
func (p *Parts) failure(err error) error {
	switch source := p.source.err; {
	case source == nil || source == io.EOF && !errors.Is(err, io.EOF):
		return err
	case source == io.EOF:
		return io.ErrUnexpectedEOF // in a line like the last delimiter
	default:
		return source
	}
}

// A proof lets mime/multipart see the end of a body only if it is proved. By itself,
// mime/multipart takes a body cut off after a delimiter for a whole one, and half a
// delimiter for the end of the previous part. So unless the body ends with the last
// delimiter, a proof returns a byte, which completes nothing, and then
// io.ErrUnexpectedEOF instead of io.EOF.
type proof struct {
	r    io.Reader
	last []byte // the delimiter to prove the end
	tail []byte // the last bytes, enough for the delimiter with blanks after it
	err  error  // the body's last error
}

// Read implements io.Reader.
func (p *proof) Read(b []byte) (int, error) {
	if p.err == nil {
		n, err := p.r.Read(b)
		p.note(b[:n])
		p.err = err
		return n, nil
	}
	if p.err != io.EOF || len(b) == 0 || bytes.HasSuffix(bytes.TrimRight(p.tail, " \t"), p.last) {
		return 0, p.err
	}
	p.err = io.ErrUnexpectedEOF
	b[0] = 0
	return 1, nil
}

// note keeps the last bytes.
func (p *proof) note(b []byte) {
	const blanks = 64
	most := len(p.last) + blanks
	if b = b[max(0, len(b)-most):]; len(p.tail)+len(b) > 2*most {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-most:]...)
	}
	p.tail = append(p.tail, b...)
}
