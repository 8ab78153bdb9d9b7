package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// A visitJob is the job of visiting hosts due together, which a worker holds for
// whoever runs the job. fleet_hosts says everything else.
type visitJob struct {
	Token    int64    `json:"token"` // of the holds
	Hosts    []string `json:"hosts"`
	Doubtful []string `json:"doubtful,omitempty"` // hosts whose last holder did not release them, so a poll may have ended without a record
}

// Kind implements river.JobArgs.
func (visitJob) Kind() string { return "feedhistory_visit" }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed job is of no more use
// than its holds, which expire.
func (visitJob) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: queue, MaxAttempts: 3} }

// queue is the name of River's queue.
const queue = "feedhistory"

// hostsPerJob is the maximum number of hosts in a job.
const hostsPerJob = 50

// plan holds due hosts, the longest due first, makes jobs for them, and returns their
// number. If nothing comes of a job, its hosts are due again after the lease. Holds are
// durable, so no other worker gets a host after a crash of the database while its feeds
// are being polled.
func (w *Worker) plan(ctx context.Context, limit int) (hosts int, err error) {
	token := rand.Int64()
	err = w.Database.durably(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, holdHosts, token, w.lease(), limit)
		if err != nil {
			return err
		}
		var all []string
		var host string
		var doubt bool
		doubtful := map[string]bool{}
		_, err = pgx.ForEachRow(rows, []any{&host, &doubt}, func() error {
			all, doubtful[host] = append(all, host), doubt
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		var jobs []river.InsertManyParams
		for part := range slices.Chunk(all, hostsPerJob) {
			doubts := slices.DeleteFunc(slices.Clone(part), func(host string) bool { return !doubtful[host] })
			jobs = append(jobs, river.InsertManyParams{Args: visitJob{Token: token, Hosts: part, Doubtful: doubts}})
		}
		hosts = len(all)
		_, err = w.river.InsertManyFastTx(ctx, tx, jobs)
		return err
	})
	return hosts, err
}

const holdHosts = `
	WITH free AS (
		SELECT host, holder IS NOT NULL AS doubtful FROM fleet_hosts
		WHERE due <= now() AND (until IS NULL OR until <= now()) AND (wait IS NULL OR wait <= now())
		ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
	)
	UPDATE fleet_hosts h SET holder = $1, until = now() + $2::interval, due = now() + $2::interval
	FROM free WHERE h.host = free.host
	RETURNING h.host, free.doubtful`

// A hold is a host only this worker polls, for some time.
type hold struct {
	host  string
	token int64
}

// sweep repairs inconsistencies. There should be none, but without it a
// forgotten host would be forgotten for ever. Run it when little is due.
func (d *Database) sweep(ctx context.Context, lease time.Duration) error {
	var b pgx.Batch
	b.Queue(`
		WITH first AS (SELECT host, min(due) AS due FROM fleet_feeds WHERE due IS NOT NULL GROUP BY host)
		INSERT INTO fleet_hosts AS h (host, due) SELECT host, due FROM first ORDER BY host
		ON CONFLICT (host) DO UPDATE SET due = greatest(excluded.due, h.wait)
		WHERE h.due IS NULL OR h.due > greatest(excluded.due, h.wait, now()) + $1`, lease)
	b.Queue(`
		DELETE FROM fleet_hosts h WHERE due IS NULL AND (wait IS NULL OR wait <= now())
			AND NOT EXISTS (SELECT FROM fleet_feeds f WHERE f.host = h.host)`)
	return d.brief(ctx, &b)
}

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
	if wait := time.Until(feedhistory.NewFetchError(resp).RetryAt); wait > 0 {
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

// A clock is the database's clock: all stored times are of it, whatever this machine's own
// clock says. Its zero value must be measured first.
type clock struct {
	local func() time.Time // this machine's clock; nil means time.Now
	most  time.Duration    // the maximum difference; zero means maxSkew

	mu    sync.Mutex
	at    time.Time     // when it was measured, by the machine's clock
	ahead time.Duration // how far the machine's clock was ahead then
}

// maxSkew is the maximum difference of a worker's clock from the database's: certificates
// and dates in HTTP are of nobody's use with a clock further off.
const maxSkew = 30 * time.Second

// noSkew is a difference not worth a message.
const noSkew = time.Second

// queue adds the measurement to a batch.
func (c *clock) queue(b *pgx.Batch) {
	before := c.read()
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error {
		var there time.Time
		if err := row.Scan(&there); err != nil {
			return err
		}
		c.note(before.Truncate(time.Microsecond), c.read(), there)
		return nil
	})
}

// note records a measurement. A time between the two of the machine's clock shows no
// difference: it is as long as the answer has taken.
func (c *clock) note(before, after, there time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.ahead = after, max(0, before.Sub(there))-max(0, there.Sub(after))
}

func (c *clock) read() time.Time {
	if c.local == nil {
		return time.Now()
	}
	return c.local()
}

// now returns the time by the database's clock. If the machine's clock is set meanwhile,
// that makes no difference.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Round(0).Add(c.read().Sub(c.at) - c.ahead)
}

// skew returns how far the machine's clock is ahead; with an error, if that is too much.
func (c *clock) skew() (ahead time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead.Abs() > cmp.Or(c.most, maxSkew) {
		where := "ahead of"
		if c.ahead < 0 {
			where = "behind"
		}
		err = fmt.Errorf("fleet: this machine's clock is %v %s the database's: set it right, for example by NTP", c.ahead.Abs().Round(time.Millisecond), where)
	}
	return c.ahead, err
}
