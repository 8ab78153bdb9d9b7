package fleet_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many feeds there are, a worker's statements use indexes, even if
// nothing has been analyzed since the tables were empty.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	host := func(i int) string { return fmt.Sprintf("host-%d.example", i) }
	url := func(i, j int) string { return fmt.Sprintf("http://host-%d.example/%d", i, j) }
	plans := func(n int) map[string]string {
		plans, err := db.Plans(t.Context(), n, host, url)
		require.NoError(t, err)
		return plans
	}
	sql(t, db, `ALTER TABLE fleet_feeds SET (autovacuum_enabled = false)`)
	sql(t, db, `ALTER TABLE fleet_hosts SET (autovacuum_enabled = false)`)
	sql(t, db, `ALTER TABLE feedhistory.feeds SET (autovacuum_enabled = false)`)
	sql(t, db, `ALTER TABLE feedhistory.polls SET (autovacuum_enabled = false)`)
	sql(t, db, `ANALYZE`)
	sql(t, db, `INSERT INTO fleet_hosts (host, due) SELECT format('host-%s.example', i), now() FROM generate_series(0, 4999) i`)
	sql(t, db, `INSERT INTO fleet_feeds (url, host, due)
		SELECT format('http://host-%s.example/%s', i, j), format('host-%s.example', i), now() FROM generate_series(0, 4999) i, generate_series(0, 9) j`)
	sql(t, db, `INSERT INTO feedhistory.feeds (url, title, kind, verdict, entries, deleted, documents, error, state)
		SELECT url, '', '', '', 0, 0, 0, '', '{}' FROM fleet_feeds`)
	sql(t, db, `INSERT INTO feedhistory.polls (feed, version, polls, polled, next, gone) SELECT key, 1, 1, '', '', false FROM feedhistory.feeds`)
	for name, plan := range plans(5) {
		t.Logf("%s\n%s", name, plan)
		require.NotContains(t, plan, "Seq Scan", name)
	}
}
