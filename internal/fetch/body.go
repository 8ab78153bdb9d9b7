package fetch

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// open puts the decoded body into the response. The exchange goes on until
// the body ends.
func (x *exchange) open(resp *Response, req *Request) error {
	r, limits := x.resp, &x.client.Limits
	if req.Method == http.MethodHead || r.Body == http.NoBody {
		x.end()
		return nil
	}
	encoding, known := contentEncoding(r.Header)
	if !known {
		x.end()
		return &EncodingError{URL: x.url, Encoding: encoding}
	}
	if encoding == "" && r.ContentLength > limits.bytes() {
		x.end() // why read it at all
		return &LimitError{URL: x.url, Limit: "bytes", Max: limits.bytes()}
	}
	b := &body{x: x, encoding: encoding}
	b.wire = wire{
		src: r.Body, guard: &x.guard, client: x.client, length: r.ContentLength,
		left: x.client.cap(x.client.Timeouts.body()),
	}
	resp.Body = b
	return nil
}

// A body is the decoded body of an answer.
type body struct {
	x        *exchange
	encoding string

	mu   sync.Mutex // Close may come while another goroutine reads
	wire wire
	dec  io.Reader // nil until the first Read
	free func()    // gives dec back
	n    int64     // decoded bytes so far
	err  error     // how it ended; nil: it goes on

	trailing bool // something follows the encoded stream, and is left alone
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
	room := b.x.client.Limits.bytes() - b.n
	if int64(len(p)) > room {
		p = p[:room+1] // one more than allowed, to tell whether there is more
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

// end gives back what the body holds, and makes err its last word.
func (b *body) end(err error) error {
	b.err = err
	b.x.client.logBody(b)
	if b.dec != nil {
		b.free()
	}
	b.x.end()
	return err
}

// exceeded checks the limits after a read.
func (b *body) exceeded() error {
	limits := &b.x.client.Limits
	if b.n > limits.bytes() {
		return &LimitError{URL: b.x.url, Limit: "bytes", Max: limits.bytes()}
	}
	if b.encoding != "" && b.n > RatioFree && b.n/limits.ratio() > b.wire.n {
		return &LimitError{URL: b.x.url, Limit: "ratio", Max: limits.ratio()}
	}
	return nil
}

// failure gives the error of a read its type. An error of the connection
// comes through the decoder in some form; what the wire saw is what counts.
func (b *body) failure(err error) error {
	x := b.x
	if b.wire.err != nil && b.wire.err != io.EOF {
		err = b.wire.err
		if cut := x.interrupted(); cut != nil {
			return cut
		}
		if err == errWire {
			return &LimitError{URL: x.url, Limit: "wire", Max: x.client.Limits.wire()}
		}
		return &TruncatedError{URL: x.url, Err: err}
	}
	switch {
	case err == io.EOF && b.encoding != "" && b.wire.n == 0:
		// Nothing at all is not a stream, though zstd takes it for one.
		return &TruncatedError{URL: x.url, Err: io.ErrUnexpectedEOF}
	case err == io.EOF:
		return io.EOF
	case err == errTrailing, b.n > 0 && errors.Is(err, zstd.ErrMagicMismatch):
		// zstd looks for another frame only where one has ended.
		b.trailing = true
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{URL: x.url, Err: io.ErrUnexpectedEOF}
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return &LimitError{URL: x.url, Limit: "window", Max: maxWindow}
	}
	return &EncodingError{URL: x.url, Encoding: b.encoding, Err: err}
}

// errWire tells that an encoded body is too long.
var errWire = errors.New("too many encoded bytes")

// wire is the body as it is sent, with its clock and its counter.
type wire struct {
	src    io.Reader
	guard  *guard
	client *Client
	length int64         // Content-Length; not positive: unknown
	left   time.Duration // of Timeouts.Body
	n      int64         // bytes so far
	err    error         // the last one
}

// Read reads while the clock runs. It stands still between reads: a slow
// caller is no fault of the server.
func (w *wire) Read(p []byte) (int, error) {
	now, step, limit := time.Now(), "idle", w.client.Timeouts.idle()
	wait := limit
	if w.left < wait {
		step, limit, wait = "body", w.client.cap(w.client.Timeouts.body()), w.left
	}
	w.guard.arm(now, step, limit, wait)
	n, err := w.src.Read(p)
	w.guard.disarm()
	w.left -= time.Since(now)
	w.n += int64(n)
	w.err = w.check(err)
	return n, w.err
}

// check holds the bytes read against what was announced and allowed. net/http
// does the former too; other transports may not.
func (w *wire) check(err error) error {
	if err == io.EOF && w.length > 0 && w.n < w.length {
		return io.ErrUnexpectedEOF
	}
	if err == nil && w.n > w.client.Limits.wire() {
		return errWire
	}
	return err
}
