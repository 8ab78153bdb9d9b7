package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Retry says how often and when a failed request is tried again. What can
// succeed another time is tried again: a network error before the headers, a
// 5xx (but not 501), and a 429 that says when. A body that breaks off is not:
// part of it has been handed out.
type Retry struct {
	Tries int           // requests in all. Zero: 3
	Base  time.Duration // the first wait; each one doubles it, less up to a half by chance. Zero: 1 s

	// MaxWait is the longest single wait, also for a host that asks for one by
	// Retry-After. A longer one is not slept through: the request fails with a
	// StatusError that carries the time. Zero: 30 s; negative: none.
	MaxWait time.Duration
}

func (r Retry) tries() int             { return cmp.Or(r.Tries, 3) }
func (r Retry) maxWait() time.Duration { return max(cmp.Or(r.MaxWait, 30*time.Second), 0) }

// next tells how long to wait after the given try failed, and whether to try
// again at all.
func (r Retry) next(try int, err error) (time.Duration, bool) {
	if try >= r.tries() || !temporary(err) {
		return 0, false
	}
	wait := r.backoff(try)
	if status, ok := errors.AsType[*StatusError](err); ok {
		if status.RetryAfter > r.maxWait() {
			return 0, false
		}
		wait = max(wait, status.RetryAfter)
	}
	return wait, true
}

// backoff doubles with each try. By chance it is up to a half shorter, so
// that many clients that failed together do not come back together.
func (r Retry) backoff(try int) time.Duration {
	wait := min(cmp.Or(r.Base, time.Second)<<min(try-1, 16), r.maxWait())
	if wait <= 1 {
		return max(wait, 0)
	}
	return wait - rand.N(wait/2)
}

// temporary tells whether the same request may succeed another time.
func temporary(err error) bool {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return !e.Remembered && e.temporary()
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
	if _, ok := errors.AsType[*TimeoutError](err); ok {
		return true
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

func (e *StatusError) temporary() bool {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return !e.At.IsZero()
	case e.Status == http.StatusNotImplemented:
		return false
	default:
		return e.Status >= 500
	}
}
