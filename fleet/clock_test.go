package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const year = 365 * 24 * time.Hour

// A worker whose context ends before it has begun stops without an error.
func TestEndedBeforeItBegan(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, newWorker(t, open(t, newDatabase(t))).Run(ctx))
}

// However far a worker's clock is off, nothing it stores depends on it: each feed is due
// when it should be, and is polled as often.
func TestSkewedClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour, "a year ahead": year} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := newDatabase(t)
			right, wrong := open(t, dsn), open(t, dsn)
			var skew atomic.Int64
			skew.Store(int64(ahead))
			wrong.Skew(&skew, 2*year)
			s := newSite(t)
			s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, crowdFeed, "") })
			s.mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { askToWait(w, "1800") })
			busy := newSite(t)
			busy.mux.Handle("/", s.mux)
			var feeds []string
			for i := range 4 {
				feeds = append(feeds, fmt.Sprintf("%s/%d", s.URL, i))
			}
			subscribe(t, right, append(feeds, busy.URL+"/busy")...)
			w := newWorker(t, wrong)
			stop := start(t, w)
			require.Eventually(t, func() bool { return s.asked.Load() == 4 && busy.asked.Load() == 1 }, patience, 10*time.Millisecond)
			stop()
			require.InDelta(t, ahead.Seconds(), metric(t, w, "feedhistory_clock_ahead_seconds"), 10)
			between := func(column, from, to string) string {
				return fmt.Sprintf(`SELECT FROM fleet_feeds HAVING count(*) FILTER (WHERE %s BETWEEN now() + interval '%s' AND now() + interval '%s') = 5`, column, from, to)
			}
			require.True(t, holds(t, right, between("due", "25 min", "70 min")))
			for _, url := range feeds {
				f, err := right.Store.Feed(t.Context(), url)
				require.NoError(t, err)
				for what, at := range map[string]time.Time{"polled": f.Polled, "changed": f.Changed, "next": f.Next.Add(-time.Hour)} {
					require.WithinDuration(t, time.Now(), at, 10*time.Minute, what)
				}
			}
			f, err := right.Store.Feed(t.Context(), busy.URL+"/busy")
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(30*time.Minute), f.Wait, 5*time.Minute)

			sql(t, right, `UPDATE fleet_feeds SET due = now() WHERE url LIKE '%/0'`)
			sql(t, right, `UPDATE fleet_hosts SET due = now()`)
			start(t, newWorker(t, right))
			start(t, newWorker(t, wrong))
			require.Eventually(t, func() bool { return s.asked.Load() == 5 }, patience, 10*time.Millisecond)
			require.EqualValues(t, 1, busy.asked.Load())
			require.Eventually(t, func() bool { return status(t, right).Due == 0 }, patience, 10*time.Millisecond)
			require.EqualValues(t, 5, s.asked.Load())
		})
	}
}

// A worker whose clock is off by more than the bound polls nothing, whether it is at the
// start or later.
func TestClockRefused(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	var skew atomic.Int64
	db.Skew(&skew, 0)
	s := newSite(t)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, crowdFeed, "") })
	subscribe(t, db, s.URL+"/1")

	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		skew.Store(int64(ahead))
		require.ErrorContains(t, newWorker(t, db).Run(t.Context()), "database's: set it right")
	}
	require.Zero(t, s.asked.Load())

	skew.Store(int64(20 * time.Second))
	w, ended := newWorker(t, db), make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	require.Eventually(t, func() bool { return s.asked.Load() == 1 }, patience, 10*time.Millisecond)
	require.InDelta(t, 20, metric(t, w, "feedhistory_clock_ahead_seconds"), 5)

	skew.Store(int64(-time.Hour))
	subscribe(t, db, s.URL+"/2")
	require.ErrorContains(t, <-ended, "behind the database's")
	require.EqualValues(t, 1, s.asked.Load())
}
