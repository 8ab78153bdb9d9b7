package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A table of a hook follows the live entries: through commits, corrections, deletions,
// returns, a move and a removal. An error of the hook prevents the commit.
func TestHook(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		db := d.connect(t)
		_, err := db.Exec("CREATE TABLE entries (feed TEXT, id TEXT, title TEXT, version INTEGER, PRIMARY KEY (feed, id))") // a name that ours had once
		require.NoError(t, err)
		s := d.open(t)
		var fails error
		s.Hook = func(ctx context.Context, tx *sql.Tx, d *sqlstore.Delta) error {
			return errors.Join(follow(ctx, tx, d), fails)
		}

		f := &mirror.Feed{URL: "a"}
		commit := func(put, touch []*mirror.Record) {
			t.Helper()
			require.NoError(t, s.Commit(t.Context(), &mirror.Commit{Feed: f, Put: put, Touch: touch}))
		}
		require.NoError(t, s.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "other"}, Put: []*mirror.Record{record("1", "theirs")}}))
		long := string(make([]byte, 3000))
		commit([]*mirror.Record{record("1", "one"), record("2", "two"), record(long, "long")}, nil)
		require.Equal(t, map[string]string{"1": "one", "2": "two", long: "long"}, followed(t, db, "a", 1))
		commit([]*mirror.Record{record("2", "zwei"), record("3", "three")}, []*mirror.Record{touched(record("1", "one"), mirror.Absent)})
		require.Equal(t, map[string]string{"2": "zwei", "3": "three", long: "long"}, followed(t, db, "a", 2))
		commit(nil, []*mirror.Record{record("1", "one"), touched(record("2", "zwei"), mirror.Deleted)})
		require.Equal(t, map[string]string{"1": "one", "3": "three", long: "long"}, followed(t, db, "a", 3))
		commit([]*mirror.Record{record("3", "three")}, []*mirror.Record{touched(record("unknown", ""), mirror.Unseen)})

		fails = errors.New("no room")
		version := f.Commits
		require.ErrorIs(t, s.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{record("4", "four")}}), fails)
		require.Equal(t, version, f.Commits)
		require.Empty(t, feedtest.All(t, s.Entries(t.Context(), mirror.Query{Search: "four"})))
		require.ErrorIs(t, s.Remove(t.Context(), "a"), fails)
		fails = nil
		require.Equal(t, map[string]string{"1": "one", "3": "three", long: "long"}, followed(t, db, "a", 0))

		require.NoError(t, s.Move(t.Context(), f, "b"))
		require.Empty(t, followed(t, db, "a", 0))
		require.Len(t, followed(t, db, "b", 0), 3)
		require.NoError(t, s.Remove(t.Context(), "b"))
		require.Empty(t, followed(t, db, "b", 0))
		require.Len(t, followed(t, db, "other", 1), 1)
	})
}

// A panic of a Hook passes on. Nothing is stored, and the next call can write, even by the
// only connection.
func TestHookPanics(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s := oneConnection(t, d)
		f := &mirror.Feed{URL: "a"}
		first := func() error {
			return s.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "b"}, Put: []*mirror.Record{record("2", "two")}})
		}
		require.NoError(t, s.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{record("1", "one")}}))
		s.Hook = func(ctx context.Context, tx *sql.Tx, _ *sqlstore.Delta) error {
			_, err := tx.QueryContext(ctx, "SELECT id FROM "+d.sql("fh.entries")) // the rows stay open
			require.NoError(t, err)
			panic("hook")
		}
		for _, call := range []func() error{
			first,
			func() error {
				return s.Commit(t.Context(), &mirror.Commit{Feed: f, Put: []*mirror.Record{record("2", "two")}})
			},
			func() error { return s.Move(t.Context(), f, "b") },
			func() error { return s.Remove(t.Context(), "a") },
		} {
			require.PanicsWithValue(t, "hook", func() { _ = call() })
			entries := feedtest.All(t, s.Entries(t.Context(), mirror.Query{}))
			require.Len(t, entries, 1)
			require.Equal(t, "a", entries[0].Feed)
			require.EqualValues(t, 1, f.Commits)
		}
		s.Hook = nil
		require.NoError(t, first())
	})
}

// A commit whose context ends between two statements stores nothing.
func TestEndedInHook(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		store := create(t).open(t)
		f := mirror.NewFeed("https://example.org/feed")
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
		ctx, cancel := context.WithCancel(t.Context())
		store.Hook = func(context.Context, *sql.Tx, *sqlstore.Delta) error {
			cancel()
			return nil
		}
		c := &mirror.Commit{Feed: f, Put: []*mirror.Record{record("a", "A")}}
		require.ErrorIs(t, store.Commit(ctx, c), context.Canceled)
		found, err := store.Records(t.Context(), f.URL, []string{"a"})
		require.NoError(t, err)
		require.Empty(t, found)
		store.Hook = nil
		require.NoError(t, store.Commit(t.Context(), c))
	})
}

// record returns a live record.
func record(id, title string) *mirror.Record {
	r := &mirror.Record{ID: id, State: mirror.Live, Copy: mirror.Copy{Digest: title}}
	r.Content.Format, r.Content.Title = "atom", title
	return r
}

// touched returns a record in a state, as a Change has it in Touch.
func touched(r *mirror.Record, state mirror.State) *mirror.Record {
	r.State, r.Content = state, mirror.Content{}
	return r
}

// follow is a hook that keeps a table of live entries.
func follow(ctx context.Context, tx *sql.Tx, d *sqlstore.Delta) (err error) {
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.ExecContext(ctx, query, args...)
		}
	}
	switch {
	case d.Removed:
		exec("DELETE FROM entries WHERE feed = $1", d.Feed.URL)
	case d.From != "":
		exec("UPDATE entries SET feed = $1 WHERE feed = $2", d.Feed.URL, d.From)
	}
	for _, r := range d.Added {
		exec("INSERT INTO entries VALUES ($1, $2, $3, $4)", d.Feed.URL, printable(r.ID), r.Content.Title, d.Feed.Commits)
	}
	for _, r := range d.Changed {
		exec("UPDATE entries SET title = $1 WHERE feed = $2 AND id = $3", r.Content.Title, d.Feed.URL, printable(r.ID))
	}
	for _, r := range d.Deleted {
		exec("DELETE FROM entries WHERE feed = $1 AND id = $2", d.Feed.URL, printable(r.ID))
	}
	return err
}

// printable replaces an ID of NULs, which PostgreSQL refuses.
func printable(id string) string {
	if strings.Contains(id, "\x00") {
		return "nul"
	}
	return id
}

// followed returns the titles in the table of a hook, by ID. If version is not zero, the
// newest entry was added at that version.
func followed(t *testing.T, db *sql.DB, feed string, version int64) map[string]string {
	t.Helper()
	rows, err := db.Query("SELECT id, title, version FROM entries WHERE feed = $1", feed)
	require.NoError(t, err)
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var id, title string
		var at int64
		require.NoError(t, rows.Scan(&id, &title, &at))
		if id == "nul" {
			id = string(make([]byte, 3000))
		}
		found[id] = title
		if version > 0 {
			require.LessOrEqual(t, at, version)
		}
	}
	require.NoError(t, rows.Err())
	return found
}
