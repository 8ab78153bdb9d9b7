package fetch

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// open sets the decoded body of the response. The exchange continues until the body
// ends.
func (x *exchange) open(resp *Response, req *Request) error {
	r := x.resp
	if req.Method == http.MethodHead || r.Body == http.NoBody {
		x.end()
		return nil
	}
	encoding, known := contentEncoding(r.Header)
	if !known {
		x.end()
		return &Failure{Kind: Encoding, URL: x.url, Name: encoding}
	}
	if encoding == "" && r.ContentLength > x.client.maxBytes() {
		x.end() // reading it would be pointless
		return x.exceeds("bytes", x.client.maxBytes())
	}
	b := &body{x: x, encoding: encoding}
	b.wire = wire{
		src: r.Body, guard: &x.guard, client: x.client, length: r.ContentLength,
		left: x.client.body(),
	}
	resp.Body = b
	return nil
}

// A body is the decoded body of an answer.
type body struct {
	x        *exchange
	encoding string

	mu   sync.Mutex // Close may be called while another goroutine reads
	wire wire
	dec  io.Reader // nil before the first Read
	free func()    // returns dec to its pool
	n    int64     // the number of decoded bytes so far
	err  error     // how it ended; nil while it has not

	trailing bool // the encoded stream is followed by something, which is not read
}

// Read reads decoded bytes.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.dec == nil {
		dec, free, err := b.x.client.decoder(b.encoding, &b.wire)
		if err != nil {
			return 0, b.end(b.failure(err))
		}
		b.dec, b.free = dec, free
	}
	room := b.x.client.maxBytes() - b.n
	if int64(len(p)) > room {
		p = p[:room+1] // one more than allowed, to detect an excess
	}
	n, err := b.dec.Read(p)
	b.n += int64(n)
	if limit := b.exceeded(); limit != nil {
		return min(n, int(room)), b.end(limit)
	}
	if err != nil {
		return n, b.end(b.failure(err))
	}
	return n, nil
}

// Close ends the exchange. A Read in another goroutine is cut off first.
func (b *body) Close() error {
	b.x.guard.cancel(http.ErrBodyReadAfterClose)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.end(http.ErrBodyReadAfterClose)
	}
	return nil
}

// end releases the body's resources, and makes err its final error.
func (b *body) end(err error) error {
	b.err = b.x.client.public(err)
	b.x.client.logBody(b)
	if b.dec != nil {
		b.free()
	}
	b.x.end()
	return b.err
}

// exceeded checks the limits after a read.
func (b *body) exceeded() error {
	c := b.x.client
	if b.n > c.maxBytes() {
		return b.x.exceeds("bytes", c.maxBytes())
	}
	if b.encoding != "" && b.n > ratioFree && b.n/c.maxRatio() > b.wire.n {
		return b.x.exceeds("ratio", c.maxRatio())
	}
	return nil
}

// failure returns the error of a read, as a Failure if it can be told. The decoder may wrap an error of
// the connection in some way, so the error of the wire counts.
func (b *body) failure(err error) error {
	x := b.x
	if b.wire.err != nil && b.wire.err != io.EOF {
		err = b.wire.err
		if cut := x.interrupted(); cut != nil {
			return cut
		}
		if err == errWire {
			return x.exceeds("wire", x.client.maxWire())
		}
		return x.truncated(err)
	}
	switch {
	case err == io.EOF && b.encoding != "" && b.wire.n == 0:
		// An empty body is not a stream, although zstd accepts it.
		return x.truncated(io.ErrUnexpectedEOF)
	case err == io.EOF:
		return io.EOF
	case err == errTrailing, b.n > 0 && errors.Is(err, zstd.ErrMagicMismatch):
		// zstd looks for another frame only after the end of one.
		b.trailing = true
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return x.truncated(io.ErrUnexpectedEOF)
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return x.exceeds("window", maxWindow)
	}
	return &Failure{Kind: Encoding, URL: x.url, Name: b.encoding, Err: err}
}

// errWire reports a too long encoded body.
var errWire = errors.New("too many encoded bytes")

// wire is the body as sent, with its timer and its counter.
type wire struct {
	src    io.Reader
	guard  *guard
	client *Client
	length int64         // Content-Length; unknown unless positive
	left   time.Duration // the rest of Client.Body
	n      int64         // the number of bytes so far
	err    error         // the last error
}

// Read reads while the timer runs. The timer stands still between reads, because a slow
// caller is not the server's fault.
func (w *wire) Read(p []byte) (int, error) {
	now, step, limit := time.Now(), "idle", w.client.idle()
	wait := limit
	if w.left < wait {
		step, limit, wait = "body", w.client.body(), w.left
	}
	w.guard.arm(now, step, limit, wait)
	n, err := w.src.Read(p)
	w.guard.disarm()
	w.left -= time.Since(now)
	w.n += int64(n)
	w.err = w.check(err)
	return n, w.err
}

// check compares the number of bytes read with the announced length and the limit.
// net/http checks the former too; other transports may not.
func (w *wire) check(err error) error {
	if err == io.EOF && w.length > 0 && w.n < w.length {
		return io.ErrUnexpectedEOF
	}
	if err == nil && w.n > w.client.maxWire() {
		return errWire
	}
	return err
}
