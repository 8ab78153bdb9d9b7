package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/fleet"
)

// When the tables are there, opening a fleet, its status, subscribing and a worker that
// starts and polls take no lock above ROW EXCLUSIVE: they do not wait for one of SHARE UPDATE EXCLUSIVE on every table, such as
// VACUUM takes, which conflicts with all of those.
func TestLocks(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	subscribe(t, open(t, dsn), "http://host.example/feed")
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	var tables []string
	rows, err := tx.Query(t.Context(), `SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables`)
	require.NoError(t, err)
	tables, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, tables, "public.fleet_hosts")
	require.Contains(t, tables, "feedhistory.feeds")
	for _, table := range tables {
		_, err := tx.Exec(t.Context(), "LOCK TABLE "+table+" IN SHARE UPDATE EXCLUSIVE MODE")
		require.NoError(t, err)
	}
	limited := dsn + "&lock_timeout=60000"
	db := open(t, limited)
	require.EqualValues(t, 1, status(t, db).Feeds)
	site := newSite(t)
	site.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, crowdFeed, "") })
	added, err := db.Subscribe(t.Context(), []string{site.URL + "/feed"})
	require.NoError(t, err)
	require.Equal(t, 1, added)
	stop := start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.Verdicts["window"] == 1 || s.Verdicts["whole"] == 1 })
	stop()
	require.NoError(t, tx.Rollback(t.Context()))
}

// A role that may only read can see the status.
func TestReadOnlyRole(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	subscribe(t, db, "http://host.example/feed")
	// A role is the server's, so an earlier run has left it.
	sql(t, db, `DROP ROLE IF EXISTS watcher; CREATE ROLE watcher; GRANT pg_read_all_data TO watcher`)
	reader := open(t, dsn+"&role=watcher")
	require.EqualValues(t, 1, status(t, reader).Feeds)
	_, err := reader.Subscribe(t.Context(), []string{"http://other.example/feed"})
	require.ErrorContains(t, err, "permission denied")
}

// A fleet that an earlier version has made gets its version.
func TestSchemaVersion(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	subscribe(t, db, "http://host.example/feed")
	sql(t, db, `DROP TABLE fleet_schema`)
	require.EqualValues(t, 1, status(t, open(t, dsn)).Feeds)
	sql(t, db, `UPDATE fleet_schema SET version = 99`)
	_, err := fleet.Open(t.Context(), dsn)
	require.ErrorContains(t, err, "the database has version 99 of the schema, and this program knows 2")
}

// While the records of a host wait for the database, the next host is polled.
func TestPollWhileWriting(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	var first sync.Once
	second := make(chan struct{})
	for range 2 {
		site := newSite(t)
		site.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			locked := false
			first.Do(func() {
				_, err := tx.Exec(context.Background(), `SELECT FROM fleet_hosts WHERE host = $1 FOR UPDATE`, feedhistory.HostOf(site.URL))
				locked = assert.NoError(t, err)
			})
			if !locked {
				close(second)
			}
			fmt.Fprintf(w, crowdFeed, "")
		})
		subscribe(t, db, site.URL+"/feed")
	}
	worker := newWorker(t, db)
	worker.Hosts = 1
	stop := start(t, worker)
	select {
	case <-second:
	case <-time.After(patience):
		require.Fail(t, "the second host waits for the first one's records")
	}
	require.NoError(t, tx.Rollback(t.Context()))
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Running == 0 })
	stop()
}
