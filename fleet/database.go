package fleet

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A Database is a PostgreSQL database shared by workers: the mirrored feeds, when they
// are due, and the jobs. Several goroutines may use it at the same time.
type Database struct {
	// Store has the mirrored feeds: an *sqlstore.Store. Open sets it.
	Store mirror.Store

	states *sqlstore.Store // the Store of Open
	store  *sql.DB         // the database of Store
	clock  clock
	pool   *pgxpool.Pool // connections whose last commits a crash of the database may lose; see durably
	shares bool          // whether a pooler stands before the database
}

//go:embed schema.sql
var schema string

// Open connects to a database, which is given in the form of libpq: as a URL,
// "postgres://user@host/name", or as "host=… dbname=…". It makes the missing
// tables; if none is, it only reads.
//
// There are two pools of connections, one for the store and one for the jobs.
// Each has up to two connections per core, at least 4 and at most 16; or as
// many as pool_max_conns says.
//
// A pooler may stand before the database, such as PgBouncer in its session or transaction
// mode: Open notices it. Each commit is then durable, and the Worker looks for new jobs
// instead of being told of them. The statement mode has no transactions, which is an error.
func Open(ctx context.Context, dsn string) (*Database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = int32(min(max(4, 2*runtime.GOMAXPROCS(0)), 16))
	}
	d := &Database{}
	if d.shares, err = isPooled(ctx, config.ConnConfig.Copy()); err != nil {
		return nil, err
	}
	if mode := &config.ConnConfig.DefaultQueryExecMode; d.shares && *mode == pgx.QueryExecModeCacheStatement {
		*mode = pgx.QueryExecModeCacheDescribe // the next transaction may have another connection
	}
	d.store = stdlib.OpenDB(*config.ConnConfig.Copy())
	d.store.SetMaxOpenConns(int(config.MaxConns))
	d.store.SetMaxIdleConns(int(config.MaxConns))
	if !d.shares { // a pooler refuses them, or gives them to others
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		// A plan made while a table had few rows would read the whole table when it
		// has many.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err == nil {
		err = d.prepare(ctx)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// isPooled reports whether a pooler stands before the database: it does not know the process
// of a connection in advance.
func isPooled(ctx context.Context, config *pgx.ConnConfig) (bool, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var actual uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&actual)
	if err != nil || actual == conn.PgConn().PID() {
		return false, err
	}
	err = pgx.BeginFunc(ctx, conn, func(pgx.Tx) error { return nil })
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "08P01" { // protocol_violation
		err = fmt.Errorf("fleet: the pooler has no transactions: PgBouncer's pool_mode must be session or transaction: %w", err)
	}
	return true, err
}

// prepareLock is held while tables are made: "feedhist" in ASCII.
const prepareLock int64 = 0x6665656468697374

// riverTables is the version of River's migration to make its tables.
const riverTables = 2

// riverUnused are indexes of River's for finding jobs by their arguments. The
// fleet does not use them, and they cost a third of a job's writes. If the
// fleet did not make River's tables, others may use them, so they keep these
// indexes.
var riverUnused = []string{"river_job_args_index", "river_job_metadata_index"}

// newestSchema is the version of the fleet's own tables, in fleet_schema.
const newestSchema = 2

// prepare makes the missing tables, and opens the store. If none is missing, it only
// reads: it locks nothing, and a role with read access can use it.
func (d *Database) prepare(ctx context.Context) error {
	river, err := rivermigrate.New(riverpgxv5.New(d.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ready, err := d.ready(ctx, river)
	if err == nil && !ready {
		err = d.migrate(ctx, river)
	}
	if err != nil {
		return err
	}
	d.states, err = sqlstore.Open(ctx, d.store, sqlstore.PostgreSQL)
	if errors.Is(err, sqlstore.ErrReadOnly) { // of a role that may only see
		d.states, err = sqlstore.OpenReader(ctx, d.store, sqlstore.PostgreSQL)
	}
	d.Store = d.states
	return err
}

// ready reports whether all tables are there. It is an error if a newer program has made
// them.
func (d *Database) ready(ctx context.Context, river *rivermigrate.Migrator[pgx.Tx]) (bool, error) {
	var version int
	err := d.pool.QueryRow(ctx, `SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('fleet_schema')`).Scan(&version)
	if err != nil || version == 0 {
		return false, err
	}
	if err := d.pool.QueryRow(ctx, `SELECT max(version) FROM fleet_schema`).Scan(&version); err != nil {
		return false, err
	}
	if version > newestSchema {
		return false, fmt.Errorf("fleet: the database has version %d of the schema, and this program knows %d", version, newestSchema)
	}
	valid, err := river.Validate(ctx, nil)
	return err == nil && valid.OK && version == newestSchema, err
}

// migrate makes the missing tables.
func (d *Database) migrate(ctx context.Context, river *rivermigrate.Migrator[pgx.Tx]) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", prepareLock); err != nil {
			return err
		}
		if ready, err := d.ready(ctx, river); err != nil || ready { // another process was faster
			return err
		}
		// River's migrations cannot run in one transaction.
		done, err := river.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(done.Versions, func(v rivermigrate.MigrateVersion) bool { return v.Version == riverTables }) {
			if _, err := tx.Exec(ctx, "DROP INDEX IF EXISTS "+strings.Join(riverUnused, ", ")); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, schema)
		return err
	})
}

// measure measures the database's clock.
func (d *Database) measure(ctx context.Context) error {
	var b pgx.Batch
	d.clock.queue(&b)
	return d.brief(ctx, &b)
}

// ping returns an error if the database does not answer.
func (d *Database) ping(ctx context.Context) error { return d.pool.Ping(ctx) }

// Close closes the connections. Workers must have ended.
func (d *Database) Close() {
	if d.pool != nil {
		d.pool.Close()
	}
	_ = d.store.Close()
}

// brief runs statements one after the other, in one transaction and one
// message.
func (d *Database) brief(ctx context.Context, b *pgx.Batch) error {
	return d.pool.SendBatch(ctx, b).Close()
}

// durably runs do in a transaction, durable once committed.
func (d *Database) durably(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on"); err != nil {
			return err
		}
		return do(tx)
	})
}

// A URLError reports an address that cannot be subscribed to.
type URLError struct {
	URL string
	Err error
}

// Error quotes the address and says why.
func (e *URLError) Error() string { return fmt.Sprintf("%q: %v", e.URL, e.Err) }

// Unwrap returns the reason.
func (e *URLError) Unwrap() error { return e.Err }

// maxURL is the maximum length of a feed's URL in bytes, because it is a key of
// indexes.
const maxURL = 2000

// CheckURL returns a *URLError if an address cannot be subscribed to.
func CheckURL(address string) error {
	_, _, err := subscribable(address)
	return err
}

// subscribable is name for an address to be polled: no request may have a user or
// password in its URL.
func subscribable(address string) (feed, host string, err error) {
	feed, host, err = name(address)
	if u, parseErr := feedhistory.ParseURL(feed); err == nil && parseErr == nil && u.User != nil {
		err = &URLError{URL: feedhistory.Redact(address), Err: errors.New("a user or password in the URL")}
	}
	return feed, host, err
}

// name returns the URL that identifies a feed, as in Mirror.Update, and the host it is
// requested from. The error is a *URLError.
func name(address string) (feed, host string, err error) {
	feed, _, _ = strings.Cut(strings.TrimSpace(address), "#")
	u, err := feedhistory.ParseURL(feed)
	switch {
	case err != nil:
		err = errors.Unwrap(err)
	case u.Scheme != "http" && u.Scheme != "https":
		err = errors.New("it should begin with https:// or http://")
	case u.Hostname() == "":
		err = errors.New("no host")
	case len(feed) > maxURL:
		err = fmt.Errorf("longer than %d bytes", maxURL)
	case strings.ToValidUTF8(feed, "") != feed:
		err = errors.New("not UTF-8")
	default:
		return feed, feedhistory.HostOf(feed), nil
	}
	return "", "", &URLError{address, err}
}

// hostOf returns the host a feed is requested from.
func hostOf(f *mirror.Feed) string {
	_, host, err := name(cmp.Or(f.Address, f.URL))
	if err != nil { // a redirect the client would not follow
		_, host, _ = name(f.URL)
	}
	return host
}

// A claim asks for the due feeds of a held host.
type claim struct {
	hold
	doubtful bool // the last holder did not release the host, so a poll may have ended without a record
	most     int  // maximum number of feeds

	// The results.
	left  time.Duration // how long the host is still held; zero if there are no turns
	turns []*turn       // the longest due first
}

// A turn is a feed to be polled.
type turn struct {
	hold
	url      string
	tries    int          // polls in a row begun but not ended properly, including this one once it is recorded
	due      time.Time    // when the feed was due
	state    *mirror.Feed // as the store has it; nil if the feed is new
	sought   bool         // whether the state is known
	doubtful bool
	noted    bool // whether the beginning of the poll is recorded
}

// claim carries out several claims together. It records nothing about the feeds, because
// nobody else polls them while the host is held.
func (d *Database) claim(ctx context.Context, claims []*claim) error {
	by := make(map[string]*claim, len(claims))
	var b pgx.Batch
	var hosts []string
	var tokens, most []int64
	for _, c := range claims {
		by[c.host] = c
		c.turns, c.left = nil, 0
		hosts, tokens, most = append(hosts, c.host), append(tokens, c.token), append(most, int64(c.most))
	}
	var urls []string
	d.clock.queue(&b)
	b.Queue(dueFeeds, hosts, tokens, most).Query(func(rows pgx.Rows) error {
		var t turn
		var left time.Duration
		_, err := pgx.ForEachRow(rows, []any{&t.host, &t.url, &t.tries, &t.due, &left}, func() error {
			c, t := by[t.host], t
			t.hold, t.doubtful, c.left = c.hold, c.doubtful, left
			c.turns = append(c.turns, &t)
			urls = append(urls, t.url)
			return nil
		})
		return err
	})
	if err := d.brief(ctx, &b); err != nil || len(urls) == 0 {
		return err
	}
	states, err := d.states.FeedsByURL(ctx, urls)
	if err != nil {
		return err
	}
	for _, c := range claims {
		for _, t := range c.turns {
			t.state, t.sought = states[t.url], true
		}
	}
	return nil
}

const dueFeeds = `
	SELECT h.host, f.url, f.tries, f.due, h.until - now()
	FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS a (host, token, most)
	JOIN fleet_hosts h ON h.host = a.host AND h.holder = a.token AND h.until > now()
		AND (h.wait IS NULL OR h.wait <= now())
	CROSS JOIN LATERAL (
		SELECT url, tries, due FROM fleet_feeds WHERE host = a.host AND due <= now() ORDER BY due LIMIT a.most
	) f`

// begin records the beginning of a feed's poll, in case it does not end properly: then
// the feed is due again, after longer and longer times. It returns false if the host is
// no longer the worker's, or the feed must not be polled.
func (d *Database) begin(ctx context.Context, t *turn, lease time.Duration) (bool, error) {
	tag, err := d.pool.Exec(ctx, `
		UPDATE fleet_feeds f SET tries = f.tries + 1, due = now() + $4::interval * (1 << least(f.tries, 10))
		FROM fleet_hosts h
		WHERE f.url = $1 AND f.host = $2 AND f.due <= now() AND h.host = $2 AND h.holder = $3 AND h.until > now()`,
		t.url, t.host, t.token, lease)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	t.tries++
	t.noted = true
	return true, nil
}

// A pollResult is the result of a poll, with everything to record about the feed.
type pollResult struct {
	outcome outcome
	changes *mirror.Report // nil if there were none, or the store could not be read
	feed    *mirror.Feed   // the state of the feed; nil if it is not stored, or something else has changed it
	due     time.Time      // not used if the poll was broken, because a time has been set already
	err     string         // why the poll failed or is broken
	dead    string         // why the feed is a dead letter
	held    *mirror.Feed   // the state to be stored together with others; nil if there is none
}

// end records how a turn has ended. If the worker no longer holds the host, or the feed is no
// longer subscribed to, nothing is recorded, and a forgotten feed goes.
func (d *Database) end(ctx context.Context, t *turn, e pollResult) error {
	var b pgx.Batch
	noted, host := false, t.host
	if e.feed != nil {
		host = hostOf(e.feed)
	}
	if host != t.host {
		b.Queue(`
			INSERT INTO fleet_hosts AS h (host, due) VALUES ($1, $2)
			ON CONFLICT (host) DO UPDATE SET due = least(h.due, excluded.due)
			WHERE h.until IS NULL OR h.until <= now()`, host, e.due)
	}
	set, args := e.columns(host)
	b.Queue(`
		UPDATE fleet_feeds SET polled = now(), `+set+`
		WHERE url = $1 AND EXISTS (SELECT FROM fleet_hosts WHERE host = $2 AND holder = $3)`,
		append([]any{t.url, t.host, t.token}, args...)...,
	).Exec(func(tag pgconn.CommandTag) error {
		noted = tag.RowsAffected() > 0
		return nil
	})
	if err := d.brief(ctx, &b); err != nil || noted {
		return err
	}
	return d.forgotten(ctx, t)
}

// columns returns the columns a pollResult sets, in SQL, with parameters from $4.
func (e *pollResult) columns(host string) (set string, args []any) {
	switch f := e.feed; {
	case e.dead != "":
		return `due = NULL, dead = $4, died = now()`, []any{text(e.dead)}
	case e.outcome == broken:
		return `error = $4`, []any{text(e.err)}
	case f == nil:
		return `tries = 0, due = $4`, []any{e.due}
	default:
		return `tries = 0, due = CASE WHEN NOT $5 THEN $4::timestamptz END, gone = $5,
				host = $6, verdict = $7, failures = $8, error = $9`,
			[]any{e.due, f.Gone || f.Alias != "", host, f.Verdict.String(), f.Failures, text(e.err)}
	}
}

// text returns an error in a form fit for a column: short and valid.
func text(s string) string {
	const most = 500
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// forgotten removes a feed from the store if it is no longer subscribed to: a poll
// under way meanwhile may have added it again.
func (d *Database) forgotten(ctx context.Context, t *turn) error {
	var there bool
	err := d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fleet_feeds WHERE url = $1)`, t.url).Scan(&there)
	if err != nil || there {
		return err
	}
	return d.forget(ctx, t.url)
}

// Subscribe subscribes to feeds, and workers keep them up to date. If one of the
// addresses is invalid, it does nothing, and the error is a *URLError. Feeds that are
// gone or dead letters are polled again. It returns how many feeds were not subscribed
// to before.
func (d *Database) Subscribe(ctx context.Context, urls []string) (added int, err error) {
	rows := make([][]any, 0, len(urls))
	for _, address := range urls {
		feed, host, err := subscribable(address)
		if err != nil {
			return 0, err
		}
		rows = append(rows, []any{feed, host})
	}
	err = d.durably(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TEMPORARY TABLE wanted (url text COLLATE "C", host text COLLATE "C") ON COMMIT DROP`); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"wanted"}, []string{"url", "host"}, pgx.CopyFromRows(rows)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, wakeHosts); err != nil {
			return err
		}
		return tx.QueryRow(ctx, addFeeds).Scan(&added)
	})
	return added, err
}

// Subscribe locks the hosts first, and in order, as does everything that locks several
// hosts. So a job ending meanwhile either sees the added feeds, or has released its
// host before they are added.
const wakeHosts = `
	INSERT INTO fleet_hosts AS h (host, due)
	SELECT DISTINCT coalesce(f.host, w.host), now()
	FROM wanted w LEFT JOIN fleet_feeds f USING (url)
	WHERE f.url IS NULL OR f.due IS NULL
	ORDER BY 1
	ON CONFLICT (host) DO UPDATE SET due = least(h.due, excluded.due)
	WHERE h.until IS NULL OR h.until <= now()`

// Unchanged feeds are not locked: a worker polling them locks only their host.
const addFeeds = `
	WITH put AS (
		INSERT INTO fleet_feeds AS f (url, host, due)
		SELECT DISTINCT ON (url) url, w.host, now() FROM wanted w LEFT JOIN fleet_feeds was USING (url)
		WHERE was.url IS NULL OR was.due IS NULL
		ORDER BY url
		ON CONFLICT (url) DO UPDATE SET due = now(), tries = 0, gone = false, dead = NULL, died = NULL
		WHERE f.due IS NULL
		RETURNING xmax = 0 AS added
	)
	SELECT count(*) FILTER (WHERE added) FROM put`

// Unsubscribe stops polling feeds, and removes them from the store with everything
// belonging to them. It ignores addresses not subscribed to, and returns how many were.
// If an address is invalid, the error is a *URLError.
func (d *Database) Unsubscribe(ctx context.Context, urls []string) (removed int, err error) {
	feeds := make([]string, 0, len(urls))
	for _, address := range urls {
		feed, _, err := name(address)
		if err != nil {
			return 0, err
		}
		feeds = append(feeds, feed)
	}
	for _, feed := range feeds {
		err := d.durably(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM fleet_feeds WHERE url = $1`, feed)
			removed += int(tag.RowsAffected())
			return err
		})
		if err != nil {
			return removed, err
		}
		if err := d.forget(ctx, feed); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// forget removes a feed from the store.
func (d *Database) forget(ctx context.Context, feed string) error {
	err := d.Store.Remove(ctx, feed)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil
	}
	return err
}
