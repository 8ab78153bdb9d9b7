package fleet_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// patience is the maximum time to wait: on a busy machine a stuck job is taken
// over after some 25 s.
const patience = 5 * time.Minute

// eventually waits until a status has the wanted value.
func eventually(t testing.TB, db *fleet.Database, wanted func(s *fleet.Status) bool) *fleet.Status {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := status(t, db)
		if wanted(s) {
			return s
		}
		if time.Now().After(end) {
			require.Failf(t, "it has not come to that", "%+v", s)
		}
	}
}

// Long histories are read slice by slice, and every feed ends up equal to what
// is published, with one request at a time to each host.
func TestFleet(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	models := map[string]*feedtest.Model{}
	var sites []*site
	var urls []string
	for i := range 8 {
		s := newSite(t)
		sites = append(sites, s)
		for n := range 3 {
			m, url := s.model(fmt.Sprintf("/feed-%d", n), uint64(3*i+n))
			for range 60 {
				m.Step()
			}
			models[url] = m
			urls = append(urls, url)
		}
	}
	subscribe(t, db, urls...)
	start(t, newWorker(t, db))
	start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.Verdicts["whole"] == int64(len(urls)) && s.Running == 0 })
	for url, m := range models {
		require.Equal(t, m.Published(), held(t, db.Store, url), url)
	}
	for _, s := range sites {
		require.EqualValues(t, 1, s.most.Load(), s.URL)
	}
}

// There is a pause between two polls of a host, within a job and from one job
// to the next.
func TestPause(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	var urls []string
	for i := range 6 {
		_, url := s.model(fmt.Sprintf("/feed-%d", i), uint64(i))
		urls = append(urls, url)
	}
	w := newWorker(t, db)
	w.Pause = time.Second
	w.Slice = 2500 * time.Millisecond // two jobs, or three
	subscribe(t, db, urls...)
	start(t, w)
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Running == 0 })
	times := s.times()
	require.Len(t, times, len(urls))
	for i := range times[1:] {
		require.GreaterOrEqual(t, times[i+1].Sub(times[i]), w.Pause-10*time.Millisecond)
	}
}

// What a feed asks for is respected: Retry-After, 410, and its own interval.
func TestNext(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	later, gone, slow := newSite(t), newSite(t), newSite(t)
	later.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "36000")
		http.Error(w, "not now", http.StatusServiceUnavailable)
	})
	gone.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) })
	slow.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>Slow</title><ttl>1440</ttl></channel></rss>`)
	})
	subscribe(t, db, later.URL+"/feed", gone.URL+"/feed", slow.URL+"/feed")
	begun := time.Now()
	start(t, newWorker(t, db))
	st := eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Running == 0 })
	require.EqualValues(t, 1, st.Gone)
	require.EqualValues(t, 1, st.Failing)
	require.Equal(t, later.URL+"/feed", st.Errors[0].URL)
	next := map[string]time.Duration{}
	for _, h := range st.ByHost {
		if !h.Next.IsZero() {
			next["http://"+h.Host] = h.Next.Sub(begun).Round(time.Hour)
		}
	}
	require.Equal(t, map[string]time.Duration{later.URL: 10 * time.Hour, slow.URL: 24 * time.Hour}, next)
	for _, s := range []*site{later, gone, slow} {
		require.EqualValues(t, 1, s.asked.Load())
	}

	added, err := db.Subscribe(t.Context(), []string{gone.URL + "/feed"}) // it may have come back
	require.NoError(t, err)
	require.Zero(t, added)
	eventually(t, db, func(st *fleet.Status) bool { return gone.asked.Load() == 2 && st.Gone == 1 })
}

// A feed that has moved belongs to the new host from then on.
func TestMoved(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	from, to := newSite(t), newSite(t)
	m, url := to.model("/feed", 1)
	m.Step()
	from.mux.Handle("/", http.RedirectHandler(url, http.StatusMovedPermanently))
	subscribe(t, db, from.URL+"/old")
	w := newWorker(t, db)
	w.Every = time.Second
	start(t, w)
	eventually(t, db, func(*fleet.Status) bool { return to.asked.Load() > 5 })
	require.EqualValues(t, 2, from.asked.Load(), "at first, and once more in case the redirect was a mistake")
	st := status(t, db)
	require.Len(t, st.ByHost, 1)
	require.Contains(t, to.URL, st.ByHost[0].Host)
	require.Equal(t, m.Published(), held(t, db.Store, from.URL+"/old"))
}

// What is published during the polls is mirrored by later polls.
func TestCurrent(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	m, url := s.model("/feed", 7)
	subscribe(t, db, url)
	w := newWorker(t, db)
	w.Every = time.Second
	w.Client.Budget.Documents = 0
	start(t, w)
	for range 3 {
		for range 10 {
			m.Step()
		}
		eventually(t, db, func(*fleet.Status) bool { return fmt.Sprint(m.Published()) == fmt.Sprint(held(t, db.Store, url)) })
	}
}

// A worker that must end lets polls finish for a while, and hands back the
// rest, so that another continues at once.
func TestStop(t *testing.T) {
	db := open(t, newDatabase(t))
	s := newSite(t)
	var asked atomic.Int32
	s.mux.HandleFunc("/hangs", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `<rss version="2.0"><channel><title>Answers</title></channel></rss>`)
	})
	_, next := s.model("/next", 1)
	subscribe(t, db, s.URL+"/hangs")
	subscribe(t, db, next) // it is due later
	w := newWorker(t, db)
	w.Grace = 100 * time.Millisecond
	w.Slice = time.Hour
	before := goleak.IgnoreCurrent()
	stop := start(t, w)
	eventually(t, db, func(*fleet.Status) bool { return asked.Load() == 1 })
	stop()
	w.Client.CloseIdle()
	for end := time.Now().Add(patience); goleak.Find(before) != nil && time.Now().Before(end); {
	}
	goleak.VerifyNone(t, before)
	st := status(t, db)
	require.EqualValues(t, 2, st.Due)
	require.Zero(t, st.Running)
	require.Zero(t, st.Failing)
	require.EqualValues(t, 1, s.asked.Load())
	start(t, newWorker(t, db))
	eventually(t, db, func(s *fleet.Status) bool { return s.New == 0 && s.Verdicts["window"] == 1 && s.Due == 0 })
}

// A worker reports its state, and runs only once.
func TestHandler(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	m, url := s.model("/feed", 1)
	m.Step()
	w := newWorker(t, db)
	health := func() (int, string) {
		answer := httptest.NewRecorder()
		w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return answer.Code, answer.Body.String()
	}
	code, said := health()
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "the worker is not running\n", said)
	subscribe(t, db, url)
	stop := start(t, w)
	eventually(t, db, func(s *fleet.Status) bool {
		return s.New == 0 && s.Running == 0 && metric(t, w, "feedhistory_hosts_running") == 0
	})
	code, said = health()
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", said)
	for name, want := range map[string]float64{
		`feedhistory_polls_total{outcome="changed"}`: 1,
		`feedhistory_polls_total{outcome="failed"}`:  0,
		`feedhistory_entries_total{change="added"}`:  float64(len(m.Published())),
		`feedhistory_documents_total`:                1,
		`feedhistory_late_seconds_count`:             1,
		`feedhistory_poll_seconds_count`:             1,
		`feedhistory_errors_total`:                   0,
		`feedhistory_hosts_running`:                  0,
		`feedhistory_dead_letters`:                   0,
		`feedhistory_behind_seconds`:                 0,
	} {
		require.Equal(t, want, metric(t, w, name), name)
	}
	stop()
	code, _ = health()
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Error(t, w.Run(t.Context()))
}
