package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How what the server makes is sent: with an ETag, compressed for those who ask
// for it, and not at all to those who have it.

// leastGzip is the size below which compression gains nothing.
const leastGzip = 200

// deliver answers with data that was made for this request.
func deliver(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	deliverZipped(w, r, status, data, func() []byte { return zipped(data) })
}

// deliverZipped answers with data of which the compressed form comes from a
// function.
func deliverZipped(w http.ResponseWriter, r *http.Request, status int, data []byte, compressed func() []byte) {
	h := w.Header()
	sum := sha256.Sum256(data)
	tag := hex.EncodeToString(sum[:10])
	zip := len(data) >= leastGzip && acceptsGzip(r)
	h.Add("Vary", "Accept-Encoding")
	if zip {
		tag += "-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	if tag = `"` + tag + `"`; status == http.StatusOK {
		h.Set("Etag", tag)
		if has(r, tag) {
			notModified(w)
			return
		}
	}
	if zip {
		data = compressed()
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}

// notModified answers that there is nothing new.
func notModified(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Content-Disposition"} {
		w.Header().Del(name)
	}
	w.WriteHeader(http.StatusNotModified)
}

// has reports whether the client has what a tag stands for (RFC 9110 §13.1.2).
func has(r *http.Request, tag string) bool {
	for other := range strings.SplitSeq(strings.Join(r.Header["If-None-Match"], ","), ",") {
		if other = strings.TrimPrefix(strings.TrimSpace(other), "W/"); other == tag || other == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether the client can take gzip, and has not said that it
// would rather not (RFC 9110 §12.5.3).
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, q, ok := strings.Cut(weight, "=")
		value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !ok || err == nil && value > 0
	}
	return false
}

// zippers are kept, as each has a megabyte of tables.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, 5) // a level that there is
	return z
}}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// A stream is a document that is too large to be held in memory: it is made
// while it is sent. What it is made of must be the same for the same tag.
type stream struct {
	tag       string
	mediaType string
	write     func(io.Writer) error
	unchanged func() bool // since the tag was made
}

// sizes are those of streams, by tag, once they have been made.
type sizes = cache[string, int64]

// deliver answers with the stream. To resume a transfer, or to know how much
// there is, it is made once more, and what is not asked for is dropped: that
// takes time, but no memory.
func (s *stream) deliver(w http.ResponseWriter, r *http.Request, known *sizes) {
	h := w.Header()
	h.Set("Content-Type", s.mediaType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", documentPolicy)
	h.Set("Accept-Ranges", "bytes")
	h.Add("Vary", "Accept-Encoding")
	size, measured := known.get(s.tag)
	ranged := r.Header.Get("Range") != ""
	zip := acceptsGzip(r) && !ranged
	tag := s.tag
	if zip {
		tag += "-gzip"
	}
	tag = `"` + tag + `"`
	h.Set("Etag", tag)
	switch {
	case has(r, tag):
		notModified(w)
	case r.Method == http.MethodHead:
		if zip {
			h.Set("Content-Encoding", "gzip")
		} else if measured {
			h.Set("Content-Length", strconv.FormatInt(size, 10))
		}
	case zip:
		h.Set("Content-Encoding", "gzip")
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(w)
		s.send(z, known)
		_ = z.Close()
	case !ranged:
		if measured {
			h.Set("Content-Length", strconv.FormatInt(size, 10))
		}
		s.send(w, known)
	default:
		s.sendPart(w, r, size, measured, known)
	}
}

// send sends all of it, and notes how much it was.
func (s *stream) send(w io.Writer, known *sizes) {
	c := &counter{w: w}
	if err := s.write(c); err != nil || c.err != nil {
		panic(http.ErrAbortHandler) // readers can tell (RFC 9112 §8)
	}
	if s.unchanged() {
		known.put(s.tag, c.n)
	}
}

// sendPart answers a request for a range.
func (s *stream) sendPart(w http.ResponseWriter, r *http.Request, size int64, measured bool, known *sizes) {
	if !measured {
		c := &counter{w: io.Discard}
		if err := s.write(c); err != nil {
			panic(http.ErrAbortHandler)
		}
		size = c.n
	}
	part := &remade{write: s.write, size: size}
	defer part.stop()
	http.ServeContent(w, r, "", time.Time{}, part)
	if part.stop(); part.err != nil || !s.unchanged() {
		panic(http.ErrAbortHandler)
	}
	known.put(s.tag, size)
}

// A counter counts what is written.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.err = err
	return n, err
}

// A remade stream can be read from any place: it is made from its beginning.
type remade struct {
	write func(io.Writer) error
	size  int64
	at    int64
	read  *io.PipeReader // nil: nothing was read from here
	ended chan struct{}
	err   error // of the making
}

// Seek implements io.Seeker.
func (m *remade) Seek(offset int64, whence int) (int64, error) {
	m.stop()
	switch whence {
	case io.SeekCurrent:
		offset += m.at
	case io.SeekEnd:
		offset += m.size
	}
	m.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (m *remade) Read(b []byte) (int, error) {
	if m.read == nil {
		read, write := io.Pipe()
		m.read, m.ended = read, make(chan struct{})
		skip := m.at
		go func() {
			defer close(m.ended)
			m.err = m.write(&skipper{w: write, left: skip})
			_ = write.CloseWithError(m.err)
		}()
	}
	n, err := m.read.Read(b)
	m.at += int64(n)
	return n, err
}

// stop ends the making. That no more of it was wanted is no error.
func (m *remade) stop() {
	if m.read == nil {
		return
	}
	_ = m.read.CloseWithError(errEnough)
	<-m.ended
	m.read = nil
	if errors.Is(m.err, errEnough) {
		m.err = nil
	}
}

var errEnough = errors.New("no more is wanted")

// A skipper drops the beginning of what is written.
type skipper struct {
	w    io.Writer
	left int64
}

func (s *skipper) Write(b []byte) (int, error) {
	drop := min(s.left, int64(len(b)))
	s.left -= drop
	if drop == int64(len(b)) {
		return len(b), nil
	}
	n, err := s.w.Write(b[drop:])
	return int(drop) + n, err
}
