// Package serve answers requests for documents. What a server must know of RFC 9110 is
// here once: conditions, codings and ranges. So all documents of a program behave alike,
// whether they are files, pages in memory, or made while they are sent.
//
//	w.Header().Set("Content-Type", "text/html; charset=utf-8")
//	serve.NewBody(page).Serve(w, r, http.StatusOK)
//
// The caller sets the fields describing the document: Content-Type, Cache-Control, Link.
// This package sets those depending on the request, by these rules:
//
//   - A client that accepts gzip gets it, under an ETag of its own.
//   - If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since and If-Range mean the
//     same for every document (RFC 9110 §13.2.2). No cache keeps a failed condition.
//   - HEAD has the fields of GET, and ignores Range (RFC 9110 §14.2). It makes no document.
//   - A client that asks for the instance manipulation "feed" (RFC 3229) gets the entries it
//     lacks, if the document knows them.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package serve

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policy is the Content-Security-Policy for documents of feeds: a browser showing one runs
// and loads nothing of its markup.
const Policy = "default-src 'none'; sandbox"

// A Document is the content of an answer.
type Document struct {
	// Tag is the ETag of the content, without quotes. It never names any other content.
	Tag string

	Modified time.Time // when the content last changed; zero if unknown

	// Content is the content; nil is an empty one. Its size is asked for, by Seek, once a client is to get it: an
	// error then stops the answer before it begins.
	Content io.ReadSeeker

	// Open, if not nil, returns the Content instead. It is called only for a client that is to
	// get content, or its size. The caller closes what it opens.
	Open func() (io.ReadSeeker, error)

	// Gzip returns the compressed content and its Tag; without content if compression gains
	// nothing. Nil means the document is never compressed.
	Gzip func() (content io.ReadSeeker, tag string, err error)

	// Since returns the document with only those entries that were added or changed since
	// it had one of these Tags; nil if they are unknown. A nil function means they always are.
	Since func(tags []string) (io.ReadSeeker, error)
}

// Serve answers with a document. If it returns an error, it has sent nothing. If the content
// breaks off, Serve panics with http.ErrAbortHandler, which clients notice (RFC 9112 §8).
func (d Document) Serve(w http.ResponseWriter, r *http.Request) error {
	r = combined(r)
	h := w.Header()
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	answer := &response{ResponseWriter: w, content: d.Content, open: d.Open, ok: http.StatusOK, limited: ok && server.WriteTimeout >= filePieces*pieceTime}
	if answer.content == nil && answer.open == nil {
		answer.content = new(bytes.Reader)
	}
	tag := d.Tag
	if d.Gzip != nil {
		if !slices.Contains(h["Vary"], "Accept-Encoding") {
			h.Add("Vary", "Accept-Encoding")
		}
		if acceptsGzip(r.Header) {
			switch content, packed, err := d.Gzip(); {
			case err != nil:
				clean(h)
				return err
			case content != nil:
				h.Set("Content-Encoding", "gzip")
				answer.content, tag = content, packed
			}
		}
	}
	h.Set("Etag", `"`+tag+`"`)
	r, err := d.since(answer, r, tag)
	if err != nil {
		clean(h)
		return err
	}
	stream, _ := answer.content.(*streamReader)
	defer stream.free()
	http.ServeContent(answer, r, "", d.Modified, answer)
	if answer.err != nil {
		clean(h)
		return answer.err
	}
	if !stream.isUsable() {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// combined returns a request with each condition in one field, because http.ServeContent
// reads only the first, and without the Range of a HEAD request, for which none is defined.
// It is a copy if it differs.
func combined(r *http.Request) *http.Request {
	if r.Method != http.MethodHead && len(r.Header["If-Match"]) <= 1 && len(r.Header["If-None-Match"]) <= 1 {
		return r
	}
	inner := *r
	inner.Header = r.Header.Clone()
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if values := inner.Header[name]; len(values) > 1 {
			inner.Header.Set(name, strings.Join(values, ", "))
		}
	}
	if r.Method == http.MethodHead {
		inner.Header.Del("Range")
	}
	return &inner
}

// since turns the answer into one with only the entries the client lacks, if it asks for them
// and they are known (RFC 3229 §10). Then it returns the request without its condition, which is met.
// All other conditions come first.
func (d Document) since(w *response, r *http.Request, tag string) (*http.Request, error) {
	get := r.Header.Get
	if d.Since == nil || r.Method != http.MethodGet || weights(r.Header["A-Im"])["feed"] == 0 || get("If-Match")+get("Range") != "" {
		return r, nil
	}
	has := tagsOf(get("If-None-Match"))
	if len(has) == 0 || slices.Contains(has, tag) || slices.Contains(has, "*") {
		return r, nil
	}
	content, err := d.Since(has)
	if content == nil || err != nil {
		return r, err
	}
	w.content, w.ok = content, http.StatusIMUsed
	h := w.Header()
	h.Del("Content-Encoding")
	h.Set("Etag", `"`+d.Tag+`"`)
	h.Set("Im", "feed")
	h.Set("Cache-Control", "no-store, im") // others would take it for the whole document
	inner := *r
	inner.Header = r.Header.Clone()
	inner.Header.Del("If-None-Match")
	inner.Header.Del("If-Modified-Since")
	return &inner, nil
}

// tagsOf returns the ETags of an If-None-Match, without quotes.
func tagsOf(field string) (tags []string) {
	for tag := range strings.SplitSeq(field, ",") {
		if tag = strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// A response lets http.ServeContent evaluate a request. It corrects the fields
// http.ServeContent cannot know.
type response struct {
	http.ResponseWriter
	content io.ReadSeeker
	open    func() (io.ReadSeeker, error) // returns the content, if there is none yet
	size    int64                         // of the content; negative if unknown
	ok      int                           // the status in place of 200
	part    bool                          // whether only a part of the content is sent
	limited bool                          // whether the server has set a deadline for all of the answer, with time for pieces of a file
	err     error                         // of opening the content; nothing is sent then
}

// unknownSize is the size of content whose size is not known yet. It is never reached.
const unknownSize = 1 << 62

// Seek implements io.Seeker for http.ServeContent, which asks for the size once it has
// evaluated the conditions.
func (w *response) Seek(offset int64, whence int) (int64, error) {
	if err := w.ready(); err != nil {
		return 0, err
	}
	n, err := w.content.Seek(offset, whence)
	if whence == io.SeekEnd {
		if w.size, w.err = n, err; n == unknownSize {
			w.size = -1
		}
	}
	return n, err
}

// ready opens the content, unless it is there.
func (w *response) ready() error {
	if w.content != nil || w.err != nil {
		return w.err
	}
	w.content, w.err = w.open()
	return w.err
}

// Read implements io.Reader for http.ServeContent.
func (w *response) Read(b []byte) (int, error) {
	if err := w.ready(); err != nil {
		return 0, err
	}
	return w.content.Read(b)
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	h := w.Header()
	switch {
	case w.err != nil:
		return
	case status == http.StatusOK && w.size < 0:
		h.Del("Content-Length")
	case status == http.StatusOK:
		h.Set("Content-Length", strconv.FormatInt(w.size, 10)) // of compressed content, too
	case status == http.StatusNotModified:
		h.Del("Content-Disposition")
	case status == http.StatusPreconditionFailed:
		h.Set("Cache-Control", "no-cache") // otherwise caches would keep it as long as the document
	}
	if w.part = status == http.StatusPartialContent; status == http.StatusOK {
		status = w.ok
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. It writes in pieces, and ends an answer whose client
// takes no piece for a while: the answer may hold memory as long.
func (w *response) Write(b []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	control := http.NewResponseController(w.ResponseWriter)
	for n < len(b) && err == nil {
		_ = control.SetWriteDeadline(time.Now().Add(pieceTime)) // a test's ResponseWriter has none
		var k int
		k, err = w.ResponseWriter.Write(b[n:min(len(b), n+pieceSize)])
		n += k
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom: the system may send files by itself, and a whole stream
// is made right here.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	plain := struct{ io.Writer }{w}
	part, limited := r.(*io.LimitedReader)
	switch content := w.content.(type) {
	case *streamReader:
		n := int64(unknownSize)
		if limited && w.part {
			n = part.N
		}
		return 0, content.send(plain, n)
	case fs.File:
		if limited && part.R == io.Reader(w) && w.err == nil {
			return w.sendFile(content, part.N)
		}
	}
	return io.Copy(plain, r)
}

// sendFile sends a part of a file, which the system may copy by itself: many pieces at once.
func (w *response) sendFile(f fs.File, size int64) (sent int64, err error) {
	if size <= smallFile {
		b := make([]byte, size)
		n, err := io.ReadFull(f, b)
		w.limit()
		n, failed := w.ResponseWriter.Write(b[:n])
		return int64(n), cmp.Or(err, failed)
	}
	for sent < size && err == nil {
		w.limit()
		var n int64
		n, err = io.CopyN(w.ResponseWriter, f, min(size-sent, filePieces*pieceSize))
		sent += n
	}
	return sent, err
}

// limit limits the time for the next pieces of a file. Where the server has, the first ones need no other
// deadline, which costs as much as the header.
func (w *response) limit() {
	if w.limited {
		w.limited = false
		return
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(filePieces * pieceTime))
}

const (
	smallFile  = 3 << 10          // sent in one packet with the header; of a larger one, the system's copy takes less time
	pieceSize  = 64 << 10         // written at once
	pieceTime  = 30 * time.Second // for the client to take a piece
	filePieces = 16               // of a file at once
)

// clean removes the fields of a document that is not sent.
func clean(h http.Header) {
	for _, name := range []string{"Accept-Ranges", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Range",
		"Content-Type", "Etag", "Im", "Last-Modified", "Link"} {
		h.Del(name)
	}
}

// Refuse answers with a status and a message instead of a document. A missing document may
// exist a moment later, so caches, which may keep a 404 (RFC 9111 §4.2.2), are told to ask again.
func Refuse(w http.ResponseWriter, status int, message string) {
	clean(w.Header())
	if w.Header().Set("Cache-Control", "no-cache"); status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, message, status)
}

// Reads reports whether a request is GET or HEAD, and refuses any other.
func Reads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only GET and HEAD are supported", http.StatusMethodNotAllowed)
	return false
}

// Below returns the request without path, the part of a program's address below which it
// serves, if mux has a page for the rest; otherwise it returns the request itself. So a
// program's own pages are found whether or not a proxy has removed the path; a Handler's
// are anyway. The path ends in a slash.
func Below(path string, mux *http.ServeMux, r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(path, "/"))
	if path == "/" || !ok || rest != "" && rest[0] != '/' {
		return r
	}
	inner := *r
	u := *r.URL
	u.Path, u.RawPath = cmp.Or(rest, "/"), ""
	if raw, ok := strings.CutPrefix(r.URL.RawPath, strings.TrimSuffix(path, "/")); ok {
		u.RawPath = raw
	}
	inner.URL = &u
	if _, pattern := mux.Handler(&inner); pattern == "/" || pattern == "" {
		return r
	}
	return &inner
}
