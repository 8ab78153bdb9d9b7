package republish

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// A stream is a document that may be too large for memory, so it is made while
// it is sent. The same tag must always mean the same content.
type stream struct {
	tag       string
	mediaType string
	cache     string // the Cache-Control
	slots     slots
	prepare   func() error // called before write, which needs a slot; nil if the document is in memory
	write     func(io.Writer) error
	unchanged func() bool // whether the content is still the tag's
}

// serveBytes answers with a finished document.
func serveBytes(w http.ResponseWriter, r *http.Request, data []byte, format feedhistory.Format, cache string) error {
	sum := sha256.Sum256(data)
	doc := &stream{
		tag: hex.EncodeToString(sum[:10]), mediaType: mediaTypeOf(format), cache: cache,
		write:     func(w io.Writer) error { _, err := w.Write(data); return err },
		unchanged: func() bool { return true },
	}
	var known sizes
	known.Put(doc.tag, int64(len(data)))
	return doc.deliver(w, r, &known)
}

// sizes are the sizes of streams, by tag, as far as they have been made.
type sizes = publish.Cache[string, int64]

// deliver answers with the stream. To resume a transfer, or to find out the size, it
// makes the stream again and drops the unwanted parts: this takes time, but no memory.
func (s *stream) deliver(w http.ResponseWriter, r *http.Request, known *sizes) error {
	ranged := r.Header.Get("Range") != ""
	zip := publish.AcceptsGzip(r.Header) && !ranged
	if !has(r, entityTag(s.tag, zip)) && r.Method != http.MethodHead && s.prepare != nil {
		leave, err := s.slots.enter(r)
		if err != nil {
			return err
		}
		defer leave()
		if err := s.prepare(); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Content-Type", s.mediaType)
	h.Set("Cache-Control", s.cache)
	h.Set("Content-Security-Policy", documentPolicy)
	h.Set("Accept-Ranges", "bytes")
	unchanged := describe(w, r, s.tag, zip)
	size, measured := known.Get(s.tag)
	if measured && !zip && !ranged {
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	switch {
	case unchanged:
		notModified(w)
	case r.Method == http.MethodHead:
	case zip:
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(newPieceWriter(w))
		s.send(z, known)
		_ = z.Close()
	case ranged:
		s.sendPart(w, r, size, measured, known)
	default:
		s.send(newPieceWriter(w), known)
	}
	return nil
}

// limits of answers made while they are sent: each may hold a large entry in memory as
// long as its client takes to read it.
const (
	mostStreams = 16
	streamWait  = 2 * time.Second  // for one of the others to end
	pieceSize   = 64 << 10         // written at once
	pieceTime   = 30 * time.Second // for the client to take a piece
)

// slots bounds the number of answers in progress.
type slots chan struct{}

// enter waits until an answer may be made; leave ends it. The error is an *Error
// if there are too many.
func (s slots) enter(r *http.Request) (leave func(), err error) {
	wait := time.NewTimer(streamWait)
	defer wait.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-wait.C:
		return nil, &Error{http.StatusServiceUnavailable, "too many large documents are being sent", "Try again in a moment."}
	}
}

// A pieceWriter writes in pieces, and ends an answer whose client takes no piece
// for a while.
type pieceWriter struct {
	w       io.Writer
	control *http.ResponseController
}

func newPieceWriter(w http.ResponseWriter) *pieceWriter {
	return &pieceWriter{w, http.NewResponseController(w)}
}

func (p *pieceWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a test's ResponseWriter has none
		var k int
		k, err = p.w.Write(b[n:min(len(b), n+pieceSize)])
		n += k
	}
	return n, err
}

// send sends the whole stream, and remembers its size.
func (s *stream) send(w io.Writer, known *sizes) {
	c := &counter{w: w}
	if err := s.write(c); err != nil || c.err != nil {
		panic(http.ErrAbortHandler) // clients notice this (RFC 9112 §8)
	}
	if s.unchanged() {
		known.Put(s.tag, c.n)
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
	part := &streamReader{write: s.write, size: size}
	defer part.stop()
	http.ServeContent(&pieceResponse{w, newPieceWriter(w)}, r, "", time.Time{}, part)
	if part.stop(); part.err != nil || !s.unchanged() {
		panic(http.ErrAbortHandler)
	}
	known.Put(s.tag, size)
}

// A pieceResponse is a ResponseWriter that writes in pieces.
type pieceResponse struct {
	http.ResponseWriter
	pieces *pieceWriter
}

// Write implements http.ResponseWriter.
func (w *pieceResponse) Write(b []byte) (int, error) { return w.pieces.Write(b) }

// A counter counts the bytes written.
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

// A streamReader is a stream readable from any position, because it is made from its
// beginning each time.
type streamReader struct {
	write func(io.Writer) error
	size  int64
	at    int64
	read  *io.PipeReader // nil if nothing was read from here
	ended chan struct{}
	err   error // of making the stream
}

// Seek implements io.Seeker.
func (m *streamReader) Seek(offset int64, whence int) (int64, error) {
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
func (m *streamReader) Read(b []byte) (int, error) {
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

// stop stops making the stream. An unwanted rest is not an error.
func (m *streamReader) stop() {
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

var errEnough = errors.New("the rest is not wanted")

// A skipper drops the beginning of the bytes written.
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
