package sqlstore_test

import (
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A mirror reads as few blocks of the table of entries for a later feed as for
// the first, whatever plans PostgreSQL has kept since the tables were empty: in
// a new database, in one whose empty tables have been analyzed, and in restored
// ones.
func TestLaterFeeds(t *testing.T) {
	feedtest.Long(t)
	for name, prepare := range map[string]func(t *testing.T, d database) database{
		"new": func(_ *testing.T, d database) database { return d },
		"analyzed": func(t *testing.T, d database) database {
			_, err := d.connect(t).Exec("VACUUM ANALYZE")
			require.NoError(t, err)
			return d
		},
		"restored": func(t *testing.T, d database) database { return restored(t, d, "--jobs=1") },
		"restored by two": func(t *testing.T, d database) database {
			return restored(t, d, "--jobs=2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if (name == "analyzed" || name == "restored") && !feedtest.LongRun() {
				t.Skip("in a long run only: FEEDHISTORY_LONG=1")
			}
			d := newPostgreSQL(t)
			d.open(t)
			testLaterFeeds(t, prepare(t, d))
		})
	}
}

func testLaterFeeds(t *testing.T, d database) {
	archives := 10
	if feedtest.LongRun() {
		archives = 40
	}
	observer := d.connect(t)
	sessions := func() (n int) {
		require.NoError(t, observer.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'").Scan(&n))
		return n
	}
	before := sessions()
	site := feedtest.Server(t, archiveFeed(archives))
	db, err := sql.Open(d.driver, d.dsn)
	require.NoError(t, err)
	store, err := sqlstore.Open(t.Context(), db, d.dialect)
	require.NoError(t, err)
	m := newMirror(t, store)
	for n := range 3 {
		_, err := m.Update(t.Context(), fmt.Sprintf("%s/%d?%d", site.URL, archives, n))
		require.NoError(t, err)
	}
	m.Client.CloseIdle()
	require.NoError(t, db.Close()) // its sessions report what they have read
	var blocks, scanned int64
	require.Eventually(t, func() bool { return sessions() <= before }, patience, 10*time.Millisecond)
	require.NoError(t, observer.QueryRow(`SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read),
		(SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname LIKE 'entries%')
		FROM pg_statio_user_tables WHERE relname LIKE 'entries%'`).Scan(&blocks, &scanned))
	entries := int64(3 * archives * 50)
	require.Less(t, blocks/entries, int64(100), "blocks that were read for an entry")
	require.Zero(t, scanned, "rows that were read as no index was used")
}

// restored returns a copy of a database made with PostgreSQL's own tools.
func restored(t *testing.T, d database, jobs string) database {
	file, copied := filepath.Join(t.TempDir(), "feeds.dump"), emptyPostgreSQL(t)
	for _, command := range []*exec.Cmd{
		exec.Command("pg_dump", "--format=custom", "--file="+file, d.dsn),
		exec.Command("pg_restore", jobs, "--dbname="+copied.dsn, file),
	} {
		if command.Err != nil {
			t.Skip(command.Err)
		}
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	return copied
}
