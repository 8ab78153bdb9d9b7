// Package fetch is the polite and safe HTTP client with which everything reads
// feeds. A URL may come from a hostile document, and its server may be hostile:
// whatever they do, a fetch ends in bounded time and memory, and connects only to
// public addresses.
//
// It is also polite: it makes few requests to a host at a time, spaced, conditional
// if a validator is known, and none while the host asks clients to wait.
//
// An error is a [Failure], or what Client.Public makes of it; any other, such as an
// unresolved name or a cancelled context, is a [url.Error].
package fetch

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// fallbackAgent is the User-Agent if none is given.
const fallbackAgent = "feedhistory"

// A Client fetches documents. Its zero value is ready to use. Many goroutines may
// share one; Clients with different settings are polite together if they have the
// same Shared. Do not change its fields after the first use.
type Client struct {
	// Transport makes the requests; nil means the built-in one. Another one is
	// responsible for the addresses it dials, for proxies and for TLS: AllowPrivate,
	// Connect and TLS apply only to the built-in one.
	Transport http.RoundTripper

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
	Ratio int   // Ratio is the maximum ratio of decoded bytes to those on the wire, beyond 1 MiB; zero means 200.
	URL   int   // URL is the maximum length of a URL, given or redirected to; zero means DefaultURL.

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
	roots    *x509.CertPool
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

	// Partial accepts the status 206. Otherwise it is a Failure, because nothing asked for
	// a part.
	Partial bool
}

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

	Freshness Freshness // how long the answer stays fresh
}

// Do fetches a document, and returns when it has the headers of the final answer. It
// waits for its turn at the host, follows redirects, and tries again. The
// context also governs the body.
func (c *Client) Do(ctx context.Context, req Request) (*Response, error) {
	resp, err := c.try(ctx, &req)
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
	for try := 1; ; try++ {
		resp, err := c.follow(ctx, u, req)
		wait, again := c.next(try, err)
		if !again {
			return resp, err
		}
		c.logRetry(ctx, req.URL, try, wait, err)
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

// wrap adds the URL to an error of any type but this package's.
func wrap(rawURL string, err error) error {
	return &url.Error{Op: "fetch", URL: iri.Redact(rawURL), Err: err}
}
