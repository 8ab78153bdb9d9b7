package sqlstore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
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
}

// databases runs a test for each kind of database, with a function that makes a
// new one.
func databases(t *testing.T, test func(t *testing.T, create func(testing.TB) database)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite) })
	t.Run("postgresql", func(t *testing.T) { test(t, newPostgreSQL) })
}

func newSQLite(t testing.TB) database {
	return database{sqlstore.SQLite, "sqlite", sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "feeds ?#%.db"))}
}

func newPostgreSQL(t testing.TB) database {
	return database{sqlstore.PostgreSQL, "pgx", server.Database(t)}
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

func TestStore(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		if strings.HasSuffix(t.Name(), "/sqlite") {
			feedtest.Long(t)
		}
		storetest.Run(t, func(t testing.TB) (store, other mirror.Store) {
			d := create(t)
			return d.open(t), d.open(t)
		})
	})
}

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
