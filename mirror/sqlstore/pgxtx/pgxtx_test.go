package pgxtx_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
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

func TestMain(m *testing.M) { os.Exit(feedtest.Leaks(pgtest.Main(m, &server))) }

// A hook writes by a pgx.Tx: its rows are there if and only if the commit is.
func TestHook(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), server.Database(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), "CREATE TABLE titles (id text PRIMARY KEY, title text)")
	require.NoError(t, err)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)

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
	entry := func(id string) *mirror.Record {
		return &mirror.Record{ID: id, State: mirror.Live, Copy: mirror.Copy{Digest: id}, Content: mirror.Content{Format: "atom", Title: "title " + id}}
	}
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{entry("1")}}))
	fails = errors.New("no room")
	require.ErrorIs(t, store.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{entry("2")}}), fails)
	rows, err := pool.Query(t.Context(), "SELECT title FROM titles")
	require.NoError(t, err)
	titles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"title 1!"}, titles)
	_, err = mirror.Lookup(t.Context(), store, f.URL, "2")
	require.ErrorIs(t, err, mirror.ErrNotFound)
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
