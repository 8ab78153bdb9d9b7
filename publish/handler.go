package publish

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Handler serves published documents over HTTP. It only serves files: what a
// Publisher wrote is what clients get, byte for byte, from this handler as from
// any other server of files.
//
//	http.Handle("/feeds/", http.StripPrefix("/feeds", &publish.Handler{FS: publish.Dir{Path: "public/feeds"}}))
//
// What it adds to http.FileServerFS comes from the documents themselves: the
// media type of their format, an ETag of their content, Cache-Control by their
// place in the feed's history, Link headers with the relations that their heads
// have, and gzip for those who ask for it. Directories are not listed, and
// neither files that are hidden (a name beginning with a dot) nor temporary
// ones and locks are served.
//
// An archive that has a next-archive does not change any more (5005#9), and its
// name is not used for anything else (5005#10): caches may keep it for good.
// The newest archive may still gain its next-archive (5005#12), and so may be
// kept for no longer than a subscription document.
type Handler struct {
	FS     fs.FS         // FS has the documents; files must be replaced, never written into.
	MaxAge time.Duration // MaxAge is how long caches may keep what can still change; zero means 5 minutes.
	Memory int64         // Memory is how many bytes of compressed documents to keep; zero means 64 MiB, negative no compression.
	Logger *slog.Logger  // Logger gets files that cannot be read; nil means no logging.

	once       sync.Once
	known      cache[*described]  // by name
	compressed cache[*compressed] // by the ETag of what was compressed
	busy       chan struct{}      // holds those who read whole documents
}

const (
	defaultMaxAge = 5 * time.Minute
	defaultMemory = 64 << 20
	maxKnown      = 20_000 // documents, with half a kilobyte about each
)

func (h *Handler) setUp() {
	memory := h.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	h.known.half = maxKnown / 2
	h.compressed.half = memory / 2
	h.busy = make(chan struct{}, runtime.GOMAXPROCS(0))
}

// ServeHTTP answers GET and HEAD requests for the document that the URL's path
// names.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.setUp)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are understood here", http.StatusMethodNotAllowed)
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

// documentName returns the name in an fs.FS that a URL's path stands for. There
// is no other path for the same name, and none for what is not a document.
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

// serve answers with the named file. An error means that nothing has been sent.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) error {
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
	if mayFail(r) { // a 412 would inherit it, and stay in caches for as long
		header.Set("Cache-Control", "no-cache")
	}
	if d.compressible && h.Memory >= 0 {
		header["Vary"] = varyEncoding
		if acceptsGzip(r.Header) {
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

// reader returns the compressed document and adds what the header has to say of
// it. ServeContent leaves the length of anything encoded to others; where it
// may answer that a precondition failed, there must be none.
func (c *compressed) reader(r *http.Request, header http.Header) io.ReadSeeker {
	header.Set("Content-Encoding", "gzip")
	header.Set("Etag", c.tag)
	if !mayFail(r) {
		header.Set("Content-Length", strconv.Itoa(len(c.data)))
	}
	return bytes.NewReader(c.data)
}

// mayFail reports whether the request has a precondition that ServeContent
// answers with a 412 (RFC 9110 §13.1).
func mayFail(r *http.Request) bool {
	return r.Header.Get("If-Match") != "" || r.Header.Get("If-Unmodified-Since") != ""
}

// fail says that the document is not there, or cannot be read.
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

// isEscape recognises what an os.Root says of a link that leads out of it, and
// what systems say of a file taken for a directory: there is no such document.
func isEscape(err error) bool {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return false
	}
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) ||
		strings.Contains(path.Err.Error(), "escapes") // package os has no name for it
}

// refuse answers with a status. What is missing now may be there a moment
// later: caches, which may keep a 404 (RFC 9111 §4.2.2), are told to ask again.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-cache")
	http.Error(w, strconv.Itoa(status)+" "+http.StatusText(status), status)
}

// An openFile is a file, and what was found out about it when it was opened.
type openFile struct {
	fs.File
	name string
	info fs.FileInfo
}

// seeker returns the file's content; files need not be able to seek.
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

// rewind returns the content from its start, for ServeContent to read it again.
func (f *openFile) rewind() (io.ReadSeeker, error) {
	s, err := f.seeker()
	if err != nil {
		return nil, err
	}
	_, err = s.Seek(0, io.SeekStart)
	return s, err
}
