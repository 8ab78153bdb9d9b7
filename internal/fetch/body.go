package fetch

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/html/charset"
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
		x.giveUp()
		return &Failure{Kind: Encoding, URL: x.url, Name: encoding}
	}
	if encoding == "" && r.ContentLength > x.maxBytes() {
		x.giveUp() // reading it would be pointless
		return x.exceeds("bytes", x.maxBytes())
	}
	b := &body{x: x, encoding: encoding}
	b.wire = wire{
		src: r.Body, guard: &x.guard, client: x.client, length: r.ContentLength,
		left: x.client.body(), most: x.client.maxWire(),
	}
	if x.raw {
		b.wire.left, b.wire.most = math.MaxInt64, math.MaxInt64
	}
	resp.Body = b
	return nil
}

// maxBytes returns the maximum length of the body, decoded.
func (x *exchange) maxBytes() int64 {
	if x.raw {
		return math.MaxInt64 - 1
	}
	return x.client.maxBytes()
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
		dec, free, err := b.decoder()
		if err != nil {
			return 0, b.end(b.failure(err))
		}
		b.dec, b.free = dec, free
	}
	room := b.x.maxBytes() - b.n
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
	if !b.mu.TryLock() {
		b.x.guard.cancel(http.ErrBodyReadAfterClose)
		b.mu.Lock()
	}
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
	if err == io.EOF && !b.trailing || b.wire.n == b.x.resp.ContentLength {
		b.x.end()
	} else {
		b.x.giveUp()
	}
	return b.err
}

// exceeded checks the limits after a read.
func (b *body) exceeded() error {
	if b.n > b.x.maxBytes() {
		return b.x.exceeds("bytes", b.x.maxBytes())
	}
	if b.encoding != "" && b.n > ratioFree && b.n/maxRatio > b.wire.n {
		return b.x.exceeds("ratio", maxRatio)
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
	most   int64         // the maximum of n
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
	if err == nil && w.n > w.most {
		return errWire
	}
	return err
}

// maxWindow is how far back a zstd stream may refer, and so the memory it takes: as
// much as RFC 9659 allows for HTTP.
const maxWindow = 8 << 20

// contentEncoding returns "gzip", "zstd", "deflate", "gzip, gzip", or "" for a body without
// encoding: some servers name there a charset, or nothing at all. It returns false for any
// other encoding, which was not offered, and for further ones, which may be a bomb within a
// bomb.
func contentEncoding(h http.Header) (string, bool) {
	lines := h["Content-Encoding"]
	if len(lines) == 0 {
		return "", true
	}
	found := ""
	all := strings.Join(lines, ", ")
	for name := range strings.SplitSeq(all, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case (name == "gzip" || name == "x-gzip") && (found == "" || found == "gzip"):
			found = strings.TrimPrefix(found+", gzip", ", ")
		case name == "" || isNoEncoding(name):
		case found != "":
			return all, false
		default:
			found = name
		}
	}
	return found, found == "" || found == "gzip" || found == "gzip, gzip" || found == "zstd" || found == "deflate"
}

// isNoEncoding reports whether a name in Content-Encoding means that the body is as it is: it
// is that of a charset or of a transfer encoding of mail.
func isNoEncoding(name string) bool {
	switch name {
	case "identity", "none", "null", "binary", "8bit", "7bit", "text", "plain", "chunked":
		return true
	}
	known, _ := charset.Lookup(name)
	return known != nil
}

// decoder takes a decoder for the wire from the pool of its kind; release returns it.
// Creating one may already read from the wire.
func (b *body) decoder() (dec io.Reader, release func(), err error) {
	c, src := b.x.client, io.Reader(&b.wire)
	switch b.encoding {
	case "gzip":
		return c.gzip(src)
	case "gzip, gzip":
		outer, freeOuter, err := c.gzip(src)
		if err != nil {
			return nil, nil, err
		}
		inner, freeInner, err := c.gzip(outer)
		if err != nil {
			freeOuter()
			return nil, nil, err
		}
		return inner, func() { freeInner(); freeOuter() }, nil
	case "deflate":
		return inflate(src)
	case "zstd":
		return c.zstd(src)
	}
	if b.x.raw {
		return src, func() {}, nil
	}
	// No document begins like gzip: a server has compressed it without saying so.
	in := bufio.NewReader(src)
	if begin, _ := in.Peek(len(gzipMagic)); string(begin) == gzipMagic {
		b.encoding = "gzip"
		return c.gzip(in)
	}
	return in, func() {}, nil
}

// inflate decodes deflate, which by RFC 9110 §8.4.1.2 is in the format of zlib, and by many
// servers is not.
func inflate(src io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReader(src)
	begin, _ := in.Peek(2)
	if len(begin) == 2 && begin[0]&0xF == 8 && (int(begin[0])<<8|int(begin[1]))%31 == 0 {
		dec, err := zlib.NewReader(in)
		return dec, func() {}, noEOF(err)
	}
	return flate.NewReader(in), func() {}, nil
}

func (c *Client) gzip(src io.Reader) (io.Reader, func(), error) {
	g, _ := c.shared().gzips.Get().(*gunzip)
	if g == nil {
		g = new(gunzip)
	}
	release := func() {
		g.release()
		c.shared().gzips.Put(g)
	}
	if err := g.reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return g, release, nil
}

func (c *Client) zstd(src io.Reader) (io.Reader, func(), error) {
	z, _ := c.shared().zstds.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, nil, err
		}
	}
	release := func() {
		z.Reset(nil)
		c.shared().zstds.Put(z)
	}
	if err := z.Reset(src); err != nil {
		release()
		return nil, nil, noEOF(err)
	}
	return z, release, nil
}

// noEOF makes the end of a stream unexpected before its beginning.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A gunzip decodes all members of a gzip stream (RFC 1952 §2.2). It does not read past
// the last member, where some servers pad with zeros: the checksum has proved the
// stream complete.
type gunzip struct {
	src bufio.Reader
	z   gzip.Reader
}

// errTrailing is the error at the end of a complete stream with something else after it.
var errTrailing = errors.New("something follows the encoded stream")

// reset sets the source of the stream, and reads the header of its first member.
func (g *gunzip) reset(src io.Reader) error {
	g.src.Reset(src)
	return noEOF(g.member())
}

// member reads the header of the next member.
func (g *gunzip) member() error {
	err := g.z.Reset(&g.src)
	g.z.Multistream(false)
	return err
}

// release drops the source, so a pool holds no body.
func (g *gunzip) release() { g.src.Reset(http.NoBody) }

// Read reads decoded bytes.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the next Read returns the end
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// gzipMagic begins each member of a gzip stream (RFC 1952 §2.3.1).
const gzipMagic = "\x1f\x8b\x08"

// next starts the next member; it returns io.EOF or errTrailing if there is none.
func (g *gunzip) next() error {
	begin, err := g.src.Peek(len(gzipMagic))
	switch {
	case len(begin) == 0:
		return err
	case !strings.HasPrefix(gzipMagic, string(begin)):
		return errTrailing
	}
	return noEOF(g.member())
}

// peekMost is the length of the longest head section whose links are followed early.
const peekMost = 1 << 20

const bufferSize = 32 << 10

// buffers are those of bodies being read: one for each would be most of the garbage of a walk.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Text reads the body to its end, and returns it with its digest, which is its length and two
// checksums: it detects changes at the speed of memory, but does not withstand forgery. The
// digest it had before, or "", says how long it may be. In the meantime it calls peek, unless nil,
// with the bytes received so far, until peek returns false. Together with an error of the body, it
// returns the part before.
func (r *Response) Text(before string, peek func(prefix string) bool) (text, digest string, err error) {
	var all strings.Builder
	said, _ := strconv.Atoi(r.Header.Get("Content-Length"))
	length, _, _ := strings.Cut(before, "-")
	was, _ := strconv.ParseUint(length, 16, 32)
	all.Grow(min(max(said, int(was+was/16)), peekMost))
	castagnoli, ieee := crc32.New(crc32.MakeTable(crc32.Castagnoli)), crc32.NewIEEE()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	to := io.MultiWriter(&all, castagnoli, ieee)
	sums := func() string {
		return fmt.Sprintf("%x-%s", all.Len(), hex.EncodeToString(ieee.Sum(castagnoli.Sum(nil))))
	}
	for next := 1; ; {
		n, err := r.Body.Read(buf[:])
		_, _ = to.Write(buf[:n]) // memory and checksums do not fail
		switch {
		case errors.Is(err, io.EOF):
			return all.String(), sums(), nil
		case err != nil:
			return all.String(), sums(), err
		}
		if n := all.Len(); peek != nil && n >= next {
			if next = n + n/4; n > peekMost || !peek(all.String()) {
				peek = nil
			}
		}
	}
}

// FreshUntil returns when an answer stops being fresh by its headers, by the rules of RFC 9111
// for a private cache, which ignores s-maxage: the earliest time at which another request makes
// sense. It is zero if the answer does not say, and the time of receipt if the answer must not
// be used again without asking. Of several max-age directives, the first counts (§4.2.1); with
// an invalid date in Expires, such as 0, the answer is already stale (§5.3).
func FreshUntil(h http.Header, received time.Time) time.Time {
	said, lifetime := false, time.Duration(0)
	for _, line := range h["Cache-Control"] {
		for line != "" {
			var name, value string
			name, value, line = directive(line)
			switch name = strings.ToLower(name); {
			case name == "no-store", name == "no-cache" && value == "": // field names concern only those fields (§5.2.2.4)
				return received
			case name == "max-age" && !said:
				said = true
				lifetime, _ = deltaSeconds(value)
			}
		}
	}
	if expires := h.Get("Expires"); !said && expires != "" {
		said = true
		if at, ok := parseDate(expires); ok {
			made, ok := parseDate(h.Get("Date"))
			if !ok {
				made = received
			}
			lifetime = at.Sub(made)
		}
	}
	if !said {
		return time.Time{}
	}
	age, _ := deltaSeconds(strings.TrimSpace(h.Get("Age")))
	return received.Add(max(lifetime-age, 0))
}

// directive cuts the first name or name=value off a list. A value may be quoted; a comma
// within quotes does not end it.
func directive(s string) (name, value, rest string) {
	end := strings.IndexAny(s, ",=")
	if end < 0 {
		return strings.TrimSpace(s), "", ""
	}
	name, rest = strings.TrimSpace(s[:end]), s[end+1:]
	if s[end] == ',' {
		return name, "", rest
	}
	rest = strings.TrimLeft(rest, " \t")
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		value, rest, _ = strings.Cut(quoted, `"`)
		_, rest, _ = strings.Cut(rest, ",")
		return name, value, rest
	}
	value, rest, _ = strings.Cut(rest, ",")
	return name, strings.TrimSpace(value), rest
}
