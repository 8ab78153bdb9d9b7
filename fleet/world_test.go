package fleet_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

// server is the tests' PostgreSQL server.
var server *pgtest.Server

func TestMain(m *testing.M) {
	if config := os.Getenv(processEnv); config != "" {
		if err := runProcess(config); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(feedtest.Run(func() int { return pgtest.Main(m, &server) }))
}

// newDatabase returns the URL of a new database with a fleet's tables: a copy of the first.
func newDatabase(t testing.TB) string {
	template.Lock()
	defer template.Unlock()
	if template.url == "" {
		url := server.Database(t)
		db, err := fleet.Open(t.Context(), url)
		require.NoError(t, err)
		db.Close()
		template.url = url
	}
	return server.Copy(t, template.url)
}

var template struct {
	sync.Mutex
	url string
}

// open opens a database.
func open(t testing.TB, dsn string) *fleet.Database {
	t.Helper()
	db, err := fleet.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

// newWorker returns a worker with short times.
func newWorker(t testing.TB, db *fleet.Database) *fleet.Worker {
	w := &fleet.Worker{
		Database: db, Client: newClient(t), Pause: -1, Slice: 10 * time.Second, Every: time.Hour, Hosts: 20,
	}
	w.Random()
	return w
}

func newClient(t testing.TB) *feedhistory.Client {
	c := &feedhistory.Client{
		AllowPrivate: true, PerHost: 1,
		Tries:  1,
		Budget: feedhistory.Budget{Documents: 5},
	}
	t.Cleanup(c.CloseIdle)
	return c
}

// subscribe subscribes to new feeds.
func subscribe(t testing.TB, db *fleet.Database, urls ...string) {
	t.Helper()
	added, err := db.Subscribe(t.Context(), urls)
	require.NoError(t, err)
	require.Equal(t, len(urls), added)
}

// sql runs a statement.
func sql(t testing.TB, db *fleet.Database, statement string) {
	t.Helper()
	require.NoError(t, db.Exec(t.Context(), statement))
}

// start runs a worker until the test ends, or the returned function is called.
func start(t testing.TB, w *fleet.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// A site is a host with feeds. It measures how many requests it gets at once.
type site struct {
	URL   string
	mux   *http.ServeMux
	mood  moodySite
	now   atomic.Int64
	most  atomic.Int64
	asked atomic.Int64

	mu sync.Mutex
	at []time.Time
}

// addresses are the loopback addresses that are in use.
var addresses atomic.Int32

// newSite starts a host at a new loopback address.
func newSite(t testing.TB) *site {
	t.Helper()
	n := addresses.Add(1)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.%d.%d:0", 1+n/200, 1+n%200))
	require.NoError(t, err)
	s := &site{mux: http.NewServeMux()}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	if !s.mood.isAway(w, r) {
		s.mux.ServeHTTP(w, r)
	}
}

// times returns when the site got requests.
func (s *site) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// gate adds a feed that reports each request, and answers when it is allowed
// to.
func (s *site) gate(path string) (asked <-chan struct{}, answer chan<- struct{}) {
	began, may := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(began) })
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		once()
		select {
		case <-may:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `<rss version="2.0"><channel><title>Gate</title></channel></rss>`)
	})
	return began, may
}

// model adds a model publisher to the site, and also returns the URL of its
// feed.
func (s *site) model(path string, seed uint64) (*feedtest.Model, string) {
	m := feedtest.NewModel(path, seed)
	s.mux.Handle(path, m)
	s.mux.Handle(path+"/", m)
	return m, s.URL + path
}

// held returns what a store has of a feed: the text of each entry by its id.
func held(t testing.TB, store mirror.Store, url string) map[string]string {
	t.Helper()
	entries, err := tryHeld(t, store, url)
	require.NoError(t, err)
	return entries
}

// tryHeld is held for a database that may just have been killed: it returns the error of
// the store.
func tryHeld(t testing.TB, store mirror.Store, url string) (map[string]string, error) {
	t.Helper()
	entries := map[string]string{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		if err != nil {
			return nil, err
		}
		e, err := r.Entry()
		require.NoError(t, err)
		require.NotContains(t, entries, e.ID)
		entries[e.ID] = e.Title().Plain()
	}
	return entries, nil
}

// status returns the full status of a database.
func status(t testing.TB, db *fleet.Database) *fleet.Status {
	t.Helper()
	s, err := db.Status(t.Context(), fleet.StatusQuery{Hosts: 1000, Letters: 1000, Errors: 1000})
	require.NoError(t, err)
	return s
}

// metric returns the value of a worker's metric.
func metric(t testing.TB, w *fleet.Worker, name string) float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	for line := range strings.Lines(answer.Body.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return n
		}
	}
	require.Failf(t, "there is no such metric", "%s in\n%s", name, answer.Body)
	return 0
}
