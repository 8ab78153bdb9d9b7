package publish

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/klauspost/compress/gzip"
)

// A Handler serves published documents over HTTP. It serves the files byte for
// byte as a Publisher wrote them, like any other server of files.
//
//	http.Handle("/feeds/", http.StripPrefix("/feeds", &publish.Handler{FS: publish.Dir{Path: "public/feeds"}}))
//
// Unlike http.FileServerFS, a Handler uses the documents themselves: it sends the media
// type of their format, an ETag of their content, a Cache-Control for their place in
// the feed's history, a Content-Security-Policy under which a browser runs nothing of their
// markup, Link headers with the relations in their heads, and gzip to
// clients accepting it. A client that asks for it (A-IM: feed) gets only the entries it lacks.
// It lists no directories, and does not serve hidden files (names
// that begin with a dot), temporary files and locks.
//
// An archive with a next-archive no longer changes (5005#9), and its name is never
// reused (5005#10), so caches may keep it for good. The newest archive may still gain
// its next-archive (5005#12), so caches may keep it no longer than a subscription
// document.
type Handler struct {
	FS     fs.FS         // FS contains the documents; files must be replaced, never modified in place.
	MaxAge time.Duration // MaxAge is how long caches may keep documents subject to change; zero means 5 minutes.
	Memory int64         // Memory is the maximum number of bytes of compressed documents to keep; zero means 64 MiB, a negative number no compression.
	Logger *slog.Logger  // Logger logs unreadable files; nil means no logging.

	once       sync.Once
	known      serve.Cache[string, *documentHeader] // by name
	compressed serve.Cache[string, *gzipVariant]    // by the ETag of the uncompressed document
	states     serve.Cache[string, feedState]       // by name and ETag
	busy       chan struct{}                        // limits how many goroutines read whole documents at once
}

const (
	defaultMaxAge = 5 * time.Minute
	defaultMemory = 64 << 20
	maxKnown      = 20_000  // documents, of about half a kilobyte each
	maxStates     = 100_000 // entries of feeds' states, of some 40 bytes each
)

func (h *Handler) setUp() {
	h.known.Half = maxKnown / 2
	h.states.Half = maxStates / 2
	h.compressed.Half = max(cmp.Or(h.Memory, defaultMemory)/2, 1)
	h.busy = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// ServeHTTP answers GET and HEAD requests for the document named by the path of the
// URL.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.setUp)
	if !serve.Reads(w, r) {
		return
	}
	name, ok := documentName(r.URL.Path)
	if !ok {
		refuse(w, http.StatusNotFound)
		return
	}
	if err := h.serve(w, r, name); err != nil {
		h.fail(w, r, name, err)
	}
}

// documentName returns the name in an fs.FS for the path of a URL. Each
// document has exactly one path, and other files have none.
func documentName(path string) (name string, ok bool) {
	name, ok = strings.CutPrefix(path, "/")
	if !ok || name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return "", false
	}
	if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
		return "", false
	}
	for _, suffix := range []string{"~", ".tmp", ".lock"} {
		if strings.HasSuffix(name, suffix) {
			return "", false
		}
	}
	return name, true
}

// serve answers with the named file. If it returns an error, it has sent
// nothing.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) error {
	if h.FS == nil {
		return errors.New("publish: Handler.FS must be set")
	}
	if err := settings.Check("publish", settings.Number{Name: "Handler.MaxAge", Value: int64(h.MaxAge)}); err != nil {
		return err
	}
	file := &servedFile{files: h.FS, name: name}
	defer file.close()
	if needsContent(r) {
		if err := file.open(); err != nil {
			return err
		}
	}
	d, err := h.describe(file)
	if err == nil {
		err = h.answer(w, r, d, file)
	}
	if errors.Is(err, errReplaced) { // since it was described; the open file is the new one
		if d, err = h.describe(file); err == nil {
			err = h.answer(w, r, d, file)
		}
	}
	return err
}

// needsContent reports whether the answer to a request is the file's content: without a condition,
// nor a coding whose content may be in memory.
func needsContent(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for name := range r.Header {
		if name == "Accept-Encoding" || strings.HasPrefix(name, "If-") {
			return false
		}
	}
	return true
}

// answer answers with a file of this description.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, d *documentHeader, file *servedFile) error {
	maps.Copy(w.Header(), d.fields)
	answer := serve.Document{Tag: d.tag, Modified: d.lastModified(), Open: func() (io.ReadSeeker, error) { return file.content(d) }}
	if d.compressible && h.Memory >= 0 {
		answer.Gzip = func() (io.ReadSeeker, string, error) {
			c, err := h.compress(d, file)
			if err != nil || c.data == nil {
				return nil, "", err
			}
			return bytes.NewReader(c.data), c.tag, nil
		}
	}
	if d.state != nil {
		answer.Since = func(tags []string) (io.ReadSeeker, error) { return h.since(d, file, tags) }
	}
	return answer.Serve(w, r)
}

// fail answers for a missing or unreadable document.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, name string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		refuse(w, http.StatusNotFound)
		return
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden)
	case isEscape(err):
		refuse(w, http.StatusNotFound)
	default:
		refuse(w, http.StatusInternalServerError)
	}
	if h.Logger != nil {
		h.Logger.ErrorContext(r.Context(), "a document cannot be served", "path", name, "error", err)
	}
}

// errEscapes is the error of package os for a path out of an os.Root. The package does
// not export it, so it is taken from such a path.
var errEscapes = sync.OnceValue(func() error {
	_, err := os.OpenInRoot(string(os.PathSeparator), "..")
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
})

// isEscape reports whether an error comes from an os.Root, for a link out of it, or
// from the operating system, for a name no file can have, such as one below another
// file: in both cases there is no such document.
func isEscape(err error) bool {
	return errors.Is(err, errEscapes()) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

func refuse(w http.ResponseWriter, status int) {
	serve.Refuse(w, status, strconv.Itoa(status)+" "+http.StatusText(status))
}

// A servedFile is a file of a request, which is opened when its content is needed: to tell a
// client that it has the newest content, the file's size and time are enough.
type servedFile struct {
	files fs.FS
	name  string
	info  fs.FileInfo // of the open file, or before of the name; nil if not asked for

	opened fs.File // nil before
	text   io.ReadSeeker
}

// stat returns the file's size and time. It opens the file if there is no other way.
func (f *servedFile) stat() (fs.FileInfo, error) {
	if f.info != nil {
		return f.info, nil
	}
	if named, ok := f.files.(fs.StatFS); ok {
		info, err := named.Stat(f.name)
		if f.info = info; err == nil && !info.Mode().IsRegular() {
			err = fs.ErrNotExist
		}
		return info, err
	}
	return f.info, f.open()
}

// open opens the file.
func (f *servedFile) open() (err error) {
	if f.opened != nil {
		return nil
	}
	if f.opened, err = f.files.Open(f.name); err != nil {
		f.opened = nil
		return err
	}
	if f.info, err = f.opened.Stat(); err != nil {
		return err
	}
	if !f.info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	var ok bool
	if f.text, ok = f.opened.(io.ReadSeeker); !ok {
		var data []byte
		data, err = io.ReadAll(f.opened)
		f.text = bytes.NewReader(data)
	}
	return err
}

func (f *servedFile) close() {
	if f.opened != nil {
		_ = f.opened.Close() // only read
	}
}

// errReplaced means another file has the name than the one described.
var errReplaced = errors.New("the file has been replaced")

// content returns the content of the file, opened, if it is still the one described.
func (f *servedFile) content(d *documentHeader) (io.ReadSeeker, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if !d.describes(f.info) {
		return nil, errReplaced
	}
	return f.text, nil
}

// whole calls read with the whole content, if it is still the one described, and rewinds it.
func (f *servedFile) whole(d *documentHeader, read func(io.Reader) error) error {
	content, err := f.content(d)
	if err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := read(content); err != nil {
		return err
	}
	_, err = content.Seek(0, io.SeekStart)
	return err
}

// A documentHeader has a document's response headers, and the properties they depend on.
type documentHeader struct {
	size         int64
	mode         fs.FileMode
	modified     time.Time
	found        time.Time   // when the document was read
	constant     bool        // whether the file can never change
	tag          string      // the ETag without quotes
	fields       http.Header // those that do not depend on the request; without spare capacity, so appending copies them
	compressible bool
	state        feedState // nil if the document is no subscription document
}

// settling is how soon after a change a file may change again without a
// different time: the clocks of file systems tick in steps.
const settling = 2 * time.Second

// describes reports whether a file with this description has the content.
func (d *documentHeader) describes(info fs.FileInfo) bool {
	return d.size == info.Size() && d.mode == info.Mode() && d.modified.Equal(info.ModTime())
}

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

// describe returns the documentHeader of a file, and reads the file if necessary.
func (h *Handler) describe(f *servedFile) (*documentHeader, error) {
	if _, err := f.stat(); err != nil {
		return nil, err
	}
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

func (h *Handler) lookUp(f *servedFile) (*documentHeader, bool) {
	d, ok := h.known.Get(f.name)
	return d, ok && d.settled() && d.describes(f.info)
}

// maxDocument is the maximum size of documents to be parsed and compressed. Larger ones
// are served as they are.
const maxDocument = 32 << 20

// read reads and describes a file, and then rewinds it.
func (h *Handler) read(f *servedFile) (*documentHeader, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	d := &documentHeader{size: f.info.Size(), mode: f.info.Mode(), modified: f.info.ModTime(), found: time.Now()}
	_, d.constant = h.FS.(embed.FS)
	hash := sha256.New()
	var text strings.Builder
	var sink io.Writer = hash
	if d.size <= maxDocument {
		text.Grow(int(d.size))
		sink = io.MultiWriter(hash, &text)
	}
	if err := f.whole(d, func(content io.Reader) error { _, err := io.Copy(sink, content); return err }); err != nil {
		return nil, err
	}
	d.tag = serve.TagOfSum(hash.Sum(nil))
	served, doc, whole := delivery(f.name, text.String(), h.MaxAge)
	d.fields = http.Header{"Content-Type": {served.Type}, "Cache-Control": {served.CacheControl}, "X-Content-Type-Options": {"nosniff"}}
	d.compressible = doc != nil || text.Len() > 0 && isTextType(served.Type)
	if doc != nil || strings.Contains(served.Type, "xml") {
		d.fields.Set("Content-Security-Policy", serve.Policy)
	}
	if doc != nil {
		linkFields(d.fields, doc.Links)
	}
	if whole && !doc.Archive && doc.Format != feedhistory.FormatJSONFeed {
		d.state = digestsOf(doc)
		h.remember(f.name, d.tag, d.state)
	}
	return d, nil
}

// A feedState has a digest of each entry of a feed's document, by a digest of its id.
type feedState map[shortDigest]shortDigest

type shortDigest [8]byte

func shorten(text []byte) shortDigest {
	sum := sha256.Sum256(text)
	return shortDigest(sum[:8])
}

func digestsOf(doc *feedhistory.Document) feedState {
	s := feedState{}
	for _, e := range doc.Entries {
		s[shorten([]byte(e.ID))] = shorten(e.XML())
	}
	return s
}

func (h *Handler) remember(name, tag string, s feedState) {
	h.states.PutSized(name+"\n"+tag, s, int64(len(s))+1)
}

// since returns a document without the entries it had when its ETag was one of tags; nil if
// that is unknown, or cannot be said (RFC 3229).
func (h *Handler) since(d *documentHeader, f *servedFile, tags []string) (io.ReadSeeker, error) {
	for _, tag := range tags {
		old, ok := h.states.Get(f.name + "\n" + tag)
		if !ok {
			continue
		}
		var data []byte
		err := f.whole(d, func(content io.Reader) (err error) { data, err = io.ReadAll(content); return err })
		if err != nil {
			return nil, err
		}
		if text, ok := withoutKnown(string(data), old); ok {
			return strings.NewReader(text), nil
		}
		return nil, nil
	}
	return nil, nil
}

// withoutKnown returns a document without the entries of a state. It does so only if the
// result cannot be misread: it is not marked as complete, and where a complete document
// leaves entries out to delete them, nothing is left out.
func withoutKnown(text string, old feedState) (rest string, ok bool) {
	doc, err := parseHead(text)
	if err != nil || doc == nil || !utf8.ValidString(text) {
		return "", false
	}
	present := digestsOf(doc)
	for _, t := range doc.Deleted {
		present[shorten([]byte(t.Ref))] = shortDigest{}
	}
	for id := range old {
		if _, ok := present[id]; doc.Complete && !ok {
			return "", false
		}
	}
	var b strings.Builder
	from, n := 0, 0
	cut := func(s *xmlscan.Cursor) {
		start := s.Offset()
		s.Skip()
		b.WriteString(text[from:start])
		from = s.End()
	}
	s := xmlscan.NewFragment(text, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return "", false
	}
	for depth := s.Depth(); s.Child(depth); {
		if s.Local() == "channel" && s.Space() == "" {
			depth = s.Depth()
			continue
		}
		switch {
		case s.Space() == feedxml.History && s.Local() == "complete":
			cut(s)
		case s.Local() == "entry" && s.Space() == feedxml.Atom, s.Local() == "item":
			if n == len(doc.Entries) {
				return "", false
			}
			e := doc.Entries[n]
			if n++; old[shorten([]byte(e.ID))] == shorten(e.XML()) {
				cut(s)
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	return b.String() + text[from:], n == len(doc.Entries)
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
	served, _, _ := delivery(name, text, maxAge)
	return served
}

// delivery also returns the document, nil if the text is something else, and whether all of
// it could be read.
func delivery(name, text string, maxAge time.Duration) (s Delivery, doc *feedhistory.Document, whole bool) {
	s.CacheControl = briefly(cmp.Or(maxAge, defaultMaxAge))
	doc, err := parseHead(text)
	if doc == nil {
		s.Type = typeByName(name)
		return s, nil, false
	}
	s.Type, s.Archive = mediaType(doc.Format), err == nil && doc.Archive
	if err == nil && isClosed(doc) {
		s.CacheControl = "public, max-age=31536000, immutable"
	}
	return s, doc, err == nil
}

// typeByName guesses the media type of a file other than a feed, or of an unreadable
// feed. The types of feeds do not depend on the system's tables.
func typeByName(name string) string {
	switch ext := path.Ext(name); ext {
	case ".atom":
		return mediaType(feedhistory.FormatAtom)
	case ".rss":
		return mediaType(feedhistory.FormatRSS)
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
	_, ok := d.Links.Rel("next-archive")
	return ok && d.Archive && d.Kind() == feedhistory.KindArchived
}

// parseHead reads a feed document, leaving its links unresolved. It returns nil
// if the text is something else.
func parseHead(text string) (*feedhistory.Document, error) {
	start := strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n")
	if !strings.HasPrefix(start, "<") && !strings.HasPrefix(start, "{") {
		return nil, nil
	}
	return feedhistory.Parser{Trusted: true, MaxBytes: maxDocument}.Parse(strings.NewReader(text), "")
}

// mediaType returns the media type of a format. XML declares its encoding itself, and a
// charset parameter would override it (RFC 7303 §3).
func mediaType(f feedhistory.Format) string {
	switch f {
	case feedhistory.FormatRSS:
		return "application/rss+xml"
	case feedhistory.FormatJSONFeed:
		return "application/feed+json"
	}
	return "application/atom+xml"
}

func isTextType(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.Contains(kind, "xml") || strings.Contains(kind, "json") ||
		strings.Contains(kind, "javascript")
}

// linkFields adds the relations between a feed's documents to a header as Link
// fields (RFC 8288). Relative references stay relative, because they resolve
// against the document's URL in both places.
func linkFields(h http.Header, links feedhistory.Links) {
	var fields []string
	for _, l := range links {
		switch l.Rel {
		case "current", "first", "last", "next",
			"next-archive", "prev-archive", "previous":
			if len(fields) < 16 && len(l.Href) <= 2000 {
				fields = append(fields, "<"+headerURL(l.Href)+`>; rel="`+l.Rel+`"`)
			}
		}
	}
	if fields != nil {
		h["Link"] = slices.Clip(fields)
	}
}

// headerURL percent-encodes the characters forbidden between angle brackets: Atom has
// IRIs, and anything else may come from a file.
func headerURL(iri string) string {
	var b strings.Builder
	for i := range len(iri) {
		if c := iri[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("<>\"\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
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
func (h *Handler) compress(d *documentHeader, f *servedFile) (*gzipVariant, error) {
	if c, ok := h.compressed.Get(d.tag); ok {
		return c, nil
	}
	h.busy <- struct{}{}
	defer func() { <-h.busy }()
	if c, ok := h.compressed.Get(d.tag); ok {
		return c, nil
	}
	var b bytes.Buffer // without a name or time, so it depends only on the content
	err := f.whole(d, func(content io.Reader) error {
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a valid level
		_, err := io.Copy(z, content)
		return errors.Join(err, z.Close())
	})
	if err != nil {
		return nil, err
	}
	c := &gzipVariant{}
	if int64(b.Len()) < d.size {
		c.data = bytes.Clone(b.Bytes())
		if c.tag = serve.TagOf(c.data); d.state != nil {
			h.remember(f.name, c.tag, d.state)
		}
	}
	h.compressed.PutSized(d.tag, c, int64(len(c.data))+256)
	return c, nil
}
