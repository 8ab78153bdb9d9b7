package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"time"
)

// next returns how long to wait after the given try has failed, and whether to try again.
func (c *Client) next(try int, err error) (time.Duration, bool) {
	if try >= cmp.Or(c.Tries, 3) || !temporary(err) {
		return 0, false
	}
	wait := c.backoff(try)
	if f, ok := errors.AsType[*Failure](err); ok {
		if f.RetryAfter > c.maxWait() {
			return 0, false
		}
		wait = max(wait, f.RetryAfter)
	}
	return wait, true
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

// temporary reports whether the same request may succeed another time: after a network
// error before the headers, a 5xx (but not 501), and a 429 with a time. Of a truncated
// body the caller already has a part.
func temporary(err error) bool {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.temporary()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
