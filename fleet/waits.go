package fleet

import (
	"context"
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory"
)

// hostWaits are the times until which hosts ask to be left alone (Retry-After), as far as
// this worker knows.
type hostWaits struct {
	database *Database
	trouble  func(ctx context.Context, what string, err error)

	mu    sync.Mutex
	until map[string]time.Time
}

// left returns how long a host still waits; zero or less if it does not.
func (h *hostWaits) left(host string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until[host])
}

// keep stores a host's wait. It returns when the wait is stored, or the request has ended;
// then releasing the host stores it.
func (h *hostWaits) keep(ctx context.Context, host string, wait time.Duration) {
	until := time.Now().Add(wait)
	h.remember(host, until)
	for pause := planOften; ; pause = min(2*pause, time.Second) {
		err := h.database.leaveAlone(ctx, host, time.Until(until))
		if err == nil {
			return
		}
		h.trouble(ctx, host+" asks to be left alone, and that cannot be stored", err)
		if !sleep(ctx, pause) {
			return
		}
	}
}

// remember keeps a wait in memory, and forgets those that are over.
func (h *hostWaits) remember(host string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(h.until, func(_ string, until time.Time) bool { return until.Before(now) })
	if h.until == nil {
		h.until = map[string]time.Time{}
	}
	if until.After(h.until[host]) {
		h.until[host] = until
	}
}

// A hostKey is the key of the host a context's requests are made for.
type hostKey struct{}

// foreign is left for any host: if this worker does not hold it, the database knows more.
func (h *hostWaits) foreign(ctx context.Context, host string) time.Duration {
	left := h.left(host)
	if own, _ := ctx.Value(hostKey{}).(string); host == own {
		return left
	}
	stored, err := h.database.wait(ctx, host)
	if err != nil && ctx.Err() == nil {
		h.trouble(ctx, "the wait of "+host+" cannot be read", err)
	}
	return max(left, stored)
}

// A waitKeeper is a transport that stores the wait a host asks for before its answer is
// used. So a worker killed a moment later leaves it to the others. While a host waits, the
// waitKeeper answers in its place.
type waitKeeper struct {
	waits *hostWaits
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (k *waitKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	host := feedhistory.HostOf(r.URL.String())
	if left := k.waits.foreign(r.Context(), host); left > 0 {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
			Header: http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(left.Seconds())))}},
		}, nil
	}
	resp, err := k.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return resp, err
	}
	if wait := feedhistory.NewStatusError(resp).RetryAfter; wait > 0 {
		k.waits.keep(r.Context(), host, wait)
	}
	return resp, nil
}

// keepWaits returns a client like the given one that stores the waits of hosts. It is
// polite together with the given one.
func keepWaits(client *feedhistory.Client, waits *hostWaits) *feedhistory.Client {
	own := client.Clone()
	own.Wrap = func(next http.RoundTripper) http.RoundTripper {
		next = &waitKeeper{waits, next}
		if client.Wrap != nil {
			next = client.Wrap(next)
		}
		return next
	}
	return own
}

// leaveAlone stores, durably, how long nobody may request anything from a host. The host
// need not be one of the fleet's: feeds redirect there, or have their archives there.
func (d *Database) leaveAlone(ctx context.Context, host string, wait time.Duration) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return d.durably(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO fleet_hosts AS h (host, wait) VALUES ($1, now() + $2::interval)
			ON CONFLICT (host) DO UPDATE SET wait = greatest(h.wait, excluded.wait),
				due = CASE WHEN h.due < excluded.wait THEN excluded.wait ELSE h.due END`, host, wait)
		return err
	})
}

// wait returns how long a host still waits, according to the database.
func (d *Database) wait(ctx context.Context, host string) (left time.Duration, err error) {
	err = d.pool.QueryRow(ctx, `
		SELECT greatest('0', (SELECT wait FROM fleet_hosts WHERE host = $1) - now())`, host).Scan(&left)
	return left, err
}
