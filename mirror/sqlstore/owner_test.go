package sqlstore_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// newFile makes a SQLite database from statements, and returns its path.
func newFile(t *testing.T, statements ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "some.db")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	return file
}

// The tables of another program, and ours, can be in one SQLite database. A reader,
// which makes no tables, says that there is no mirror, and changes no byte.
func TestGuest(t *testing.T) {
	bookmarks := "CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, url TEXT)"
	versions := "CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version_id INTEGER, is_applied INTEGER, tstamp TIMESTAMP)"
	for name, statements := range map[string][]string{
		"bookmarks":                 {bookmarks, "INSERT INTO bookmarks (url) VALUES ('a')"},
		"with a write-ahead log":    {"PRAGMA journal_mode = wal", bookmarks},
		"with a mark":               {"PRAGMA application_id = 7"},
		"with a version":            {"PRAGMA user_version = 7"},
		"with migrations as we had": {versions, bookmarks, "INSERT INTO schema_versions (version_id, is_applied) VALUES (6, 1)"},
		"with tables of the names that we had": {
			versions, "CREATE TABLE feeds (url TEXT)", "CREATE TABLE entries (id TEXT)", "CREATE INDEX entries_by_time ON entries (id)",
			"INSERT INTO schema_versions (version_id, is_applied) VALUES (6, 1)",
		},
		"with a table that begins with our name": {"CREATE TABLE feedhistory_settings (name TEXT)"},
	} {
		t.Run(name, func(t *testing.T) {
			file := newFile(t, statements...)
			before := feedtest.ReadFile(t, file)
			for _, dsn := range []string{sqlstore.SQLiteReaderDSN(file, false), sqlstore.SQLiteReaderDSN(file, true)} {
				reader := database{dialect: sqlstore.SQLite, driver: "sqlite", dsn: dsn}
				_, err := sqlstore.OpenReader(t.Context(), reader.connect(t), reader.dialect)
				require.ErrorIs(t, err, sqlstore.ErrForeign)
				require.ErrorIs(t, err, sqlstore.ErrNone)
			}
			require.Equal(t, before, feedtest.ReadFile(t, file))

			d := inFile(file)
			theirs := "SELECT coalesce(group_concat(sql, ';'), '') FROM sqlite_schema WHERE tbl_name NOT LIKE 'feedhistory\\_%' ESCAPE '\\'"
			had, err := column(d.connect(t), theirs)
			require.NoError(t, err)
			require.NoError(t, d.open(t).Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}))
			d.reader(t)
			got, err := column(d.connect(t), theirs)
			require.NoError(t, err)
			require.Equal(t, had, got)
			d.intact(t)
		})
	}
}

func column(db *sql.DB, query string) (text string, err error) {
	return text, db.QueryRow(query).Scan(&text)
}

// The same in PostgreSQL, where the tables of another program have the names that ours
// had.
func TestGuestPostgreSQL(t *testing.T) {
	d := emptyPostgreSQL(t)
	_, err := d.connect(t).Exec("CREATE TABLE schema_versions (version_id INTEGER, is_applied BOOLEAN); INSERT INTO schema_versions VALUES (5, true);" +
		"CREATE TABLE feeds (url TEXT); INSERT INTO feeds VALUES ('theirs'); CREATE TABLE entries (id TEXT); CREATE SCHEMA feedhistory")
	require.NoError(t, err)
	_, err = sqlstore.OpenReader(t.Context(), d.connect(t), d.dialect)
	require.ErrorIs(t, err, sqlstore.ErrNone)
	require.NoError(t, d.open(t).Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}))
	require.NoError(t, d.connect(t).QueryRow("SELECT url FROM feeds WHERE url = 'theirs'").Err())
}

// A database in which another program has tables with our names is refused, and does
// not change.
func TestClash(t *testing.T) {
	emptyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		statement := map[sqlstore.Dialect]string{
			sqlstore.SQLite: "CREATE TABLE feedhistory_entries (id TEXT)", sqlstore.PostgreSQL: "CREATE SCHEMA feedhistory CREATE TABLE entries (id TEXT)",
		}[d.dialect]
		_, err := d.connect(t).Exec(statement)
		require.NoError(t, err)
		for _, open := range []func(context.Context, *sql.DB, sqlstore.Dialect) (*sqlstore.Store, error){sqlstore.Open, sqlstore.OpenReader} {
			_, err = open(t.Context(), d.connect(t), d.dialect)
			require.ErrorIs(t, err, sqlstore.ErrForeign)
			require.ErrorContains(t, err, d.sql("fh.entries"))
		}
		_, err = d.connect(t).Exec(d.sql("SELECT * FROM fh.feeds"))
		require.Error(t, err)
	})
}

// A database belongs to us that is empty, was begun by a killed program, or has the mark
// of an earlier version.
func TestOurs(t *testing.T) {
	for name, statements := range map[string][]string{
		"empty": nil,
		"begun": {"CREATE TABLE schema_versions (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, " +
			"is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))", "INSERT INTO schema_versions (version_id, is_applied) VALUES (0, 1)"},
		"marked": {"PRAGMA application_id = 1718119794"},
	} {
		t.Run(name, func(t *testing.T) {
			file := newFile(t, statements...)
			d := inFile(file)
			_, err := sqlstore.OpenReader(t.Context(), d.forReading().connect(t), d.dialect)
			require.ErrorIs(t, err, sqlstore.ErrNone)
			require.NotErrorIs(t, err, sqlstore.ErrForeign)
			require.NoError(t, d.open(t).Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}))
		})
	}
}

// A reader finds words that are not in the index yet, and does not find those
// that an entry no longer has.
func TestReaderSearches(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		s, f := d.open(t), &mirror.Feed{URL: sharedURL}
		for range 20 {
			require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
			if f.Commits == 10 {
				require.NoError(t, s.Index(t.Context()))
			}
		}
		r := d.reader(t)
		for word, want := range map[string]int{"word20": perCommit + 1, "word11": perCommit, "word10": perCommit, "word21": 0} {
			for range 2 {
				require.Len(t, feedtest.All(t, r.Entries(t.Context(), mirror.Query{Search: word})), want, word)
			}
			require.Len(t, feedtest.All(t, r.Entries(t.Context(), mirror.Query{Search: word, Limit: 7})), min(want, 7), word)
		}
		require.NoError(t, s.Index(t.Context()))
		require.Len(t, feedtest.All(t, r.Entries(t.Context(), mirror.Query{Search: "word20"})), perCommit+1)
	})
}

// A reader changes and creates nothing.
func TestReaderRefuses(t *testing.T) {
	emptyDatabases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		if d.dialect == sqlstore.SQLite {
			d = inFile(newFile(t))
		}
		_, err := sqlstore.OpenReader(t.Context(), d.forReading().connect(t), d.dialect)
		require.ErrorIs(t, err, sqlstore.ErrNone)
		require.NoError(t, d.open(t).Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "a"}}))
		r := d.reader(t)
		require.ErrorIs(t, r.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: "b"}}), sqlstore.ErrReadOnly)
		require.ErrorIs(t, r.Remove(t.Context(), "a"), sqlstore.ErrReadOnly)
		require.Len(t, feedtest.All(t, r.Feeds(t.Context(), mirror.FeedQuery{})), 1)

		_, err = d.connect(t).Exec(d.sql("UPDATE fh.schema SET version = 99"))
		require.NoError(t, err)
		_, err = sqlstore.OpenReader(t.Context(), d.forReading().connect(t), d.dialect)
		require.ErrorContains(t, err, "version 99 of the schema, and this program knows ")
	})
}
