package pgxtx_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgxtx"
)

var server *pgtest.Server

func TestMain(m *testing.M) { os.Exit(feedtest.Run(func() int { return pgtest.Main(m, &server) })) }

// open returns the pool and the store of a new database with a table of the program's.
func open(t *testing.T, table string) (*pgxpool.Pool, *sqlstore.Store) {
	pool, err := pgxpool.New(t.Context(), server.Database(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), table)
	require.NoError(t, err)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	return pool, store
}

func column(t *testing.T, pool *pgxpool.Pool, query string) []string {
	rows, err := pool.Query(t.Context(), query)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return list
}

func entry(id string) *mirror.Record {
	return &mirror.Record{ID: id, State: mirror.Live, Copy: mirror.Copy{Digest: id}, Content: mirror.Content{Format: "atom", Title: "title " + id}}
}

// A hook writes by a pgx.Tx: its rows are there if and only if the commit is.
func TestHook(t *testing.T) {
	pool, store := open(t, "CREATE TABLE titles (id text PRIMARY KEY, title text)")

	var fails error
	store.Hook = pgxtx.Hook(func(ctx context.Context, tx pgx.Tx, d *sqlstore.Delta) error {
		var rows [][]any
		for _, r := range d.Added {
			rows = append(rows, []any{r.ID, r.Content.Title})
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"titles"}, []string{"id", "title"}, pgx.CopyFromRows(rows)); err != nil {
			return err
		}
		part, err := tx.Begin(ctx)
		require.NoError(t, err)
		_, err = part.Exec(ctx, "INSERT INTO titles SELECT * FROM titles")
		require.ErrorContains(t, err, "duplicate key")
		inner, err := part.Begin(ctx)
		require.Error(t, err, "the part has failed")
		require.Nil(t, inner)
		require.NoError(t, part.Rollback(ctx))
		require.ErrorIs(t, part.Rollback(ctx), pgx.ErrTxClosed)
		part, err = tx.Begin(ctx)
		require.NoError(t, err)
		_, err = part.Exec(ctx, "UPDATE titles SET title = title || '!'")
		require.NoError(t, err)
		require.NoError(t, part.Commit(ctx))
		require.ErrorContains(t, tx.Commit(ctx), "the transaction is the store's")
		require.ErrorContains(t, tx.Rollback(ctx), "the transaction is the store's")
		require.NotNil(t, tx.Conn())
		return fails
	})
	f := mirror.NewFeed("https://example.org/feed")
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{entry("1")}}))
	fails = errors.New("no room")
	require.ErrorIs(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{entry("2")}}), fails)
	require.Equal(t, []string{"title 1!"}, column(t, pool, "SELECT title FROM titles"))
	_, err := mirror.Lookup(t.Context(), store, f.URL, "2")
	require.ErrorIs(t, err, mirror.ErrNotFound)
}

// The table of the example has the live entries, even those with long IDs, or with U+0000 in
// them.
func TestArticles(t *testing.T) {
	pool, store := open(t, createArticles)
	store.Hook = pgxtx.Hook(keepArticles)
	f, other, long := mirror.NewFeed("https://example.org/feed"), mirror.NewFeed("https://example.org/other"), strings.Repeat("1\x00", 3000)
	commit := func(f *mirror.Feed, entries ...*mirror.Record) {
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: entries}))
	}
	articles := func() []string {
		return column(t, pool, "SELECT feed || ' ' || left(title, 10) FROM articles ORDER BY feed, title")
	}
	commit(other, entry("1"))
	commit(f, entry("1"), entry("2"), entry("3"), entry(long))
	changed, deleted := entry("2"), entry("3")
	changed.Copy.Digest, changed.Content.Title, deleted.State = "changed", "zwei", mirror.Deleted
	commit(f, changed, deleted)
	require.Equal(t, []string{
		"https://example.org/feed title 1", "https://example.org/feed title 1111", "https://example.org/feed zwei", "https://example.org/other title 1",
	}, articles())
	require.NoError(t, store.Remove(t.Context(), other.URL))
	require.NoError(t, store.Move(t.Context(), f, "https://example.org/moved"))
	require.Equal(t, []string{
		"https://example.org/moved title 1", "https://example.org/moved title 1111", "https://example.org/moved zwei",
	}, articles())
}

// A panic passes on, and so does runtime.Goexit. Nothing is stored, and the next commit
// can be made.
func TestHookPanics(t *testing.T) {
	pool, store := open(t, "CREATE TABLE titles (id text PRIMARY KEY, title text)")
	f := mirror.NewFeed("https://example.org/feed")
	commit := func() error {
		return store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{entry("1")}})
	}
	hook := func(end func()) sqlstore.Hook {
		return pgxtx.Hook(func(ctx context.Context, tx pgx.Tx, _ *sqlstore.Delta) error {
			_, err := tx.Exec(ctx, "INSERT INTO titles VALUES ('1', '1')")
			require.NoError(t, err)
			_, err = tx.Query(ctx, "SELECT generate_series(1, 100000)") // the rows stay open
			require.NoError(t, err)
			end()
			return nil
		})
	}
	store.Hook = hook(func() { panic("hook") })
	require.PanicsWithValue(t, "hook", func() { _ = commit() })
	store.Hook = hook(runtime.Goexit)
	var ended sync.WaitGroup
	ended.Go(func() { _ = commit() })
	ended.Wait()
	store.Hook = pgxtx.Hook(nil)
	require.ErrorContains(t, commit(), "pgxtx: Hook: the function is nil")
	require.Empty(t, column(t, pool, "SELECT id FROM titles"))
	_, err := store.Feed(t.Context(), f.URL)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	store.Hook = nil
	require.NoError(t, commit())
}

// Another driver is an error.
func TestHookOfSQLite(t *testing.T) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "feeds.db")))
	require.NoError(t, err)
	defer db.Close()

	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	store.Hook = pgxtx.Hook(func(context.Context, pgx.Tx, *sqlstore.Delta) error { return nil })
	_, err = mirror.Subscribe(t.Context(), store, mirror.NewFeed("https://example.org/feed"))
	require.ErrorContains(t, err, "the driver of the store's database is not pgx")
}
