package datareplication

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// A memory is an Output that can fail.
type memory struct {
	*publish.MemoryOutput
	feedtest.Faults
	puts  int
	bytes int64
}

func newMemory() *memory { return &memory{MemoryOutput: &publish.MemoryOutput{}} }

// Put implements publish.Output.
func (m *memory) Put(ctx context.Context, name string, data []byte) error {
	return m.Change("put "+name, func() error {
		m.puts++
		m.bytes += int64(len(data))
		return m.MemoryOutput.Put(ctx, name, data)
	})
}

// Remove implements publish.Output.
func (m *memory) Remove(ctx context.Context, name string) error {
	return m.Change("remove "+name, func() error { return m.MemoryOutput.Remove(ctx, name) })
}

// clone returns what a crash leaves: the files.
func (m *memory) clone() *memory { return &memory{MemoryOutput: m.Clone()} }

const base = "http://example.org/feed/"

// A wire carries requests to a handler, without sockets.
type wire struct {
	handler http.Handler
	before  func(*http.Request)                      // called before each request, unless nil
	tear    func(*http.Request, io.Reader) io.Reader // changes answers, unless nil
	mu      sync.Mutex
	log     []string // the requests: "HEAD /feed/"
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.log = append(w.log, r.Method+" "+r.URL.Path)
	w.mu.Unlock()
	if w.before != nil {
		w.before(r)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	resp := rec.Result()
	if w.tear != nil {
		resp.Body = io.NopCloser(w.tear(r, resp.Body))
		resp.ContentLength = -1 // net/http does not report a connection that closes early
	}
	return resp, nil
}

func (w *wire) client() *Harvester {
	return &Harvester{URL: base, HTTP: &feedhistory.Client{
		Transport: w, Retry: feedhistory.Retry{Tries: 1},
	}}
}

// serve returns a wire to the content of an output.
func serve(out fs.FS) *wire {
	return &wire{handler: http.StripPrefix("/feed/", &Handler{FS: out, Base: base})}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A clock advances by a second each time it is read.
type clock struct{ time.Time }

func (c *clock) now() time.Time {
	c.Time = c.Add(time.Second)
	return c.Time
}

// newProducer returns a producer whose pages have room for the given number of
// entities.
func newProducer(out publish.Output) *Producer {
	c := &clock{noon}
	return &Producer{Output: out, PageSize: 600, Now: c.now}
}

// entities returns n entities, numbered from a first one.
func entities(first, n int) (all []Entity) {
	for i := first; i < first+n; i++ {
		all = append(all, Entity{ContentID: fmt.Sprint("e", i), Type: "text/plain", Body: fmt.Appendf(nil, "body %d", i)})
	}
	return all
}

// collect returns the ContentIDs that a harvest yields, and its error.
func collect(h *Harvest) (ids []string, err error) {
	for e, err := range h.Entities() {
		if err != nil {
			return ids, err
		}
		ids = append(ids, e.ContentID)
	}
	return ids, nil
}

// ids returns the ContentIDs of entities.
func ids(first, n int) (all []string) {
	for _, e := range entities(first, n) {
		all = append(all, e.ContentID)
	}
	return all
}

func harvest(t testing.TB, w *wire, from Mark) ([]string, Mark) {
	t.Helper()
	h := w.client().Harvest(t.Context(), from)
	got, err := collect(h)
	require.NoError(t, err)
	return got, h.Mark()
}
