package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"code.dny.dev/ssrf"
)

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
	resp        *http.Response
}

// exchange waits for its turn, sends a request and reads the headers of the answer. The
// result must be ended. The hop sends the validators if it is conditional, and the
// request's own header fields if it is at the origin of the first hop.
func (c *Client) exchange(ctx context.Context, u *url.URL, location string, req *Request, conditional, first bool) (*exchange, error) {
	h, err := c.enter(ctx, u)
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, caller: ctx, host: h, url: location, conditional: conditional, started: time.Now()}
	x.ctx, x.guard.cancel = context.WithCancelCause(ctx)
	x.guard.step = Failure{Kind: Timeout, URL: location}
	r, err := c.newRequest(x.ctx, u, req, conditional)
	if err == nil && first {
		err = addHeader(r, req.Header)
	}
	if err == nil {
		err = addFields(ctx, u, r)
	}
	if err == nil {
		err = x.send(r)
	}
	if err != nil {
		x.end()
		return nil, err
	}
	return x, nil
}

// send makes the round trip.
func (x *exchange) send(r *http.Request) error {
	c := x.client
	c.logRequest(x, r.Method)
	limit := c.headers()
	x.guard.arm(x.started, "headers", limit, limit)
	resp, err := c.roundTripper().RoundTrip(r)
	x.guard.disarm()
	if err != nil {
		return x.failure(err)
	}
	if resp.Body == nil { // a transport other than net/http's may do so
		resp.Body = http.NoBody
	}
	x.resp = resp
	c.logAnswer(x)
	if headerSize(resp.Header) > maxHeader {
		return x.exceeds("headers", maxHeader)
	}
	return nil
}

// end releases everything the exchange holds.
func (x *exchange) end() {
	x.guard.stop()
	x.guard.cancel(context.Canceled)
	if x.resp != nil {
		x.resp.Body.Close()
	}
	x.client.exit(x.host)
}

// discard ends an exchange whose body is not needed. It reads a short body, so the
// connection can be reused, but does not wait long for it.
func (x *exchange) discard() {
	const short, soon = 2 << 10, time.Second
	if r := x.resp; r.Body != http.NoBody && r.ContentLength <= short && r.StatusCode >= 200 {
		x.guard.arm(time.Now(), "body", soon, soon)
		io.CopyN(io.Discard, x.resp.Body, short+1)
		x.guard.disarm()
	}
	x.end()
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
	if f, ok := errors.AsType[*Failure](err); ok { // a timeout of the dialer
		timeout := *f
		timeout.URL = x.url
		return &timeout
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
