package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Random makes the worker claim and record feeds in batches of random sizes.
func (w *Worker) Random() {
	w.most = func() (int, time.Duration) {
		return 1 + rand.IntN(6), time.Duration(rand.Int64N(int64(time.Second)))
	}
}

// Running reports whether Run is past what may fail.
func (w *Worker) Running() bool { return w.running.Load() }

// Batch makes the worker claim that many feeds of a host together, and write
// what is to be recorded of them after a time.
func (w *Worker) Batch(feeds int, late time.Duration) {
	w.most = func() (int, time.Duration) { return feeds, late }
}

// Exec runs a statement for a test.
func (d *Database) Exec(ctx context.Context, statement string) error {
	_, err := d.pool.Exec(ctx, statement)
	return err
}

// Sweep runs the sweep of a worker with the given lease.
func (d *Database) Sweep(ctx context.Context, lease time.Duration) error { return d.sweep(ctx, lease) }

// Backend returns the process of PostgreSQL that serves a connection.
func (d *Database) Backend(ctx context.Context) (pid int, err error) {
	return pid, d.pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
}

// Where returns the directories of PostgreSQL's programs and of its data.
func (d *Database) Where(ctx context.Context) (programs, data string, err error) {
	err = d.pool.QueryRow(ctx, `SELECT setting, current_setting('data_directory') FROM pg_config WHERE name = 'BINDIR'`).Scan(&programs, &data)
	return programs, data, err
}

// Size returns the sizes of a table and of its indexes in bytes.
func (d *Database) Size(ctx context.Context, table string) (heap, indexes int64, err error) {
	return heap, indexes, d.pool.QueryRow(ctx, `SELECT pg_table_size($1::regclass), pg_indexes_size($1::regclass)`, table).Scan(&heap, &indexes)
}

// Costs are PostgreSQL's statistics of its work.
type Costs struct {
	Statements, Milliseconds, Commits, WAL, Pages, Syncs float64
	Longest                                              []string
}

// Costs returns the statistics since they were last reset.
func (d *Database) Costs(ctx context.Context) (*Costs, error) {
	c := &Costs{}
	err := d.pool.QueryRow(ctx, `SELECT sum(calls), sum(total_exec_time), sum(calls) FILTER (WHERE query ILIKE 'commit'),
		max(w.wal_bytes), max(w.wal_fpi), max(w.wal_sync) FROM pg_stat_statements, pg_stat_wal w`).Scan(
		&c.Statements, &c.Milliseconds, &c.Commits, &c.WAL, &c.Pages, &c.Syncs)
	if err != nil {
		return nil, err
	}
	rows, err := d.pool.Query(ctx, `SELECT format('%s calls, %s ms, %s bytes of WAL: %s', calls, round(total_exec_time), wal_bytes,
		left(regexp_replace(query, '\s+', ' ', 'g'), 100)) FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 14`)
	if err == nil {
		c.Longest, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	return c, err
}

// Plans returns PostgreSQL's plans of what a group of n hosts needs, with n
// feeds each, by name.
func (d *Database) Plans(ctx context.Context, n int, host func(i int) string, url func(i, j int) string) (plans map[string]string, err error) {
	var hosts, urls []string
	var tokens, most []int64
	var pauses []time.Duration
	var due []time.Time
	var states []*mirror.Feed
	verdicts := slices.Repeat([]string{feedhistory.VerdictWhole.String()}, n*n)
	for i := range n {
		hosts, tokens, most, pauses = append(hosts, host(i)), append(tokens, 7), append(most, int64(n)), append(pauses, time.Second)
		for j := range n {
			urls, due = append(urls, url(i, j)), append(due, time.Now())
			states = append(states, &mirror.Feed{URL: url(i, j), Commits: 1})
		}
	}
	update, args := sqlstore.UpdatePolls(states)
	plans = map[string]string{}
	for _, q := range []struct {
		name, query string
		args        []any
	}{
		{"hold", holdHosts, []any{int64(7), time.Minute, n}},
		{"claim", dueFeeds, []any{hosts, tokens, most}},
		{"lock", lockHosts, []any{hosts, tokens}},
		{"store", update, args},
		{"note", noteFeeds, []any{urls, due, verdicts}},
		{"release", releaseHosts, []any{hosts, pauses, pauses}},
	} {
		rows, err := d.pool.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+q.query, q.args...)
		if err != nil {
			return nil, err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		plans[q.name] = strings.Join(lines, "\n")
	}
	return plans, nil
}

// The intervals at which a worker looks for due hosts.
const (
	PlanOften  = planOften
	PlanSeldom = planSeldom
)

// MostAtPause is the number of feeds of a host that a worker claims together, with a
// pause of a second.
const MostAtPause = int(mostLate / time.Second)

// Skew makes this machine's clock differ for the workers of this Database, and lifts the
// bound if it is not zero.
func (d *Database) Skew(ahead *atomic.Int64, most time.Duration) {
	d.clock.local = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	d.clock.most = most
}
