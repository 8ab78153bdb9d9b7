package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"strconv"
	"strings"
)

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
