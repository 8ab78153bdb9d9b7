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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A Database is a PostgreSQL database shared by workers: the mirrored feeds, when they
// are due, and the jobs. Several goroutines may use it at the same time.
type Database struct {
	// Store has the mirrored feeds: an *sqlstore.Store. Open sets it.
	Store mirror.Store

	states *sqlstore.Store // the Store of Open
	store  *sql.DB         // the database of Store
	pool   *pgxpool.Pool   // connections whose last commits a crash of the database may lose; see durably
}

//go:embed schema.sql
var schema string

// Open connects to a database, which is given in the form of libpq: as a URL,
// "postgres://user@host/name", or as "host=… dbname=…". It makes the missing
// tables; if none is, it only reads.
//
// There are two pools of connections, one for the store and one for the jobs.
// Each has up to two connections per core, at least 4 and at most 16; or as
// many as pool_max_conns says. The error may be the context's.
func Open(ctx context.Context, dsn string) (*Database, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		config.MaxConns = int32(min(max(4, 2*runtime.GOMAXPROCS(0)), 16))
	}
	d := &Database{store: stdlib.OpenDB(*config.ConnConfig.Copy())}
	d.store.SetMaxOpenConns(int(config.MaxConns))
	d.store.SetMaxIdleConns(int(config.MaxConns))
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	// A plan made while a table had few rows would read the whole table when it
	// has many.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err == nil {
		err = d.prepare(ctx)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
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
