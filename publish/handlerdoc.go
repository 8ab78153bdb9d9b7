package publish

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io"
	"math"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/feedhistory/feedhistory"
)

// This file finds out, once for each document, the properties a Handler needs.

// A documentHeader has a document's response headers, and the properties they depend on.
type documentHeader struct {
	size         int64
	modified     time.Time
	found        time.Time // when the document was read
	constant     bool      // whether the file can never change
	kind         []string  // Content-Type
	tag          []string  // ETag
	cacheControl []string
	links        []string
	compressible bool
}

// setHeader sets the fields independent of the request. The lists have no spare
// capacity, so appending to them copies them.
func (d *documentHeader) setHeader(h http.Header) {
	h["Content-Type"] = d.kind
	h["Etag"] = d.tag
	h["Cache-Control"] = d.cacheControl
	h["X-Content-Type-Options"] = nosniff
	if d.links != nil {
		h["Link"] = d.links
	}
}

var nosniff = []string{"nosniff"}

// settling is how soon after a change a file may change again without a
// different time: the clocks of file systems tick in steps.
const settling = 2 * time.Second

// settled reports whether the file's time was old enough to identify its
// content. A file without a time is never settled.
func (d *documentHeader) settled() bool {
	if d.modified.IsZero() {
		return d.constant
	}
	age := d.found.Sub(d.modified)
	return age >= settling || age <= -settling
}

// lastModified returns the file's time, or zero while a change within the same
// second could follow, because Last-Modified cannot tell the two apart (RFC
// 9110 §8.8.2.2).
func (d *documentHeader) lastModified() time.Time {
	if !d.settled() {
		return time.Time{}
	}
	return d.modified
}

// describe returns the documentHeader of an open file, and reads the file if necessary.
func (h *Handler) describe(f *openFile) (*documentHeader, error) {
	if d, ok := h.lookUp(f); ok {
		return d, nil
	}
	h.busy <- struct{}{}
	defer func() { <-h.busy }()
	if d, ok := h.lookUp(f); ok { // another goroutine has read it meanwhile
		return d, nil
	}
	d, err := h.read(f)
	if err == nil {
		h.known.Put(f.name, d)
	}
	return d, err
}

func (h *Handler) lookUp(f *openFile) (*documentHeader, bool) {
	d, ok := h.known.Get(f.name)
	return d, ok && d.settled() && d.size == f.info.Size() && d.modified.Equal(f.info.ModTime())
}

// maxDocument is the maximum size of documents to be parsed and compressed. Larger ones
// are served as they are.
const maxDocument = 32 << 20

// read reads and describes a file, and then rewinds it.
func (h *Handler) read(f *openFile) (*documentHeader, error) {
	content, err := f.rewind()
	if err != nil {
		return nil, err
	}
	d := &documentHeader{size: f.info.Size(), modified: f.info.ModTime(), found: time.Now()}
	_, d.constant = h.FS.(embed.FS)
	hash := sha256.New()
	var text strings.Builder
	var sink io.Writer = hash
	if d.size <= maxDocument {
		text.Grow(int(d.size))
		sink = io.MultiWriter(hash, &text)
	}
	if _, err := io.Copy(sink, content); err != nil {
		return nil, err
	}
	d.tag = values(entityTag(hash.Sum(nil)))
	d.classify(f.name, text.String(), h.maxAge())
	_, err = f.rewind()
	return d, err
}

func (h *Handler) maxAge() time.Duration {
	return cmp.Or(h.MaxAge, defaultMaxAge)
}

func values(s string) []string { return []string{s} }

// entityTag returns a strong ETag made from a digest (RFC 9110 §8.8.3).
func entityTag(sum []byte) string {
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// classify determines the kind of a document, and its place in the feed.
func (d *documentHeader) classify(name, text string, maxAge time.Duration) {
	doc, err := parseHead(text)
	served := serve(name, doc, err, maxAge)
	d.kind, d.cacheControl = values(served.Type), values(served.CacheControl)
	if doc == nil {
		d.compressible = text != "" && isTextType(served.Type)
		return
	}
	d.compressible = true
	d.links = linkFields(doc.Links)
}

// A Delivery says how to serve a document, with the header values Handler sends.
type Delivery struct {
	Type         string // the media type
	CacheControl string // the Cache-Control header; an archive with its successor's link is immutable (5005#12)
	Archive      bool   // whether it is an archive (5005#14), with or without this link
}

// DeliveryOf returns how servers other than Handler should serve a document. maxAge is
// how long caches may keep documents subject to change; zero means 5 minutes.
func DeliveryOf(name string, data []byte, maxAge time.Duration) Delivery {
	text := ""
	if len(data) <= maxDocument {
		text = string(data)
	}
	doc, err := parseHead(text)
	return serve(name, doc, err, cmp.Or(maxAge, defaultMaxAge))
}

// serve does the same for a document read by parseHead.
func serve(name string, doc *feedhistory.Document, err error, maxAge time.Duration) Delivery {
	if doc == nil {
		return Delivery{Type: typeByName(name), CacheControl: briefly(maxAge)}
	}
	s := Delivery{Type: mediaType(doc.Format), CacheControl: briefly(maxAge), Archive: err == nil && doc.Archive}
	if err == nil && isClosed(doc) {
		s.CacheControl = "public, max-age=31536000, immutable"
	}
	return s
}

// typeByName guesses the media type of a file other than a feed, or of an unreadable
// feed. The types of feeds do not depend on the system's tables.
func typeByName(name string) string {
	switch ext := path.Ext(name); ext {
	case ".atom":
		return mediaType(feedhistory.Atom)
	case ".rss":
		return mediaType(feedhistory.RSS)
	case ".xml", ".xsl":
		return "text/xml"
	default:
		return cmp.Or(mime.TypeByExtension(ext), "application/octet-stream")
	}
}

func briefly(maxAge time.Duration) string {
	return "public, max-age=" + strconv.Itoa(int(max(maxAge, 0)/time.Second))
}

// isClosed reports whether a document is an archive and will never change, because it
// has its successor's link (5005#12).
func isClosed(d *feedhistory.Document) bool {
	_, ok := d.Links.Rel(feedhistory.RelNextArchive)
	return ok && d.Archive && d.Kind() == feedhistory.Archived
}

// parseHead reads a feed document, leaving its links unresolved. It returns nil
// if the text is something else.
func parseHead(text string) (*feedhistory.Document, error) {
	start := strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n")
	if !strings.HasPrefix(start, "<") && !strings.HasPrefix(start, "{") {
		return nil, nil
	}
	limits := feedhistory.Limits{Bytes: maxDocument, Entries: math.MaxInt32, Elements: math.MaxInt32}
	return feedhistory.Parser{Limits: limits}.Parse(strings.NewReader(text), "")
}

// mediaType returns the media type of a format. XML declares its encoding itself, and a
// charset parameter would override it (RFC 7303 §3).
func mediaType(f feedhistory.Format) string {
	switch f {
	case feedhistory.RSS:
		return "application/rss+xml"
	case feedhistory.JSONFeed:
		return "application/feed+json"
	}
	return "application/atom+xml"
}

func isTextType(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.Contains(kind, "xml") || strings.Contains(kind, "json") ||
		strings.Contains(kind, "javascript")
}

// linkFields returns the relations between a feed's documents as Link header
// fields (RFC 8288). Relative references stay relative, because they resolve
// against the document's URL in both places.
func linkFields(links feedhistory.Links) (fields []string) {
	for _, l := range links {
		switch l.Rel {
		case feedhistory.RelCurrent, feedhistory.RelFirst, feedhistory.RelLast, feedhistory.RelNext,
			feedhistory.RelNextArchive, feedhistory.RelPrevArchive, feedhistory.RelPrevious:
			if len(fields) < 16 && len(l.Href) <= 2000 {
				fields = append(fields, "<"+headerURL(l.Href)+`>; rel="`+l.Rel+`"`)
			}
		}
	}
	return fields
}

// headerURL percent-encodes the characters forbidden between angle brackets: Atom has
// IRIs, and anything else may come from a file.
func headerURL(iri string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(iri) {
		if c := iri[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("<>\"\\^`{|}", c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// A gzipVariant is the gzip variant of a document; its data is nil if compression gains
// nothing. The ETag is of the compressed bytes, because another version of the
// compressor may produce different ones.
type gzipVariant struct {
	tag  string
	data []byte
}

// compress returns the gzip variant of a document.
func (h *Handler) compress(d *documentHeader, f *openFile) (*gzipVariant, error) {
	if c, ok := h.compressed.Get(d.tag[0]); ok {
		return c, nil
	}
	h.busy <- struct{}{}
	defer func() { <-h.busy }()
	if c, ok := h.compressed.Get(d.tag[0]); ok {
		return c, nil
	}
	content, err := f.rewind()
	if err != nil {
		return nil, err
	}
	c := &gzipVariant{}
	if c.data, err = gzipped(content, gzip.BestCompression); err != nil {
		return nil, err
	}
	if int64(len(c.data)) >= d.size {
		c.data = nil
	} else {
		sum := sha256.Sum256(c.data)
		c.tag = entityTag(sum[:])
	}
	h.compressed.putSized(d.tag[0], c, int64(len(c.data))+256)
	_, err = f.rewind()
	return c, err
}

// gzipped compresses without a name or time, so the result depends only on the content.
func gzipped(content io.Reader, level int) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(z, content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
}
