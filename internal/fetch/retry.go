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

// Retry is how often and when to repeat a failed request. Only failures that may pass are
// repeated: a network error before the headers, a 5xx (but not 501), and a 429 with a
// time. A truncated body is not, because the caller already has a part of it.
type Retry struct {
	Tries int           // Tries is the maximum number of requests; zero means 3.
	Base  time.Duration // Base is the first wait, which doubles with each try, less up to a half at random; zero means 1 s.

	// MaxWait is the longest single wait. If a host's Retry-After asks for more, the
	// request fails with a StatusError with the time. Zero means 30 s; negative means no
	// wait.
	MaxWait time.Duration
}

func (r Retry) tries() int             { return or(r.Tries, 3) }
func (r Retry) maxWait() time.Duration { return max(cmp.Or(r.MaxWait, 30*time.Second), 0) }

// next returns how long to wait after the given try has failed, and whether to try again.
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

// backoff returns a wait, doubled with each try. It is up to a half shorter at random, so
// clients that failed together do not come back together.
func (r Retry) backoff(try int) time.Duration {
	wait := min(or(r.Base, time.Second), r.maxWait())
	for range min(try-1, 16) {
		wait = min(2*min(wait, r.maxWait()), r.maxWait())
	}
	if wait <= 1 {
		return max(wait, 0)
	}
	return wait - rand.N(wait/2)
}

// temporary reports whether the same request may succeed another time.
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
