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

// RatioFree is the number of decoded bytes before Limits.Ratio applies, because the
// ratio of small documents says little.
const RatioFree = 1 << 20

// Limits bound the cost of an answer. A zero or negative field means its default.
type Limits struct {
	Bytes  int64 // Bytes is the size of a body, decoded; the default is 16 MiB.
	Ratio  int   // Ratio is the ratio of decoded bytes to bytes on the wire, beyond RatioFree; the default is 200.
	Header int64 // Header is the size of all headers of an answer in bytes; the default is 64 KiB.
	URL    int   // URL is the length of a URL, given or redirected to, in bytes; the default is 8 KiB.
}

func (l Limits) bytes() int64  { return min(or(l.Bytes, 16<<20), 1<<60) } // no sum overflows
func (l Limits) ratio() int64  { return int64(or(l.Ratio, 200)) }
func (l Limits) header() int64 { return or(l.Header, 64<<10) }
func (l Limits) url() int      { return or(l.URL, 8<<10) }

// wire limits the encoded bytes of a body: without it, a stream decoding to nothing
// would continue until the timeout. An incompressible document is a little longer
// encoded than decoded, hence the allowance.
func (l Limits) wire() int64 { return l.bytes() + l.bytes()/16 + 4096 }

// Timeouts bound how long each step of a request may take. A zero or negative field
// means its default.
type Timeouts struct {
	Connect time.Duration // Connect is for name lookup and TCP; the default is 5 s.
	TLS     time.Duration // TLS is for the handshake; the default is 10 s.
	Headers time.Duration // Headers is from the start, including the connection, to the end of the headers; the default is 20 s.
	Body    time.Duration // Body is the total wait for the bytes of the body; the default is 60 s.
	Idle    time.Duration // Idle is the wait for the next bytes of the body; the default is 15 s.
}

func (t Timeouts) connect() time.Duration { return or(t.Connect, 5*time.Second) }
func (t Timeouts) tls() time.Duration     { return or(t.TLS, 10*time.Second) }
func (t Timeouts) headers() time.Duration { return or(t.Headers, 20*time.Second) }
func (t Timeouts) body() time.Duration    { return or(t.Body, 60*time.Second) }
func (t Timeouts) idle() time.Duration    { return or(t.Idle, 15*time.Second) }
