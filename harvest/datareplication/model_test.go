package datareplication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A machine drives a producer and two consumers.
type machine struct {
	t      *rapid.T
	out    *memory
	p      *Producer
	time   time.Time
	count  int
	depth  int // how deeply events are nested
	events int // nested events; their number is limited so that a reader can catch up

	log   []string          // the ContentIDs that were published
	truth map[string]string // the present resources

	each   *consumer // gets each entity once
	copies *consumer // keeps a copy of the resources

	created time.Time // the time of the last snapshot
	fed     bool      // whether there was an entity by then
}

// A consumer is a reader of the feed, with what it stores.
type consumer struct {
	mark Mark
	log  []string
	copy map[string]string
	busy bool // one harvest at a time
}

// TestModel lets operations on the disk and requests fail, and appends, cleans
// up and makes snapshots meanwhile. A consumer that keeps up gets each entity
// once and in order. One that is overtaken by a clean-up begins again with a
// snapshot, and ends with the present resources.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			t: t, out: newMemory(), time: noon, truth: map[string]string{},
			each: new(consumer), copies: &consumer{copy: map[string]string{}},
		}
		m.start()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.step()
		}
		m.rest()
	})
}

// start starts a new producer, as after a crash.
func (m *machine) start() {
	m.out = m.out.clone()
	m.p = &Producer{Output: m.out, PageSize: 700, Now: func() time.Time { return m.time }}
}

func (m *machine) step() {
	m.depth++
	defer func() { m.depth-- }()
	m.time = m.time.Add(time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 300, 1000, 5000, -2000}).Draw(m.t, "later")) * time.Millisecond)
	switch rapid.SampledFrom([]string{"append", "append", "append", "each", "copies", "clean", "snapshot"}).Draw(m.t, "step") {
	case "append":
		m.append()
	case "each":
		m.harvest(m.each)
	case "copies":
		m.harvest(m.copies)
	case "clean":
		m.clean()
	case "snapshot":
		m.snapshot()
	}
}

// between lets events happen within other events.
func (m *machine) between() {
	if m.events++; m.depth < 3 && m.events < 100 && rapid.IntRange(0, 3).Draw(m.t, "between") == 0 {
		m.step()
	}
}

// faulty makes an operation on the disk fail at random.
func (m *machine) faulty() {
	n := rapid.IntRange(0, 12).Draw(m.t, "fault")
	how := rapid.SampledFrom([]feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed}).Draw(m.t, "how")
	m.out.Fail = func(string) feedtest.Failure {
		if n--; n == 0 {
			return how
		}
		return feedtest.Works
	}
}

// append publishes entities, with several tries if necessary.
func (m *machine) append() {
	var all []Entity
	for range rapid.IntRange(1, 5).Draw(m.t, "entities") {
		m.count++
		e := Entity{ContentID: fmt.Sprint("e", m.count), Type: "text/plain", Operation: Put}
		key, text := fmt.Sprint("k", rapid.IntRange(1, 6).Draw(m.t, "key")), ""
		if m.truth[key] != "" && rapid.IntRange(0, 3).Draw(m.t, "delete") == 0 {
			e.Operation = Delete
			delete(m.truth, key)
		} else {
			text = fmt.Sprintf("%d\r\n--%s", m.count, strings.Repeat("x", rapid.IntRange(0, 300).Draw(m.t, "size")))
			m.truth[key] = text
		}
		e.Body = []byte(key + "=" + text)
		all = append(all, e)
		m.log = append(m.log, e.ContentID)
	}
	m.faulty()
	for m.p.Append(context.Background(), all...) != nil {
		m.start() // only what is on the disk is left
	}
	m.out.Fail = nil
}

// clean removes pages that the consumer that keeps up no longer needs. The
// other may need them, but there is a snapshot.
func (m *machine) clean() {
	created, err := m.p.LastSnapshot()
	require.NoError(m.t, err)
	before := m.each.mark.Time
	if created.Before(before) {
		before = created
	}
	if before.IsZero() {
		return
	}
	m.faulty()
	if m.p.CleanUp(context.Background(), before) != nil {
		m.start()
	}
	m.out.Fail = nil
}

// snapshot makes a snapshot, which may fail.
func (m *machine) snapshot() {
	before := m.out
	var resources iter.Seq2[Entity, error] = func(yield func(Entity, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(m.truth)) {
			text, ok := m.truth[key]
			if !ok {
				continue // deleted meanwhile
			}
			if !yield(Entity{Type: "text/plain", Body: []byte(key + "=" + text)}, nil) {
				return
			}
			m.between()
		}
	}
	end, err := m.p.Last()
	require.NoError(m.t, err)
	m.faulty()
	err = m.p.Snapshot(context.Background(), resources)
	if m.out.Fail = nil; err != nil && m.out == before {
		m.start()
	}
	if created, err := m.p.LastSnapshot(); err == nil && !created.Equal(m.created) {
		m.created, m.fed = created, !end.IsZero()
	}
}

// harvest reads the feed over a transport that may tear, until the consumer is
// killed, at random.
func (m *machine) harvest(c *consumer) {
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	w := &transport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(m.out).handler.ServeHTTP(w, r) })}
	quiet := m.depth == 0
	kill := -1
	if !quiet {
		w.before = func(r *http.Request) {
			if !strings.Contains(r.URL.Path, "snapshots/") { // those are read in parallel
				m.between()
			}
		}
		cut := rapid.IntRange(0, 2000).Draw(m.t, "cut")
		w.tear = func(_ *http.Request, r io.Reader) io.Reader { return io.LimitReader(r, int64(cut)) }
		kill = rapid.IntRange(1, 30).Draw(m.t, "kill")
	}
	client := w.client()
	created, err := m.p.LastSnapshot()
	require.NoError(m.t, err)
	if c.copy != nil && !created.IsZero() {
		client.Snapshot = base + "snapshot"
	}
	if c.copy != nil && c.mark.IsZero() {
		c.copy = map[string]string{}
	}
	h := client.Harvest(m.t.Context(), c.mark)
	for e, err := range h.Entities() {
		if err != nil {
			m.failed(c, err, quiet)
			return
		}
		c.take(m.t, e)
		c.mark, _ = h.Mark()
		if kill--; kill == 0 {
			return
		}
	}
	c.mark, _ = h.Mark()
}

// failed checks that a harvest ended for one of the possible reasons.
func (m *machine) failed(c *consumer, err error, quiet bool) {
	switch {
	case errors.Is(err, harvest.ErrReach) && c.copy != nil:
		c.mark = Mark{}
	case errors.Is(err, harvest.ErrCutShort) && !quiet:
	case gone(err) && errors.Is(err, harvest.ErrSnapshot) && !quiet && c.copy != nil:
	default:
		require.NoError(m.t, err, "%v", c.mark)
	}
}

// take applies an entity.
func (c *consumer) take(t *rapid.T, e *Entity) {
	if c.copy == nil {
		c.log = append(c.log, e.ContentID)
		return
	}
	key, text, ok := bytes.Cut(e.Body, []byte("="))
	require.True(t, ok)
	if e.Operation == Delete {
		delete(c.copy, string(key))
	} else {
		c.copy[string(key)] = string(text)
	}
}

// rest lets the consumers catch up, and compares.
func (m *machine) rest() {
	m.out.Fail, m.depth = nil, 0
	for range 3 {
		m.harvest(m.each)
		m.harvest(m.copies)
	}
	require.Equal(m.t, m.log, m.each.log)
	require.Equal(m.t, m.truth, m.copies.copy)
	if m.fed {
		crawl(m.t, m.out, m.created)
	}
}

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

// A transport carries requests to a handler, without sockets.
type transport struct {
	handler http.Handler
	before  func(*http.Request)                      // called before each request, unless nil
	tear    func(*http.Request, io.Reader) io.Reader // changes answers, unless nil
	mu      sync.Mutex
	log     []string // the requests: "HEAD /feed/"
}

// RoundTrip implements http.RoundTripper.
func (w *transport) RoundTrip(r *http.Request) (*http.Response, error) {
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

func (w *transport) client() *Harvester {
	return &Harvester{URL: base, HTTP: &feedhistory.Client{
		AllowPrivate: true, Transport: w, Tries: 1,
	}}
}

// serve returns a transport to the content of an output.
func serve(out fs.FS) *transport {
	return &transport{handler: http.StripPrefix("/feed/", &Handler{FS: out, Base: base})}
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
func newProducer(out publish.Output) *Producer { return newProducerAt(out, noon) }

func newProducerAt(out publish.Output, at time.Time) *Producer {
	c := &clock{at}
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

func harvestAll(t testing.TB, w *transport, from Mark) ([]string, Mark) {
	t.Helper()
	h := w.client().Harvest(t.Context(), from)
	got, err := collect(h)
	require.NoError(t, err)
	return got, markOf(h)
}

const benchEntities = 5000

func benchBatch() (all []Entity) {
	for i := range benchEntities {
		all = append(all, Entity{ContentID: strconv.Itoa(i), Type: "application/json", Body: bytes.Repeat([]byte(`{"a":1} `), 64)})
	}
	return all
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(benchEntities)*float64(b.N)/b.Elapsed().Seconds(), "entities/s")
}

// BenchmarkConsumer reads a feed of pages of 1 MB over loopback, compared with
// a plain loop over the same pages that keeps only bodies.
func BenchmarkConsumer(b *testing.B) {
	out := newMemory()
	require.NoError(b, (&Producer{Output: out}).Append(b.Context(), benchBatch()...))
	h := &Handler{FS: out}
	server := feedtest.Server(b, h)
	h.Base = server.URL
	s, err := loadState(out)
	require.NoError(b, err)
	b.Run("harvest", func(b *testing.B) {
		c := Harvester{URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true}}
		for b.Loop() {
			got, err := collect(c.Harvest(b.Context(), Mark{}))
			require.NoError(b, err)
			require.Len(b, got, benchEntities)
		}
		perSecond(b)
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for page := 1; page <= s.Newest.Number; page++ {
				n += plainRead(b, fmt.Sprintf("%s/%d", server.URL, page))
			}
			require.Equal(b, benchEntities, n)
		}
		perSecond(b)
	})
}

func plainRead(b *testing.B, url string) (n int) {
	resp, err := http.Get(url)
	require.NoError(b, err)
	defer resp.Body.Close()
	boundary := resp.Header.Get("Content-Type")[len("multipart/mixed; boundary="):]
	r := multipart.NewReader(resp.Body, boundary)
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return n
		}
		require.NoError(b, err)
		_, err = io.ReadAll(part)
		require.NoError(b, err)
		n++
	}
}

// BenchmarkProducer appends entities to pages of 1 MB in memory, a thousand at
// a time, compared with a plain loop that writes the same entities as multipart
// bodies and puts those.
func BenchmarkProducer(b *testing.B) {
	batch := benchBatch()
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			p := Producer{Output: newMemory()}
			for i := 0; i < len(batch); i += 1000 {
				require.NoError(b, p.Append(b.Context(), batch[i:i+1000]...))
			}
		}
		perSecond(b)
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			out := newMemory()
			for i := 0; i < len(batch); i += 1000 {
				var page bytes.Buffer
				w := multipart.NewWriter(&page)
				for _, e := range batch[i : i+1000] {
					part, err := w.CreatePart(textproto.MIMEHeader{
						"Content-Type": {e.Type}, "Last-Modified": {noon.Format(http.TimeFormat)}, "Content-Length": {strconv.Itoa(len(e.Body))},
						"Content-ID": {e.ContentID}, "Operation-Type": {"http-equiv=PUT"},
					})
					require.NoError(b, err)
					_, _ = part.Write(e.Body)
				}
				require.NoError(b, w.Close())
				require.NoError(b, out.Put(b.Context(), strconv.Itoa(i), page.Bytes()))
			}
		}
		perSecond(b)
	})
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			p := Producer{Output: newMemory()}
			for i := range batch {
				require.NoError(b, p.Append(b.Context(), batch[i]))
			}
		}
		perSecond(b)
	})
}
