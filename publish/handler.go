package publish

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Handler serves published documents over HTTP. It serves the files byte for
// byte as a Publisher wrote them, like any other server of files.
//
//	http.Handle("/feeds/", http.StripPrefix("/feeds", &publish.Handler{FS: publish.Dir{Path: "public/feeds"}}))
//
// Unlike http.FileServerFS, a Handler uses the documents themselves: it sends the media
// type of their format, an ETag of their content, a Cache-Control for their place in
// the feed's history, Link headers with the relations in their heads, and gzip to
// clients accepting it. It lists no directories, and does not serve hidden files (names
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
	known      Cache[string, *documentHeader] // by name
	compressed Cache[string, *gzipVariant]    // by the ETag of the uncompressed document
	busy       chan struct{}                  // limits how many goroutines read whole documents at once
}

const (
	defaultMaxAge = 5 * time.Minute
	defaultMemory = 64 << 20
	maxKnown      = 20_000 // documents, of about half a kilobyte each
)

func (h *Handler) setUp() {
	h.known.Half = maxKnown / 2
	h.compressed.Half = max(cmp.Or(h.Memory, defaultMemory)/2, 1)
	h.busy = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// ServeHTTP answers GET and HEAD requests for the document named by the path of the
// URL.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.setUp)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are supported", http.StatusMethodNotAllowed)
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
	if err := plain.Check("publish", plain.Number{Name: "Handler.MaxAge", Value: int64(h.MaxAge)}); err != nil {
		return err
	}
	f, err := h.FS.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	file := &openFile{File: f, name: name}
	if file.info, err = f.Stat(); err != nil {
		return err
	}
	if !file.info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	d, err := h.describe(file)
	if err != nil {
		return err
	}
	body, err := file.seeker()
	if err != nil {
		return err
	}
	header := w.Header()
	d.setHeader(header)
	if mayFail(r) { // a 412 would inherit the max-age, and stay in caches as long
		header.Set("Cache-Control", "no-cache")
	}
	if d.compressible && h.Memory >= 0 {
		header["Vary"] = varyEncoding
		if AcceptsGzip(r.Header) {
			if c, err := h.compress(d, file); err != nil {
				return err
			} else if c.data != nil {
				body = c.reader(r, header)
			}
		}
	}
	http.ServeContent(w, r, "", d.lastModified(), body)
	return nil
}

var varyEncoding = []string{"Accept-Encoding"}

// reader returns the compressed document, and adds its fields to the header.
// ServeContent sets no Content-Length for encoded content, so reader sets it, except
// where ServeContent may answer with a failed precondition.
func (c *gzipVariant) reader(r *http.Request, header http.Header) io.ReadSeeker {
	header.Set("Content-Encoding", "gzip")
	header.Set("Etag", c.tag)
	if !mayFail(r) {
		header.Set("Content-Length", strconv.Itoa(len(c.data)))
	}
	return bytes.NewReader(c.data)
}

// mayFail reports whether the request has a precondition ServeContent may answer with a
// 412 (RFC 9110 §13.1).
func mayFail(r *http.Request) bool {
	return r.Header.Get("If-Match") != "" || r.Header.Get("If-Unmodified-Since") != ""
}

// fail answers for a missing or unreadable document.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, name string, err error) {
	for _, name := range []string{"Cache-Control", "Content-Encoding", "Content-Type", "Etag", "Link"} {
		w.Header().Del(name)
	}
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
		h.Logger.ErrorContext(r.Context(), "a document cannot be served", "name", name, "err", err)
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

// refuse answers with a status. A missing document may exist a moment later, so caches,
// which may keep a 404 (RFC 9111 §4.2.2), are told to ask again.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-cache")
	http.Error(w, strconv.Itoa(status)+" "+http.StatusText(status), status)
}

// An openFile is an open file, with its description at that time.
type openFile struct {
	fs.File
	name string
	info fs.FileInfo
}

// seeker returns the file's content, even of files that cannot seek.
func (f *openFile) seeker() (io.ReadSeeker, error) {
	if s, ok := f.File.(io.ReadSeeker); ok {
		return s, nil
	}
	data, err := io.ReadAll(f.File)
	if err != nil {
		return nil, err
	}
	f.File = readSeekFile{f.File, bytes.NewReader(data)}
	return f.File.(io.ReadSeeker), nil
}

type readSeekFile struct {
	fs.File
	*bytes.Reader
}

func (f readSeekFile) Read(b []byte) (int, error) { return f.Reader.Read(b) }

// rewind returns the content from its start, for ServeContent.
func (f *openFile) rewind() (io.ReadSeeker, error) {
	s, err := f.seeker()
	if err != nil {
		return nil, err
	}
	_, err = s.Seek(0, io.SeekStart)
	return s, err
}
