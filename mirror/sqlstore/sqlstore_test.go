package sqlstore_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
	"github.com/feedhistory/feedhistory/mirror/storetest"
)

var server *pgtest.Server

// patience is the maximum time to wait for PostgreSQL, on however busy a machine.
const patience = 5 * time.Minute

// TestMain starts a server, except in processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv("SQLSTORE_MIRROR") != "" {
		os.Exit(m.Run())
	}
	if work := os.Getenv(childVariable); work != "" {
		os.Exit(child(work))
	}
	os.Exit(feedtest.Run(func() int { return pgtest.Main(m, &server) }))
}

// A database is a place to open stores.
type database struct {
	dialect     sqlstore.Dialect
	driver, dsn string
	file        string // of SQLite
}

// databases runs a test for each kind of database, with a function that makes a
// new one, which may have the store's tables.
func databases(t *testing.T, test func(t *testing.T, create func(testing.TB) database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite) })
	t.Run("postgresql", func(t *testing.T) { test(t, newPostgreSQL) })
}

// emptyDatabases is databases for a test of how the tables are made.
func emptyDatabases(t *testing.T, test func(t *testing.T, create func(testing.TB) database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite) })
	t.Run("postgresql", func(t *testing.T) { test(t, emptyPostgreSQL) })
}

// faultyDatabases is databases for a test of kills or damage: with PostgreSQL, whose own
// processes live on and which guards its pages itself, it runs in a long run only.
func faultyDatabases(t *testing.T, test func(t *testing.T, create func(testing.TB) database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite) })
	t.Run("postgresql", func(t *testing.T) {
		if !feedtest.LongRun() {
			t.Skip("in a long run only: FEEDHISTORY_LONG=1")
		}
		test(t, newPostgreSQL)
	})
}

func newSQLite(t testing.TB) database { return inFile(filepath.Join(t.TempDir(), "feeds ?#%.db")) }

// inFile is the SQLite database in a file.
func inFile(file string) database {
	return database{dialect: sqlstore.SQLite, driver: "sqlite", dsn: sqlstore.SQLiteDSN(file), file: file}
}

func newPostgreSQL(t testing.TB) database {
	if _, measures := t.(*testing.B); measures && server != nil {
		server.Durable(t)
	}
	return inPostgreSQL(server.Copy(t, template(t)))
}

func emptyPostgreSQL(t testing.TB) database { return inPostgreSQL(server.Database(t)) }

func inPostgreSQL(dsn string) database {
	return database{dialect: sqlstore.PostgreSQL, driver: "pgx", dsn: dsn}
}

// template returns the URL of a database with the store's tables, to be copied.
func template(t testing.TB) string {
	templates.Lock()
	defer templates.Unlock()
	if templates.url == "" {
		url := server.Database(t)
		db, err := sql.Open("pgx", url)
		require.NoError(t, err)
		_, err = sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		templates.url = url
	}
	return templates.url
}

var templates struct {
	sync.Mutex
	url string
}

// forReading is the database as a reader connects to it.
func (d database) forReading() database {
	if d.dialect == sqlstore.SQLite {
		d.dsn = sqlstore.SQLiteReaderDSN(d.file, false)
	}
	return d
}

// reader opens the database for reading.
func (d database) reader(t testing.TB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenReader(t.Context(), d.forReading().connect(t), d.dialect)
	require.NoError(t, err)
	return s
}

// sql returns a statement with the names of the store's tables, which it writes as
// fh.entries.
func (d database) sql(query string) string {
	prefix := map[sqlstore.Dialect]string{sqlstore.SQLite: "feedhistory_", sqlstore.PostgreSQL: "feedhistory."}[d.dialect]
	return strings.ReplaceAll(query, "fh.", prefix)
}

// connect opens another connection to the database.
func (d database) connect(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func (d database) open(t testing.TB) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), d.connect(t), d.dialect)
	require.NoError(t, err)
	return store
}

// One of the suite's stores reads through a store opened for reading, the other one writes.
func TestStore(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		d := create(t)
		storetest.Run(t, func(t testing.TB) (store, other mirror.Store) {
			writer := d.open(t)
			for _, f := range feedtest.All(t, writer.Feeds(t.Context(), mirror.FeedQuery{})) { // of the test before
				require.NoError(t, writer.Remove(t.Context(), f.URL))
			}
			return halved{d.reader(t), d.open(t)}, writer
		})
	})
}

// A halved store writes through one store and reads through another.
type halved struct {
	*sqlstore.Store // for reading
	writer          *sqlstore.Store
}

func (h halved) Commit(ctx context.Context, c *mirror.Commit) error { return h.writer.Commit(ctx, c) }
func (h halved) Remove(ctx context.Context, url string) error       { return h.writer.Remove(ctx, url) }

// oneConnection opens a database with a single connection.
func oneConnection(t *testing.T, d database) *sqlstore.Store {
	db := d.connect(t)
	db.SetMaxOpenConns(1)
	s, err := sqlstore.Open(t.Context(), db, d.dialect)
	require.NoError(t, err)
	return s
}

// TestOneConnection shows that a sequence holds no connection: with a single
// connection, everything can be called during a range.
func TestOneConnection(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		s := oneConnection(t, create(t))
		f := &mirror.Feed{URL: sharedURL}
		for range 10 {
			require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
		}
		n := 0
		for _, err := range s.Feeds(t.Context(), mirror.FeedQuery{}) {
			require.NoError(t, err)
			for r, err := range s.Entries(t.Context(), mirror.Query{Feed: sharedURL}) {
				require.NoError(t, err)
				if n++; n%50 == 0 {
					require.NoError(t, s.Commit(t.Context(), sharedChange(f)))
					isWhole(t, s, f.Commits)
					require.NotEmpty(t, r.Content.Data)
				}
			}
		}
		require.GreaterOrEqual(t, n, 10*perCommit)
	})
}
