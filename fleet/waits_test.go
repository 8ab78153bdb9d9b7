package fleet_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
)

// A host's wait outlives the worker it was told to, whether that is killed while it waits
// itself, or before it can store the feed's state.
func TestWaitKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asks  string
		tries int
	}{
		"waiting":             {"25", 2},
		"state still unsaved": {"3600", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := newDatabase(t)
			db := open(t, dsn)
			busy, calm := newSite(t), newSite(t)
			asked, answer := make(chan bool, 10), make(chan bool)
			busy.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
				asked <- true
				<-answer
				askToWait(w, test.asks)
			})
			calm.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, crowdFeed, "") })
			subscribe(t, db, busy.URL+"/feed")
			p := startProcess(t, processConfig{DSN: dsn, Every: time.Hour, Slice: time.Minute, Pause: -1, Tries: test.tries})
			<-asked
			unlock := lockTable(t, dsn, "feedhistory.feeds")
			close(answer)
			require.Eventually(t, func() bool { return holds(t, db, `SELECT FROM fleet_hosts WHERE wait > now()`) }, patience, 5*time.Millisecond)
			p.kill()
			unlock()

			sql(t, db, `UPDATE fleet_hosts SET until = now(), due = now()`) // the holds of the killed worker have expired
			sql(t, db, `UPDATE fleet_feeds SET due = now()`)
			require.Zero(t, status(t, db).Due)
			subscribe(t, db, calm.URL+"/feed")
			w := newWorker(t, db)
			w.Every = 100 * time.Millisecond
			start(t, w)
			require.Eventually(t, func() bool { return calm.asked.Load() >= 2 }, patience, 10*time.Millisecond)
			require.EqualValues(t, 1, busy.asked.Load())
			sql(t, db, `UPDATE fleet_hosts SET wait = now()`)
			require.Eventually(t, func() bool { return busy.asked.Load() > 1 }, patience, 10*time.Millisecond)
		})
	}
}

// askToWait answers with a Retry-After.
func askToWait(w http.ResponseWriter, seconds string) {
	w.Header().Set("Retry-After", seconds)
	http.Error(w, "not now", http.StatusServiceUnavailable)
}

// lockTable prevents changes of a table until the returned function is called.
func lockTable(t *testing.T, dsn, table string) (unlock func()) {
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE "+table+" IN SHARE ROW EXCLUSIVE MODE")
	require.NoError(t, err)
	unlock = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	t.Cleanup(unlock)
	return unlock
}

// holds reports whether a query has a row.
func holds(t *testing.T, db *fleet.Database, query string) bool {
	return db.Exec(t.Context(), `DO $$ BEGIN IF NOT EXISTS (`+query+`) THEN RAISE 'not yet'; END IF; END $$`) == nil
}

// A wait is the host's: its other feeds stay as they are, and so does its next address, to
// which a feed of another host redirects.
func TestWaitOfHost(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	busy, redirects := newSite(t), newSite(t)
	busy.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { askToWait(w, "3600") })
	redirects.mux.Handle("/", http.RedirectHandler(busy.URL+"/away", http.StatusFound))
	subscribe(t, db, busy.URL+"/1", busy.URL+"/2", busy.URL+"/3")
	stop := start(t, newWorker(t, db))
	s := eventually(t, db, func(s *fleet.Status) bool { return s.Failing == 1 && s.Running == 0 })
	require.EqualValues(t, 2, s.New)
	require.Zero(t, s.Due+s.ByHost[0].Due)
	require.Greater(t, time.Until(s.ByHost[0].Next), time.Minute)
	stop()

	subscribe(t, db, redirects.URL+"/feed")
	stop = start(t, newWorker(t, db)) // another one: it has the wait from the database
	s = eventually(t, db, func(s *fleet.Status) bool { return s.Failing == 2 && s.Running == 0 })
	stop()
	require.EqualValues(t, 1, redirects.asked.Load())
	require.EqualValues(t, 1, busy.asked.Load())
	require.EqualValues(t, 2, s.Hosts)

	sql(t, db, `INSERT INTO fleet_hosts (host, wait) VALUES ('waits.example', now() + interval '1 hour'), ('waited.example', now())`)
	require.EqualValues(t, 2, status(t, db).Hosts, "a host without feeds does not count")
	require.NoError(t, db.Sweep(t.Context(), time.Second))
	require.True(t, holds(t, db, `SELECT FROM fleet_hosts WHERE host = 'waits.example'`))
	require.False(t, holds(t, db, `SELECT FROM fleet_hosts WHERE host = 'waited.example'`))
	require.True(t, holds(t, db, `SELECT FROM fleet_hosts WHERE wait > now() AND due >= wait`), "the sweep keeps a host's wait")
}

// A wait that cannot be stored at once is stored before the answer is used.
func TestWaitStoredLate(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	db := open(t, dsn)
	busy := newSite(t)
	locked := make(chan func(), 1)
	busy.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		locked <- lockTable(t, dsn, "fleet_hosts")
		askToWait(w, "3600")
	})
	subscribe(t, db, busy.URL+"/feed")
	start(t, newWorker(t, db))
	waiting := `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO fleet_hosts%'`
	require.Eventually(t, func() bool { return holds(t, db, waiting) }, patience, 5*time.Millisecond)
	f, err := db.Store.Feed(t.Context(), busy.URL+"/feed")
	if err == nil { // or else it has not been stored at all
		require.True(t, f.Wait.IsZero())
	}
	(<-locked)()
	eventually(t, db, func(s *fleet.Status) bool { return s.Failing == 1 && s.Running == 0 })
	require.EqualValues(t, 1, busy.asked.Load())
}

// A moodySite asks now and then to be left alone, and records the requests that come too
// early.
type moodySite struct {
	mu    sync.Mutex
	share float64 // of the requests
	told  int     // the number of waits, which are numbered from one
	until time.Time
	early map[int]earlyRequest // by the number of the wait, the latest request that came too early
}

// An earlyRequest is a request during a wait.
type earlyRequest struct {
	left time.Duration // how much too early it came
	sent int64         // when it was sent, in nanoseconds
}

// waitNumber is the header field with the number of a wait.
const waitNumber = "X-Wait-Number"

// sentAt is the header field with the time at which a request was sent.
const sentAt = "X-Sent-At"

// A stamp is a transport that notes when requests are sent.
type stamp struct{ http.RoundTripper }

func (s stamp) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(sentAt, strconv.FormatInt(time.Now().UnixNano(), 10))
	return s.RoundTripper.RoundTrip(r)
}

// tolerance is for the difference between the clocks of Go and of PostgreSQL.
const tolerance = 100 * time.Millisecond

// isAway answers a request if the site is to be left alone.
func (m *moodySite) isAway(w http.ResponseWriter, r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := time.Until(m.until)
	switch {
	case left > tolerance:
		sent, _ := strconv.ParseInt(r.Header.Get(sentAt), 10, 64)
		if sent >= m.early[m.told].sent {
			m.early[m.told] = earlyRequest{left, sent}
		}
	case left > 0 || rand.Float64() >= m.share:
		return false
	default:
		m.told++
		left = time.Duration(1+rand.IntN(6)) * time.Second
		m.until = time.Now().Add(left)
	}
	w.Header().Set(waitNumber, strconv.Itoa(m.told))
	askToWait(w, strconv.Itoa(int(left.Seconds()+0.999)))
	return true
}

func (m *moodySite) set(share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.share = share
	if m.early == nil {
		m.early = map[int]earlyRequest{}
	}
}

// A noteOfWaits is a transport that records the waits a worker has got, which are stored
// by then.
type noteOfWaits struct {
	http.RoundTripper
	file *os.File
}

func (n noteOfWaits) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err == nil && resp.Header.Get(waitNumber) != "" {
		_, err = fmt.Fprintln(n.file, r.URL.Host, resp.Header.Get(waitNumber), time.Now().UnixNano())
	}
	return resp, err
}

// checkWaits checks that no worker has broken a wait another one had got: none has sent a
// request once it was stored. One that was on its way cannot be recalled, and a wait whose
// worker was killed before the answer came is nobody's.
func (w *world) checkWaits(t *testing.T, file string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	got := map[string]int64{} // when it was stored
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var host, number string
		var at int64
		if _, err := fmt.Sscan(lines.Text(), &host, &number, &at); err == nil { // a killed worker may have written half a line
			got[host+" "+number] = at
		}
	}
	told, lost := 0, 0
	for _, s := range w.sites {
		told += s.mood.told
		for n, early := range s.mood.early {
			lost++
			require.NotZero(t, early.sent, "a request without a stamp")
			if at, isStored := got[fmt.Sprint(s.URL[len("http://"):], " ", n)]; isStored {
				require.Less(t, early.sent, at, "%s was asked %v too early", s.URL, early.left)
			}
		}
	}
	require.NotEmpty(t, got)
	t.Logf("%d times a host asked to be left alone, %d of them stored; none of these was broken, %d of the others", told, len(got), lost)
}
