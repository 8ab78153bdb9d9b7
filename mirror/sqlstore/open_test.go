package sqlstore_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// TestOpenAtOnce opens a new database many times at once; the schema is made
// once.
func TestOpenAtOnce(t *testing.T) {
	emptyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		failures := make(chan error)
		for range 8 {
			db := d.connect(t)
			go func() {
				_, err := sqlstore.Open(t.Context(), db, d.dialect)
				failures <- err
			}()
		}
		for range 8 {
			require.NoError(t, <-failures)
		}
		require.NoError(t, d.open(t).Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}))
	})
}

func TestOpenRefuses(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		d.open(t)
		db := d.connect(t)
		_, err := sqlstore.Open(t.Context(), db, "mysql")
		require.ErrorContains(t, err, `unknown dialect "mysql"`)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = sqlstore.Open(ctx, db, d.dialect)
		require.ErrorIs(t, err, context.Canceled)

		_, err = db.Exec(d.sql("UPDATE fh.schema SET version = 99"))
		require.NoError(t, err)
		_, err = sqlstore.Open(t.Context(), db, d.dialect)
		require.ErrorContains(t, err, "the database has version 99 of the schema, and this program knows ")
	})
}

func TestOpenRefusesConnections(t *testing.T) {
	for name, file := range map[string]string{
		"journal_mode": ":memory:",
		"synchronous":  "feeds.db?_pragma=synchronous(NORMAL)",
		"foreign_keys": "feeds.db?_pragma=synchronous(FULL)",
	} {
		if file != ":memory:" {
			file = filepath.Join(t.TempDir(), file)
		}
		db, err := sql.Open("sqlite", "file:"+file)
		require.NoError(t, err)
		_, err = sqlstore.Open(t.Context(), db, sqlstore.SQLite)
		require.ErrorContains(t, err, name+" = ")
		require.ErrorContains(t, err, "SQLiteDSN")
		require.NoError(t, db.Close())
	}
}

// TestReopen finds everything unchanged.
func TestReopen(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		f := &mirror.Feed{URL: sharedURL}
		for range 3 {
			require.NoError(t, d.open(t).Commit(t.Context(), sharedChange(f)))
		}
		isWhole(t, d.open(t), 3)
	})
}

// TestBackup makes a copy as the README says, while the store is in use.
func TestBackup(t *testing.T) {
	d := newSQLite(t)
	s := d.open(t)
	f := &mirror.Feed{URL: sharedURL}
	for range 3 {
		require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
	}
	require.NoError(t, s.Index(t.Context()))
	file := filepath.Join(t.TempDir(), "backup.db")
	_, err := d.connect(t).Exec("VACUUM INTO ?", file)
	require.NoError(t, err)
	backup := inFile(file)
	isWhole(t, backup.open(t), 3)
	backup.intact(t)
}

func TestMonths(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		s := create(t).open(t)
		day := func(year int, month time.Month, day int) time.Time {
			return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		}
		var put []*mirror.Record
		add := func(id string, state mirror.State, at time.Time) {
			r := &mirror.Record{ID: id, State: state, Added: at}
			r.Content.Format = "atom"
			put = append(put, r)
		}
		add("first", mirror.Live, day(1, 1, 1).Add(1))
		add("a", mirror.Live, day(2023, 12, 31).Add(24*time.Hour-1))
		add("b", mirror.Live, day(2024, 1, 1))
		add("c", mirror.Live, day(2024, 1, 31).Add(24*time.Hour-1))
		add("zone", mirror.Live, day(2024, 2, 1).In(time.FixedZone("", -3600)))
		add("gone", mirror.Deleted, day(2024, 3, 1))
		add("absent", mirror.Absent, day(2024, 1, 2))
		add("timeless", mirror.Live, time.Time{})
		add("last", mirror.Live, day(9999, 12, 31))
		for _, url := range []string{"feed", "other"} {
			require.NoError(t, s.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: url}, Put: put}))
		}
		months, err := s.Months(t.Context(), mirror.Query{Feed: "feed"})
		require.NoError(t, err)
		require.Equal(t, map[time.Time]int64{
			day(1, 1, 1): 1, day(2023, 12, 1): 1, day(2024, 1, 1): 2, day(2024, 2, 1): 1, day(9999, 12, 1): 1,
		}, months)
		_, err = s.Months(t.Context(), mirror.Query{})
		require.ErrorContains(t, err, "needs a Feed")
		months, err = s.Months(t.Context(), mirror.Query{Feed: "unknown"})
		require.NoError(t, err)
		require.Empty(t, months)
	})
}

// TestIndex shows that Index leaves nothing for a search to do, and that a
// search works for a reader whose index is behind.
func TestIndex(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s, db := d.open(t), d.connect(t)
		waiting := func() (n int) {
			require.NoError(t, db.QueryRow(d.sql("SELECT count(*) FROM fh.unindexed")).Scan(&n))
			return n
		}
		f := &mirror.Feed{URL: sharedURL}
		for range 20 {
			require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
		}
		require.Equal(t, 20*perCommit+1, waiting())
		require.NoError(t, s.Index(t.Context()))
		require.Zero(t, waiting())
		isWhole(t, s, 20)
		require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
		require.Equal(t, perCommit+1, waiting())
		isWhole(t, s, 21)
		require.Zero(t, waiting())
	})
}

// All times in the tables are complete for other programs, even if SQLite
// stores one for two columns.
func TestSameTimes(t *testing.T) {
	d := newSQLite(t)
	s := d.open(t)
	c := newWriter().change(&mirror.Feed{URL: "a"}, 2)
	later := c.Put[1].Added.Add(time.Hour)
	c.Put[1].Changed, c.Put[1].Copy.At = later, later
	require.NoError(t, s.Commit(t.Context(), c))
	for _, r := range c.Put {
		for column, want := range map[string]time.Time{"added": r.Added, "changed": r.Changed, "at": r.Copy.At, "updated": r.Content.Updated} {
			var got string
			require.NoError(t, d.connect(t).QueryRow("SELECT "+column+" FROM feedhistory_entries WHERE id = ?", r.ID).Scan(&got))
			require.Equal(t, want.Format("2006-01-02T15:04:05.000000000Z"), got, column)
		}
	}
	var stored string
	require.NoError(t, d.connect(t).QueryRow("SELECT changed_own || at_own FROM feedhistory_entries WHERE id = ?", c.Put[0].ID).Scan(&stored))
	require.Equal(t, "==", stored)
}

// Opening a database that is up to date, reading and committing take no lock above ROW
// EXCLUSIVE: they do not wait for SHARE UPDATE EXCLUSIVE on each table, as VACUUM has it.
func TestOpenLocks(t *testing.T) {
	d := newPostgreSQL(t)
	d.open(t)
	tx, err := d.connect(t).Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT relid::regclass FROM pg_stat_user_tables LOOP EXECUTE 'LOCK TABLE ' || name || ' IN SHARE UPDATE EXCLUSIVE MODE'; END LOOP; END $$`)
	require.NoError(t, err)
	d.dsn += "&lock_timeout=60000"
	s := d.open(t)
	require.NoError(t, s.Commit(t.Context(), sharedChange(&mirror.Feed{URL: sharedURL})))
	isWhole(t, s, 1)
	reader, err := sqlstore.OpenReader(t.Context(), d.connect(t), d.dialect)
	require.NoError(t, err)
	require.Len(t, feedtest.All(t, reader.Feeds(t.Context(), mirror.FeedQuery{})), 1)
}
