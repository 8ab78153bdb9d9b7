package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/time/rate"
)

// The number of hosts remembered before idle ones are dropped, and the maximum number
// of idle hosts still asking clients to wait, which matters only if thousands do so at
// once.
const (
	fewHosts  = 256
	manyHosts = 1 << 14
)

// hosts is a client's memory of hosts.
type hosts struct {
	mu      sync.Mutex
	byName  map[string]*host
	sweepAt int // the size of byName at which to sweep
}

// host is one of these. Its fields after slots and pace are guarded by hosts.mu.
type host struct {
	slots chan struct{}                // one for each request in flight
	pace  atomic.Pointer[rate.Limiter] // nil means no pause

	users  int       // the number of goroutines holding or awaiting a slot
	until  time.Time // the time until which the host asks clients to wait
	status int       // the status of the answer asking for it
}

// HostOf returns the name of a URL's host, as politeness counts hosts. If the URL is not
// valid, it returns the URL.
func HostOf(address string) string {
	u, err := iri.ParseLeniently(address)
	if err != nil || u.Host == "" {
		return address
	}
	return hostName(u)
}

// hostName returns the key of a host. http and https share one on their default ports;
// other ports are other servers.
func hostName(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		name += ":" + port
	}
	return name
}

// use finds or creates a host, and counts one more user until leave. If clients ask for
// different paces, the slowest applies; the number of slots is that of the host's first
// client.
func (hs *hosts) use(name string, slots int, pace time.Duration) *host {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byName[name]
	if h == nil {
		h = &host{slots: make(chan struct{}, slots)}
		hs.add(name, h)
	}
	switch every, now := rate.Every(pace), h.pace.Load(); {
	case pace > 0 && now == nil:
		h.pace.Store(rate.NewLimiter(every, 1))
	case pace > 0 && every < now.Limit():
		now.SetLimit(every)
	}
	h.users++
	return h
}

func (hs *hosts) leave(h *host) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users--
}

// leaveAlone records a host's request for a wait until then.
func (hs *hosts) leaveAlone(h *host, until time.Time, status int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if until.After(h.until) {
		h.until, h.status = until, status
	}
}

// asked returns until when a host wants no request, and the status of its answer.
func (hs *hosts) asked(h *host) (time.Time, int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.until, h.status
}

// add makes room before it adds a host. Sweeping when the number has doubled keeps the
// cost of an addition constant.
func (hs *hosts) add(name string, h *host) {
	if len(hs.byName) >= max(hs.sweepAt, fewHosts) {
		hs.sweep(time.Now())
		hs.sweepAt = 2 * len(hs.byName)
	}
	if hs.byName == nil {
		hs.byName = make(map[string]*host)
	}
	hs.byName[name] = h
}

// sweep drops hosts with nothing to remember and, if too many are left, any not in use.
func (hs *hosts) sweep(now time.Time) {
	for name, h := range hs.byName {
		if h.idle(now) {
			delete(hs.byName, name)
		}
	}
	for name, h := range hs.byName {
		if len(hs.byName) <= manyHosts/2 {
			break
		}
		if h.users == 0 {
			delete(hs.byName, name)
		}
	}
}

func (h *host) idle(now time.Time) bool {
	pace := h.pace.Load()
	return h.users == 0 && !h.until.After(now) && (pace == nil || pace.TokensAt(now) >= 1)
}

// enter waits for a request's turn at its host. Its result must be passed to exit.
func (c *Client) enter(ctx context.Context, u *url.URL) (*host, error) {
	h := c.shared().hosts.use(hostName(u), c.perHost(), c.Pace)
	if err := c.barred(h, u, c.maxWait()); err != nil {
		c.shared().hosts.leave(h)
		return nil, err
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		c.shared().hosts.leave(h)
		return nil, wrap(u.String(), ctx.Err())
	}
	if err := c.await(ctx, h, u); err != nil {
		c.exit(h)
		return nil, err
	}
	return h, nil
}

func (c *Client) exit(h *host) {
	<-h.slots
	c.shared().hosts.leave(h)
}

// IsPatient reports whether a host has neither asked clients to wait nor a pace.
func (c *Client) IsPatient(address string) bool {
	hs := &c.shared().hosts
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byName[HostOf(address)]
	return h == nil || h.status == 0 && h.pace.Load() == nil
}

// Wait returns until when a host asks clients to wait; the zero time if it does not.
func (c *Client) Wait(address string) time.Time {
	hs := &c.shared().hosts
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.byName[HostOf(address)]; h != nil && h.until.After(time.Now()) {
		return h.until
	}
	return time.Time{}
}

// barred returns an error if the host asks for a longer wait than allowed.
func (c *Client) barred(h *host, u *url.URL, longest time.Duration) error {
	until, status := c.shared().hosts.asked(h)
	wait := time.Until(until)
	if wait <= longest {
		return nil
	}
	return &Failure{Kind: Status, URL: u.String(), Status: status, Remembered: true, At: until, RetryAfter: wait}
}

// await waits until the host may be asked: after the time it asked for, and at our own
// pace. Meanwhile another answer may ask for a longer wait, so await checks again; its
// total wait for the host is limited.
func (c *Client) await(ctx context.Context, h *host, u *url.URL) error {
	left := c.maxWait()
	for paced := h.pace.Load() == nil; ; paced = true {
		until, _ := c.shared().hosts.asked(h)
		alone := time.Until(until)
		if alone <= 0 && paced {
			return nil
		}
		if err := c.barred(h, u, left); err != nil {
			return err
		}
		left -= max(alone, 0)
		if alone > 0 && c.logs(ctx, slog.LevelInfo) { // the host asked for it
			c.Logger.LogAttrs(ctx, slog.LevelInfo, "wait", slog.String("host", u.Host), slog.Duration("wait", alone))
		}
		if sleep(ctx, alone) != nil || c.step(ctx, h) != nil {
			return wrap(u.String(), ctx.Err())
		}
	}
}

// step waits until the pace allows one more start.
func (c *Client) step(ctx context.Context, h *host) error {
	pace := h.pace.Load()
	if pace == nil {
		return ctx.Err()
	}
	r := pace.Reserve()
	err := sleep(ctx, r.Delay())
	if err != nil {
		r.Cancel()
	}
	return err
}

// next returns how long to wait after the given try has failed, and whether to try again.
func (c *Client) next(try int, err error) (time.Duration, bool) {
	f, ok := err.(*Failure)
	if try >= c.tries() || !ok || !f.temporary() || f.RetryAfter > c.maxWait() {
		return 0, false
	}
	return max(c.backoff(try), f.RetryAfter), true
}

func (c *Client) tries() int { return cmp.Or(c.Tries, 3) }

// errRefused ends a request net/http would send again.
var errRefused = errors.New("the server refused the request before it answered (HTTP/2)")

// withoutRepeats returns a context that makes net/http send a request once. By itself, that repeats a request as long as
// an HTTP/2 server ends each connection (GOAWAY) or resets each stream (REFUSED_STREAM). A
// connection kept from before may have been closed meanwhile: a request there that is not
// answered is no try.
func (x *exchange) withoutRepeats(ctx context.Context) context.Context {
	try := &struct {
		sync.Mutex // a Transport of the caller's may send copies side by side
		conn       net.Conn
		isNew      bool
	}{}
	refuse := func() { x.guard.cancel(&Failure{Kind: Network, URL: x.url, Err: errRefused}) }
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			try.Lock()
			defer try.Unlock()
			if try.isNew {
				refuse()
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			try.Lock()
			defer try.Unlock()
			if info.Conn == try.conn {
				refuse() // before the request is written
			}
			try.conn, try.isNew = info.Conn, !info.Reused
		},
	})
}

// backoff returns a wait, doubled with each try. It is up to a half shorter at random, so
// clients that failed together do not come back together.
func (c *Client) backoff(try int) time.Duration {
	wait := min(cmp.Or(c.Base, time.Second), c.maxWait())
	for range min(try-1, 16) {
		wait = min(2*min(wait, c.maxWait()), c.maxWait())
	}
	if wait <= 1 {
		return max(wait, 0)
	}
	return wait - rand.N(wait/2)
}

// mayPass reports whether an error of the network may pass.
func mayPass(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return true
}

// maxRetryAfter is the longest wait a host may ask for: a mistake in one header must
// not lose a feed for a year.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads how long the host asks clients to wait (RFC 9110 §10.2.3).
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if wait, ok := deltaSeconds(v); ok {
		return min(wait, maxRetryAfter), true
	}
	at, ok := parseDate(v)
	if !ok {
		return 0, false
	}
	// By the clock of the host, if it sends the time: it may differ from ours.
	if date, ok := parseDate(h.Get("Date")); ok {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

// deltaSeconds reads a number of seconds. One too large to represent counts as very
// long (RFC 9111 §1.2.2).
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		n = 1<<31 - 1
	}
	return time.Duration(n) * time.Second, true
}

// parseDate reads an HTTP date. It also accepts days of one digit, which many servers
// write and http.ParseTime refuses, and UTC instead of GMT.
func parseDate(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, false
	}
	if t, err := http.ParseTime(s); err == nil {
		return t, true
	}
	for _, layout := range [...]string{
		"Mon, 2 Jan 2006 15:04:05 GMT",
		"Mon, 2 Jan 2006 15:04:05 UTC",
		"Mon, 2 Jan 2006 15:04:05 -0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
