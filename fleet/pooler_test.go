package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// Behind a pooler, a fleet works as it is; only where there are no transactions, Open says so.
func TestPooler(t *testing.T) {
	feedtest.Required(t, "FEEDHISTORY_PGBOUNCER")
	t.Parallel()
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			db := open(t, server.Pooled(t, server.Database(t), mode)) // it makes the tables, too
			site := newSite(t)
			models := map[string]*feedtest.Model{}
			for n := range 3 {
				m, url := site.model("/feed-"+string(rune('a'+n)), uint64(n))
				for range 60 {
					m.Step()
				}
				models[url] = m
				subscribe(t, db, url)
			}
			start(t, newWorker(t, db))
			start(t, newWorker(t, db))
			eventually(t, db, func(s *fleet.Status) bool { return s.Verdicts["whole"] == int64(len(models)) && s.Running == 0 })
			for url, m := range models {
				require.Equal(t, m.Published(), held(t, db.Store, url), url)
			}
		})
	}
	_, err := fleet.Open(t.Context(), server.Pooled(t, server.Database(t), "statement"))
	require.ErrorContains(t, err, "pool_mode must be session or transaction")
}
