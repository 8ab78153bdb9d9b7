// Package fetch is the polite and safe HTTP client under everything that
// reads a feed. A URL that it is given may come from a hostile document, and
// the server behind it may be hostile too: whatever they do, a fetch ends in
// bounded time and memory, and talks to public addresses only.
//
// It keeps the rules of good neighbours as well: few requests to a host at a
// time, spaced, conditional wherever a validator is known, and none while the
// host asks to be left alone.
//
// Every failure has a type: [RefusedError], [StatusError], [LimitError],
// [TimeoutError], [TruncatedError], [EncodingError]; what is left, such as a
// name that does not resolve or a cancelled context, is a [url.Error].
package fetch

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// fallbackAgent names the client where no UserAgent is given.
const fallbackAgent = "feedhistory"

// A Client fetches documents. Its zero value is ready to use. Many goroutines
// may share one; Clients with different settings share politeness by Shared.
// Its fields must not change after the first use.
type Client struct {
	// HTTP, when set, supplies the Transport that requests go through, and
	// its Timeout caps the wait for an answer and the reading of its body.
	// Its Jar and CheckRedirect are not used. Which addresses may be dialled,
	// proxies and TLS are then the duty of that Transport: the rules on
	// addresses, AllowPrivate, Timeouts.Connect and Timeouts.TLS are those of
	// the built-in one. Nil, or a nil Transport: the built-in one.
	HTTP *http.Client

	// UserAgent is sent with every request. Empty: "feedhistory".
	UserAgent string

	// AllowPrivate lets requests reach loopback, private and special-purpose
	// addresses. False: they are refused, whatever name led to them.
	AllowPrivate bool

	// Pace is the least time between the starts of two requests to one host.
	// Zero: no pause.
	Pace time.Duration

	// PerHost is how many requests to one host may be in flight. A request is
	// in flight until its body is closed or read to its end. Zero: 4.
	PerHost int

	Limits   Limits   // what an answer may cost
	Timeouts Timeouts // how long each step may take
	Retry    Retry    // when to try again

	// Credentials are sent each to the one origin it is bound to. Nil: none.
	Credentials []Credential

	// Logger receives an event for each request, answer and decision.
	// Nil: silence.
	Logger *slog.Logger

	// Shared is what several Clients have in common: what is known of hosts,
	// and connections. Nil: this Client's own.
	Shared *Shared

	own Shared

	// Hooks of the tests; nil is what everyone else has.
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	resolver *net.Resolver
	roots    *x509.CertPool
	control  func(network, address string, c syscall.RawConn) error
}

// A Request says what to fetch. Only its URL is needed.
type Request struct {
	// URL is absolute, http or https, without userinfo. A fragment is not sent.
	URL string

	// Method is GET or HEAD. Empty: GET.
	Method string

	// Accept is sent as it is. Empty: "*/*".
	Accept string

	// ETag and LastModified are the validators of an earlier Response,
	// verbatim; they make the request conditional. Empty: not sent.
	ETag, LastModified string

	// Validated is the URL of the Response that the validators came from.
	// They are sent to its origin only, on whichever hop that is: a stranger
	// that compares them with its own may say that nothing has changed while
	// everything has. Empty: URL.
	Validated string

	// Header has further fields, of a protocol that says in them what it asks
	// for. They go to the origin of URL only, as validators do; those that this
	// package or the connection has a say in are refused. Nil: none.
	Header http.Header

	// Partial takes a 206 for an answer. False: it is a StatusError, for nobody
	// asked for a part.
	Partial bool
}

// A Response is an answer of success (2xx), or the news that nothing has
// changed (304). Its Body must be closed.
type Response struct {
	URL       string // where the answer came from, after redirects, without a fragment
	Requested string // the URL of the request, as it was given

	// Permanent is the URL to ask for from now on: where the permanent
	// redirects (301, 308) lead that the chain begins with. Empty: none did.
	Permanent string

	Status int         // 200, another 2xx, or 304
	Header http.Header // of the final answer

	// ETag and LastModified are to be sent back verbatim in the next Request.
	// A 304 that does not repeat them leaves those of the request in force.
	ETag, LastModified string

	// Body yields decoded bytes. It enforces the limits and timeouts, and
	// ends in io.EOF only when the body is whole as far as HTTP can tell: one
	// with neither Content-Length nor chunks nor compression may have been
	// cut. Read it to its end, or the connection cannot be kept. Never nil;
	// empty for a 304 and for HEAD. Cancelling the context breaks it off, but
	// only Close or its end gives its place at the host to another request.
	Body io.ReadCloser

	Freshness Freshness // how long the answer stays fresh
}

// Do fetches a document and returns when the headers of the final answer are
// in. It waits for its turn at the host, follows redirects and tries again
// where Retry says so. The context governs the body as well.
func (c *Client) Do(ctx context.Context, req Request) (*Response, error) {
	resp, err := c.try(ctx, &req)
	if err != nil {
		c.logFailure(ctx, req.URL, err)
		return nil, err
	}
	return resp, nil
}

// try makes tries until one succeeds or the next would make no sense.
func (c *Client) try(ctx context.Context, req *Request) (*Response, error) {
	u, err := c.check(req)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		resp, err := c.follow(ctx, u, req)
		wait, again := c.Retry.next(try, err)
		if !again {
			return resp, err
		}
		c.logRetry(ctx, req.URL, try, wait, err)
		if sleep(ctx, wait) != nil {
			return nil, wrap(req.URL, ctx.Err())
		}
	}
}

// CloseIdle closes connections that are kept but not in use.
func (c *Client) CloseIdle() {
	if t, ok := c.roundTripper().(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// sleep waits for d, or for the context to end.
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

// wrap adds the URL to an error that has no type of ours.
func wrap(rawURL string, err error) error {
	return &url.Error{Op: "fetch", URL: Redact(rawURL), Err: err}
}
