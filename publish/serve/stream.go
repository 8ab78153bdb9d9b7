package serve

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// A Stream is a document that may be too large for memory, so it is made while it is sent.
// To resume a transfer, it is made again without the unwanted parts: this takes time, but no
// memory.
type Stream struct {
	Tag string // as of a Document

	// Begin prepares Write, and takes what it needs; end gives that back. It is not called for
	// clients that get no content. An error stops the answer before it begins.
	Begin func() (end func(), err error)

	Write     func(io.Writer) error // writes the document, the same each time
	Unchanged func() bool           // reports whether Write still writes the content of the Tag

	Sizes *Cache[string, int64] // the sizes of documents, by Tag, as far as they have been made

	// Since returns a Write with only the entries that were added or changed since the document
	// had one of these Tags; nil if they are unknown. A nil function means they always are.
	Since func(tags []string) (write func(io.Writer) error, err error)
}

// Serve answers with the stream, as Document.Serve does. Of several ranges it makes none:
// each would need the stream again.
func (s Stream) Serve(w http.ResponseWriter, r *http.Request) error {
	if s.Begin == nil || s.Write == nil || s.Unchanged == nil {
		return errors.New("serve: Stream.Begin, Write and Unchanged must be set")
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	size, ok := s.Sizes.Get(s.Tag)
	if !ok {
		size = unknownSize
	}
	reader := func(size int64, write func(io.Writer) error) *streamReader {
		return &streamReader{Stream: s, head: r.Method == http.MethodHead, ranged: r.Header.Get("Range") != "", size: size, write: write}
	}
	whole := func(w io.Writer) error {
		c := &counter{w: w}
		err := s.Write(c)
		if err = errors.Join(err, c.err); err == nil && s.Unchanged() {
			s.Sizes.Put(s.Tag, c.n)
		}
		return err
	}
	d := Document{Tag: s.Tag, Content: reader(size, whole), Gzip: func() (io.ReadSeeker, string, error) {
		if r.Header.Get("Range") != "" {
			return nil, "", nil // no part of a compressed stream can be made again
		}
		return reader(unknownSize, func(w io.Writer) error {
			z := newZipper(w)
			defer z.free()
			err := whole(z)
			return errors.Join(err, z.Close())
		}), s.Tag + "-gzip", nil
	}}
	if s.Since != nil {
		d.Since = func(tags []string) (io.ReadSeeker, error) {
			write, err := s.Since(tags)
			if write == nil || err != nil {
				return nil, err
			}
			return reader(unknownSize, write), nil
		}
	}
	return d.Serve(w, r)
}

// A streamReader is a stream as the content of a Document.
type streamReader struct {
	Stream
	write        func(io.Writer) error
	head, ranged bool   // whether the request is HEAD, and whether it has a Range
	size         int64  // unknownSize if unknown
	leave        func() // gives back what Begin took; nil before
	at           int64
	err          error // of making the stream
}

// Seek implements io.Seeker.
func (m *streamReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += m.at
	case io.SeekEnd:
		if err := m.begin(); err != nil {
			return 0, err
		}
		offset += m.size
	}
	m.at = offset
	return offset, nil
}

// Read implements io.Reader, which nobody calls: a response calls send.
func (m *streamReader) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// begin prepares the stream for a client that is to get content.
func (m *streamReader) begin() (err error) {
	if m.head || m.leave != nil {
		return nil
	}
	if m.leave, err = m.Begin(); err != nil || m.size != unknownSize || !m.ranged {
		return err
	}
	c := &counter{w: io.Discard}
	if m.err = m.write(c); m.err != nil {
		panic(http.ErrAbortHandler)
	}
	m.size = c.n
	return nil
}

// send makes the stream from its beginning, and writes n bytes of it from here on.
func (m *streamReader) send(w io.Writer, n int64) error {
	if m.err = m.write(&window{w, m.at, n}); errors.Is(m.err, errEnough) {
		m.err = nil
	}
	return m.err
}

// isUsable reports whether the client can use what it got: the whole of a state of the
// document, or a part of the present one.
func (m *streamReader) isUsable() bool {
	return m == nil || m.leave == nil || m.err == nil && (!m.ranged || m.Unchanged())
}

// free ends the stream, however the answer ended.
func (m *streamReader) free() {
	if m != nil && m.leave != nil {
		m.leave()
	}
}

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

// A window passes a part of the bytes written on.
type window struct {
	w          io.Writer
	skip, left int64
}

var errEnough = errors.New("the rest is not wanted")

func (p *window) Write(b []byte) (int, error) {
	skip := min(p.skip, int64(len(b)))
	part := b[skip:min(skip+p.left, int64(len(b)))]
	n, err := p.w.Write(part)
	p.skip, p.left = p.skip-skip, p.left-int64(n)
	if n += int(skip); err == nil && n < len(b) {
		err = errEnough
	}
	return n, err
}
