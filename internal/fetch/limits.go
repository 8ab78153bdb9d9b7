package fetch

import (
	"cmp"
	"time"
)

// or returns a setting, or its default if it is zero or negative.
func or[T cmp.Ordered](setting, def T) T {
	if setting > *new(T) {
		return setting
	}
	return def
}

// RatioFree is how many decoded bytes of a body come before Limits.Ratio
// counts: small documents compress too well to be judged.
const RatioFree = 1 << 20

// Limits bound what an answer may cost. A field that is zero or negative means its
// default.
type Limits struct {
	Bytes  int64 // of a body, decoded. Zero: 16 MiB
	Ratio  int   // decoded bytes to bytes on the wire, beyond RatioFree. Zero: 200
	Header int64 // bytes of all headers of an answer. Zero: 64 KiB
	URL    int   // bytes of a URL, given or redirected to. Zero: 8 KiB
}

func (l Limits) bytes() int64  { return or(l.Bytes, 16<<20) }
func (l Limits) ratio() int64  { return int64(or(l.Ratio, 200)) }
func (l Limits) header() int64 { return or(l.Header, 64<<10) }
func (l Limits) url() int      { return or(l.URL, 8<<10) }

// wire bounds the bytes read of an encoded body: without it, a stream that
// decodes to nothing would go on until the time is up. A document that does
// not compress is a little longer encoded than decoded, hence the allowance.
func (l Limits) wire() int64 { return l.bytes() + l.bytes()/16 + 4096 }

// Timeouts bound how long each step of a request may take. A field that is zero or
// negative means its default.
type Timeouts struct {
	Connect time.Duration // name lookup and TCP. Zero: 5 s
	TLS     time.Duration // the handshake. Zero: 10 s
	Headers time.Duration // from the start, connecting included, to the headers read. Zero: 20 s
	Body    time.Duration // waiting for the bytes of the body, all reads together. Zero: 60 s
	Idle    time.Duration // waiting for the next bytes of the body. Zero: 15 s
}

func (t Timeouts) connect() time.Duration { return or(t.Connect, 5*time.Second) }
func (t Timeouts) tls() time.Duration     { return or(t.TLS, 10*time.Second) }
func (t Timeouts) headers() time.Duration { return or(t.Headers, 20*time.Second) }
func (t Timeouts) body() time.Duration    { return or(t.Body, 60*time.Second) }
func (t Timeouts) idle() time.Duration    { return or(t.Idle, 15*time.Second) }
