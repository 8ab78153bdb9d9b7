// Package fetch is the polite and safe HTTP client with which everything reads
// feeds. A URL may come from a hostile document, and its server may be hostile:
// whatever they do, a fetch ends in bounded time and memory, and connects only to
// public addresses.
//
// It is also polite: it makes few requests to a host at a time, spaced, conditional
// if a validator is known, and none while the host asks clients to wait.
//
// An error is a [Failure], or what Client.Public makes of it.
package fetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/net/http/httpguts"
)

// fallbackAgent is the User-Agent if none is given.
const fallbackAgent = "feedhistory"

// A Client fetches documents. Its zero value is ready to use. Many goroutines may
// share one; Clients with different settings are polite together if they have the
// same Shared. Do not change its fields after the first use.
type Client struct {
	// Transport makes the requests; nil means the built-in one. Another one is
	// responsible for proxies and for TLS: Connect and TLS apply only to the built-in one.
	// Of an *http.Transport, a clone is used, which refuses the addresses AllowPrivate allows;
	// any other is responsible for the addresses it dials.
	Transport http.RoundTripper

	// Proxy returns the proxy for a request; a nil func or URL means none. A proxy may be at
	// any address. It resolves names itself, so of the addresses behind it only those
	// written as such are refused.
	Proxy func(*http.Request) (*url.URL, error)

	RootCAs *x509.CertPool // RootCAs are the certificate authorities to trust; nil means the system's.

	// Wrap, if not nil, returns the transport to use around the other one.
	Wrap func(http.RoundTripper) http.RoundTripper

	// UserAgent is sent with every request; "" means "feedhistory".
	UserAgent string

	// AllowPrivate allows requests to loopback, private and special-purpose
	// addresses. Otherwise they are refused, whatever name led to them.
	AllowPrivate bool

	// Pace is the minimum time between the starts of two requests to one host; zero
	// means no pause.
	Pace time.Duration

	// PerHost is the maximum number of requests to one host in flight; zero means 4.
	// A request is in flight until its body is closed or read to its end.
	PerHost int

	Bytes int64 // Bytes is the maximum size of a body, decoded; zero means DefaultBytes.

	Connect time.Duration // Connect is the time for name lookup and TCP; zero means 5 s.
	TLS     time.Duration // TLS is the time for the handshake; zero means 10 s.
	Headers time.Duration // Headers is the time from the start to the end of the headers; zero means 20 s.
	Body    time.Duration // Body is the total wait for the bytes of the body; zero means 60 s.
	Idle    time.Duration // Idle is the wait for the next bytes of the body; zero means 15 s.

	Tries   int           // Tries is the maximum number of requests; zero means 3.
	Base    time.Duration // Base is the first wait before another try; zero means 1 s.
	MaxWait time.Duration // MaxWait is the longest single wait, also for the host; zero means 30 s, negative none.

	// Secrets returns header fields, perhaps credentials, for each request; redirects and
	// repetitions included. It answers for the origins it sends them to. Nil means none.
	Secrets func(*url.URL) http.Header

	// Public returns the error callers and the log get to see for a Failure; nil means the
	// Failure.
	Public func(*Failure) error

	// Logger receives an event for each request, answer and decision; nil means no
	// logging.
	Logger *slog.Logger

	// Shared has the connections and the memory of hosts several Clients share. With nil,
	// this Client shares nothing.
	Shared *Shared

	own     Shared
	once    sync.Once
	wrapped http.RoundTripper

	// Hooks for the tests; otherwise nil.
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	resolver *net.Resolver
	control  func(network, address string, c syscall.RawConn) error
}

// A Request describes a document to fetch. Only its URL is required.
type Request struct {
	// URL is an absolute http or https URL without userinfo. Its fragment is not sent.
	URL string

	// Method is GET or HEAD; "" means GET.
	Method string

	// Accept is the value of the header; "" means "*/*".
	Accept string

	// ETag and LastModified are the validators of an earlier Response, verbatim. They
	// make the request conditional; empty ones are not sent.
	ETag, LastModified string

	// Validated is the URL of the Response the validators came from; "" means URL. They
	// are sent only to its origin, in any hop: another server, comparing them with its
	// own, might claim nothing has changed.
	Validated string

	// Header has further fields, with which a protocol selects its answer. Like
	// validators, they are sent only to the origin of URL. Fields set by this package or
	// the connection are refused.
	Header http.Header

	// Raw accepts any status, once it is not to be tried again, and a body of any length
	// that takes any time, as long as it goes on. Otherwise the statuses 206 and 226 are a
	// Failure, because nothing asked for a part; after a 226, the document is requested
	// without validators.
	Raw bool

	left int // the number of tries that may follow

	// Once makes a single request: no redirect is followed, and nothing is tried again.
	Once bool

	// Again waits as before a second try.
	Again bool

	// IsDoubtful, if not nil, is asked after an error: whether a guess may have provoked
	// it. It is then not tried again, and a wait the host asks for does not count.
	IsDoubtful func() bool
}

// isDoubtful reports whether a guess may have provoked an error.
func (req *Request) isDoubtful() bool { return req.IsDoubtful != nil && req.IsDoubtful() }

// A Response is a success (2xx) or a 304: nothing has changed. Close its Body.
type Response struct {
	URL       string // the URL of the answer, after redirects, without a fragment
	Requested string // the URL of the request, as given

	// Permanent is the URL to request from now on: where the permanent redirects (301,
	// 308) at the beginning of the chain lead. It is "" if there are none.
	Permanent string

	Status int         // 200, another 2xx, or 304
	Header http.Header // the header of the final answer

	// ETag and LastModified are the validators to send back verbatim in the next
	// Request. If a 304 does not repeat them, they are those of the request.
	ETag, LastModified string

	// Body returns decoded bytes. It enforces the limits and timeouts, and returns
	// io.EOF only if the body is complete as far as HTTP can tell: a body without
	// Content-Length, chunks and compression may have been cut off. Read it to its
	// end, or the connection cannot be reused. It is never nil, and empty for a 304
	// and for HEAD. Cancelling the context ends it, but its place at the host becomes
	// free for another request only at its end or when it is closed.
	Body io.ReadCloser

	HTTP *http.Response // the answer as received
}

// Do fetches a document, and returns when it has the headers of the final answer. It
// waits for its turn at the host, follows redirects, and tries again. The
// context also governs the body.
func (c *Client) Do(ctx context.Context, req Request) (*Response, error) {
	resp, err := c.try(ctx, &req)
	if f, ok := errors.AsType[*Failure](err); ok && f.Status == http.StatusIMUsed && req.ETag+req.LastModified != "" {
		// Nothing asked for the changes alone. Without validators, there are none (RFC 3229 §10.4.1).
		req.ETag, req.LastModified = "", ""
		resp, err = c.try(ctx, &req)
	}
	if err != nil {
		c.logFailure(ctx, req.URL, err)
		return nil, c.public(err)
	}
	return resp, nil
}

// try tries until one request succeeds, or another would make no sense.
func (c *Client) try(ctx context.Context, req *Request) (*Response, error) {
	u, err := c.check(req)
	if err != nil {
		return nil, err
	}
	if req.Again && sleep(ctx, c.backoff(1)) != nil {
		return nil, wrap(req.URL, ctx.Err())
	}
	for try := 1; ; try++ {
		req.left = c.tries() - try
		resp, err := c.follow(ctx, u, req)
		wait, again := c.next(try, err)
		if !again || req.isDoubtful() {
			return resp, err
		}
		c.log(ctx, slog.LevelInfo, "retry", req.URL, slog.Int("try", try), slog.Duration("wait", wait), slog.Any("error", c.public(err)))
		if sleep(ctx, wait) != nil {
			return nil, wrap(req.URL, ctx.Err())
		}
	}
}

// CloseIdle closes the connections kept but not in use.
func (c *Client) CloseIdle() {
	if t, ok := c.inner().(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// sleep waits for d, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wrap makes a Failure of an error of any type but this package's.
func wrap(rawURL string, err error) error {
	return &Failure{Kind: Network, URL: iri.Redact(rawURL), Err: err}
}

// newRequest makes the request of one hop, with headers of its own, because a hop must not
// see the headers of another.
func (c *Client) newRequest(ctx context.Context, u *url.URL, req *Request, conditional bool) (*http.Request, error) {
	encodings := "gzip, zstd"
	if strings.HasPrefix(req.Header.Get("Range"), "bytes") { // of the document's own
		encodings = "identity"
	}
	fields := [...]struct{ name, value string }{
		{"User-Agent", cmp.Or(c.UserAgent, fallbackAgent)},
		{"Accept", cmp.Or(req.Accept, "*/*")},
		{"Accept-Encoding", encodings},
		{"If-None-Match", req.ETag},
		{"If-Modified-Since", req.LastModified},
	}
	send := fields[:]
	if !conditional {
		send = fields[:3]
	}
	header := make(http.Header, len(fields))
	values := make([]string, len(fields)) // one array for all: polls are cheap
	for i, f := range send {
		if f.value == "" {
			continue
		}
		if !httpguts.ValidHeaderFieldValue(f.value) {
			return nil, refused(u.String(), RuleHeader, nil)
		}
		values[i] = f.value
		header[f.name] = values[i : i+1 : i+1]
	}
	if c.Secrets != nil {
		if err := addSecrets(u, header, c.Secrets(u)); err != nil {
			return nil, err
		}
	}
	r := http.Request{
		Method:     cmp.Or(req.Method, http.MethodGet),
		URL:        u,
		Host:       u.Host,
		Header:     header,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	return r.WithContext(ctx), nil
}

// owner returns the URL whose origin may see the validators; nil if there are none.
func (req *Request) owner(first *url.URL) *url.URL {
	switch {
	case req.ETag == "" && req.LastModified == "":
		return nil
	case req.Validated == "":
		return first
	}
	u, err := iri.ParseLeniently(req.Validated)
	if err != nil {
		return nil
	}
	return u
}

// An exchange is one request and its answer, with the resources it holds until it ends:
// a place at the host, a context and a timer.
type exchange struct {
	client  *Client
	caller  context.Context // the caller may cancel it
	ctx     context.Context // the guard may cancel it as well
	guard   guard
	host    *host
	url     string
	started time.Time

	conditional bool
	raw         bool
	resp        *http.Response
}

// exchange waits for its turn, sends a request and reads the headers of the answer. The
// result must be ended. The hop sends the validators if it is conditional, and the
// request's own header fields, all of them only at the origin of the first hop.
func (c *Client) exchange(ctx context.Context, u *url.URL, location string, req *Request, conditional, first bool, cookies http.CookieJar) (*exchange, error) {
	h, err := c.enter(ctx, u)
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, caller: ctx, host: h, url: location, conditional: conditional, raw: req.Raw, started: time.Now()}
	x.ctx, x.guard.cancel = context.WithCancelCause(ctx)
	x.guard.step = Failure{Kind: Timeout, URL: location}
	r, err := c.newRequest(x.withoutRepeats(x.ctx), u, req, conditional)
	if err == nil {
		err = addHeader(r, req.Header, first)
	}
	if err == nil {
		err = addFields(ctx, u, r)
	}
	if err == nil && cookies != nil {
		for _, cookie := range cookies.Cookies(u) {
			r.AddCookie(cookie)
		}
	}
	if err == nil {
		err = x.send(r)
	}
	if err != nil {
		x.giveUp()
		return nil, err
	}
	return x, nil
}

// send makes the round trip.
func (x *exchange) send(r *http.Request) error {
	c := x.client
	c.log(x.caller, slog.LevelDebug, "request", x.url, slog.String("method", r.Method), slog.Bool("conditional", x.conditional))
	r, err := c.throughProxy(r)
	if err != nil {
		return err
	}
	limit := c.headers()
	x.guard.arm(x.started, "headers", limit, limit)
	resp, err := c.roundTripper().RoundTrip(r)
	x.guard.disarm()
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		if proxy := proxyOf(r.Context()); proxy != nil && ok && op.Op == "proxyconnect" && x.interrupted() == nil { // else it is a Transport's own
			return &Failure{Kind: Proxy, URL: x.url, Name: proxy.Host, Err: err}
		}
		return x.failure(err)
	}
	if resp.Body == nil { // a transport other than net/http's may do so
		resp.Body = http.NoBody
	}
	x.resp = resp
	c.log(x.caller, slog.LevelDebug, "answer", x.url, slog.Int("status", resp.StatusCode), slog.Duration("duration", time.Since(x.started)))
	if proxy := proxyOf(r.Context()); proxy != nil && resp.StatusCode == http.StatusProxyAuthRequired {
		return &Failure{Kind: Proxy, URL: x.url, Name: proxy.Host, Status: resp.StatusCode}
	}
	if headerSize(resp.Header) > maxHeader {
		return x.exceeds("headers", maxHeader)
	}
	return nil
}

// end releases everything held by an exchange whose answer has ended.
func (x *exchange) end() {
	x.guard.stop()
	x.guard.cancel(context.Canceled)
	if x.resp != nil {
		x.resp.Body.Close()
	}
	x.client.exit(x.host)
}

// giveUp ends an exchange before its answer has ended. Of HTTP/2, net/http keeps the
// connection, and would read what the server still sends until it is idle for too long.
func (x *exchange) giveUp() {
	if x.resp != nil && x.resp.ProtoMajor == 2 {
		x.guard.arm(time.Now(), "body", time.Second, time.Second)
		x.resp.Body.Close() // before the context ends, it waits for the stream's end
		x.client.CloseIdle()
	}
	x.end()
}

// discard ends an exchange whose body is not needed. It reads a short body, so the
// connection can be reused, but does not wait long for it.
func (x *exchange) discard() {
	const short, soon = 2 << 10, time.Second
	whole := x.resp.Body == http.NoBody
	if r := x.resp; !whole && r.ContentLength <= short && r.StatusCode >= 200 {
		x.guard.arm(time.Now(), "body", soon, soon)
		_, err := io.CopyN(io.Discard, r.Body, short+1)
		x.guard.disarm()
		whole = err == io.EOF
	}
	if whole {
		x.end()
	} else {
		x.giveUp()
	}
}

// interrupted returns who ended the exchange, if not the server: the caller, the guard,
// or a Close. The error of the transport is then only a consequence.
func (x *exchange) interrupted() error {
	if err := x.caller.Err(); err != nil {
		return wrap(x.url, err)
	}
	return context.Cause(x.ctx)
}

// exceeds returns the Failure of an answer beyond a limit.
func (x *exchange) exceeds(limit string, most int64) error {
	return &Failure{Kind: Limit, URL: x.url, Name: limit, Max: most}
}

// truncated returns the Failure of a body cut off before its end.
func (x *exchange) truncated(err error) error {
	return &Failure{Kind: Truncated, URL: x.url, Err: err}
}

// failure returns an error of the transport, as a Failure if it can be told.
func (x *exchange) failure(err error) error {
	if cut := x.interrupted(); cut != nil {
		return cut
	}
	if f, ok := errors.AsType[*Failure](err); ok { // of the dialer, or of the proxy
		own := *f
		own.URL = x.url
		return &own
	}
	switch {
	case prohibited(err):
		return refused(x.url, RuleAddress, err)
	case headersTooLong(err):
		return x.exceeds("headers", maxHeader)
	}
	return wrap(x.url, err)
}

func prohibited(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) ||
		errors.Is(err, ssrf.ErrProhibitedPort) || errors.Is(err, ssrf.ErrInvalidHostPort)
}

// headersTooLong recognises two errors of net/http by their text, because they have
// neither a type nor a name.
func headersTooLong(err error) bool {
	s := err.Error()
	return strings.Contains(s, "server response headers exceeded") ||
		strings.Contains(s, "response header list larger than advertised limit")
}

// headerSize estimates the bytes of the headers on the wire, for transports that do not
// limit them.
func headerSize(h http.Header) int64 {
	var n int64
	for name, values := range h {
		for _, v := range values {
			n += int64(len(name) + len(v) + len(": \r\n"))
		}
	}
	return n
}

// The limits that reading a document has, too.
const (
	DefaultBytes = 16 << 20 // the size of a document
	MaxURL       = 8 << 10  // the length of a URL, given, linked or redirected to
)

const (
	maxHeader = 64 << 10 // the size of all headers of an answer in bytes
	maxRatio  = 200      // the ratio of decoded bytes to those on the wire, beyond the free ones
	ratioFree = 1 << 20  // the decoded bytes that are free: the ratio of small documents says little
)

func (c *Client) maxBytes() int64 { return min(cmp.Or(c.Bytes, DefaultBytes), 1<<60) } // no sum overflows

// maxWire limits the encoded bytes of a body: without it, a stream decoding to nothing
// would continue until the timeout. An incompressible document is a little longer
// encoded than decoded, hence the allowance.
func (c *Client) maxWire() int64 { return c.maxBytes() + c.maxBytes()/16 + 4096 }

func (c *Client) connect() time.Duration { return cmp.Or(c.Connect, 5*time.Second) }
func (c *Client) tls() time.Duration     { return cmp.Or(c.TLS, 10*time.Second) }
func (c *Client) headers() time.Duration { return cmp.Or(c.Headers, 20*time.Second) }
func (c *Client) body() time.Duration    { return cmp.Or(c.Body, 60*time.Second) }
func (c *Client) idle() time.Duration    { return cmp.Or(c.Idle, 15*time.Second) }

func (c *Client) maxWait() time.Duration { return max(cmp.Or(c.MaxWait, 30*time.Second), 0) }

// Fields returns further header fields of a request to a URL. It may be called
// from several goroutines.
type Fields func(ctx context.Context, url string) (http.Header, error)

// WithFields returns a context whose requests have further header fields, which may be
// credentials, if they go to the origin of a URL. Each request, redirects and
// repetitions included, calls fields, so tokens can be renewed. Nil fields mean the
// context unchanged.
func WithFields(ctx context.Context, origin string, fields Fields) context.Context {
	u, err := url.Parse(origin)
	if fields == nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, fieldsKey{}, &originFields{u, fields})
}

type fieldsKey struct{}

type originFields struct {
	origin *url.URL
	fields Fields
}

// addFields adds the context's header fields for a request.
func addFields(ctx context.Context, u *url.URL, r *http.Request) error {
	of, ok := ctx.Value(fieldsKey{}).(*originFields)
	if !ok || !iri.SameOrigin(of.origin, u) {
		return nil
	}
	header, err := of.fields(ctx, u.String())
	if err != nil {
		return wrap(u.String(), err)
	}
	return addSecrets(u, r.Header, header)
}

// Shared makes several Clients polite together. Its zero value is ready to use; do not
// copy it.
type Shared struct {
	hosts hosts
	gzips sync.Pool // of *gunzip
	zstds sync.Pool // of *zstd.Decoder

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// A transportKey has a Client's settings for its transport.
type transportKey struct {
	own          *http.Transport // the caller's; nil for the built-in one
	allowPrivate bool
	roots        *x509.CertPool
	connect, tls time.Duration
	perHost      int
}

func (c *Client) shared() *Shared {
	if c.Shared != nil {
		return c.Shared
	}
	return &c.own
}

// roundTripper returns the transport for requests.
func (c *Client) roundTripper() http.RoundTripper {
	c.once.Do(func() {
		if c.wrapped = c.inner(); c.Wrap != nil {
			c.wrapped = c.Wrap(c.wrapped)
		}
	})
	return c.wrapped
}

// guarded returns the caller's transport, if requests go through a clone of it.
func (c *Client) guarded() *http.Transport {
	if own, ok := c.Transport.(*http.Transport); ok && !c.AllowPrivate {
		return own
	}
	return nil
}

// inner returns the caller's transport, or a clone of it, or the built-in one.
func (c *Client) inner() http.RoundTripper {
	own := c.guarded()
	if own == nil && c.Transport != nil {
		return c.Transport
	}
	key := transportKey{own, c.AllowPrivate, c.RootCAs, c.connect(), c.tls(), c.perHost()}
	s := c.shared()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transports[key]
	if t == nil {
		if s.transports == nil {
			s.transports = make(map[transportKey]*http.Transport)
		}
		if t = c.newTransport(); own != nil {
			t = c.guard(own)
		}
		s.transports[key] = t
	}
	return t
}
