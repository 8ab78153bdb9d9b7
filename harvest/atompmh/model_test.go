package atompmh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// settle is how late a change may become visible.
const settle = time.Second

// A machine drives a producer and a consumer, while writers work.
type machine struct {
	*pool
	t        *rapid.T
	out      *memory
	producer *Producer
	wire     *wire
	consumer *consumer

	published map[string]copied // the pool at the last update
}

// TestModel lets writers work between requests, with changes that have equal
// times, appear late or are stamped in the future, with lost responses, and
// with crashes on either side. Every whole harvest of a feed at rest leaves the
// consumer with the last published pool; another harvest then makes one
// conditional request and brings nothing. The checks find nothing in what is
// published.
//
// Duties: atom-pmh#1, atom-pmh#11, atom-pmh#19, atom-pmh#20, atom-pmh#22.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				m.write(m.draw, 12)
			case 2:
				m.crash()
			case 3:
				require.NoError(t, m.update())
			case 4:
				m.busy()
			case 5:
				m.harvest()
			}
		}
		for range 2 { // the first update modifies records that came too late, which then have to settle
			m.wait()
			m.now = m.now.Add(3 * settle)
			require.NoError(t, m.update())
		}
		m.harvest()
		require.Equal(t, m.present(), m.consumer.present())
		m.idle()
		m.clean()
	})
}

func newMachine(t *rapid.T) *machine {
	p, out := newPool(), newMemory()
	m := &machine{pool: p, t: t, out: out, published: map[string]copied{}}
	m.producer = &Producer{
		Output: out, Base: base, Pool: p.query,
		ByAbsence:  rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "deletions"),
		Historical: rapid.Bool().Draw(t, "historical"),
		Split:      compose.Split{Size: rapid.IntRange(1, 6).Draw(t, "split")},
		Settle:     rapid.SampledFrom([]time.Duration{0, settle}).Draw(t, "settle"),
		Now:        func() time.Time { return p.now },
	}
	m.wire = &wire{handler: http.StripPrefix("/records", &publish.Handler{FS: out})}
	m.consumer = &consumer{Harvester: &Harvester{HTTP: m.wire.client(), URL: m.producer.URL(), memory: rapid.SampledFrom(memories).Draw(t, "memory")}, has: map[string]copied{}}
	require.NoError(t, m.update()) // so that there is something to harvest (atom-pmh#2)
	return m
}

// A choice is a number below n, for a purpose.
type choice func(purpose string, n int) int

func (m *machine) draw(purpose string, n int) int {
	return rapid.IntRange(0, n-1).Draw(m.t, purpose)
}

// write makes fewer than n changes. Often no time passes between them, some
// become visible later than they were stamped, and some are stamped in the
// future.
func (m *machine) write(choose choice, most int) {
	for range choose("changes", most) {
		m.now = m.now.Add([]time.Duration{0, 0, 0, 1, time.Second, time.Hour}[choose("later", 6)])
		at := m.now
		switch choose("late", 20) {
		case 18:
			at = at.Add(-settle)
		case 19:
			at = at.Add(-10 * time.Minute)
		case 17:
			at = at.Add(2 * time.Hour)
		}
		id := fmt.Sprintf("urn:%d", choose("id", 15))
		if last, known := m.items[id]; known && !last.Deleted && choose("delete", 3) == 2 {
			m.remove(id, at)
		} else {
			m.put(id, at)
		}
	}
}

// update publishes with a new producer. A record that appeared too late is
// modified again, as the error says.
func (m *machine) update() error {
	m.out.Fail = nil
	fresh := *m.producer
	for {
		err := fresh.Update(m.t.Context())
		if err == nil || onlyFuture(err) {
			m.publish()
			return nil
		}
		if !errors.Is(err, harvest.ErrLate) || m.producer.ByAbsence {
			return err
		}
		m.touch(err)
	}
}

// onlyFuture reports whether an error says only that records wait.
func onlyFuture(err error) bool {
	return errors.Is(err, harvest.ErrFuture) && !errors.Is(err, harvest.ErrLate) && !errors.Is(err, harvest.ErrSameTime) && !errors.Is(err, harvest.ErrRecord)
}

// publish records what is published, if that is certain.
func (m *machine) publish() {
	m.published = m.present()
	settled := m.now
	if !m.producer.ByAbsence {
		settled = m.now.Add(-m.producer.Settle)
	}
	for _, it := range m.items {
		if it.Modified.After(settled) {
			m.published = nil
		}
	}
}

// touch modifies the records that an error names.
func (m *machine) touch(err error) {
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		late, _ := errors.AsType[*harvest.Error](err)
		if !errors.Is(late, harvest.ErrLate) {
			continue
		}
		it := m.items[late.Item]
		it.Modified = m.now
		m.set(it)
	}
}

// crash runs an update that fails at one of its writes, before or after that
// takes effect, and at all later ones.
func (m *machine) crash() {
	left := m.draw("writes until it crashes", 9)
	after := m.draw("the last takes effect", 2) == 1
	m.out.Fail = func(string) feedtest.Failure {
		switch left--; {
		case left > -1:
			return feedtest.Works
		case left == -1 && after:
			return feedtest.Crashed
		}
		return feedtest.Crashes
	}
	fresh := *m.producer
	err := fresh.Update(m.t.Context())
	m.out.Fail = nil
	if err != nil && !errors.Is(err, feedtest.ErrDisk) && !onlyFuture(err) {
		require.ErrorIs(m.t, err, harvest.ErrLate)
	}
	if m.published = nil; err == nil || onlyFuture(err) { // otherwise it may or may not have taken effect
		m.publish()
	}
}

// busy harvests while the producer works and responses are lost. Now and then
// the consumer crashes before it has stored the result. The requests come from
// a different goroutine than the one that may draw.
func (m *machine) busy() {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(m.t, "seed"), 0))
	choose := func(_ string, n int) int { return r.IntN(n) }
	var failed error
	m.wire.before = func() {
		if m.write(choose, 4); choose("update", 2) == 0 {
			failed = errors.Join(failed, m.update())
		}
	}
	m.wire.lose = func() bool { return choose("lost", 8) == 0 }
	defer func() { m.wire.before, m.wire.lose = nil, nil }()
	was := *m.consumer
	was.has = maps.Clone(was.has)
	h, _, err := m.consumer.harvest(m.t.Context())
	require.NoError(m.t, failed)
	_, whole := h.Mark()
	require.Equal(m.t, err == nil, whole)
	if err != nil {
		require.ErrorIs(m.t, err, errLost)
	}
	if m.draw("consumer crashes", 4) == 3 {
		*m.consumer = was
	}
}

// harvest harvests the feed at rest, from the stored mark.
func (m *machine) harvest() {
	text, err := json.Marshal(m.consumer.mark)
	require.NoError(m.t, err)
	m.consumer.mark = Mark{}
	require.NoError(m.t, json.Unmarshal(text, &m.consumer.mark))
	h, _, err := m.consumer.harvest(m.t.Context())
	require.NoError(m.t, err)
	_, whole := h.Mark()
	require.True(m.t, whole)
	if m.published != nil {
		require.Equal(m.t, m.published, m.consumer.present())
	}
}

// idle harvests when nothing is new.
func (m *machine) idle() {
	before := len(m.wire.requests)
	h, changes, err := m.consumer.harvest(m.t.Context())
	require.NoError(m.t, err)
	require.Empty(m.t, changes)
	require.Zero(m.t, h.DocumentsRead())
	require.Equal(m.t, 1, h.Requests())
	require.Len(m.t, m.wire.requests, before+1)
	require.NotEmpty(m.t, m.wire.requests[before].Header.Get("If-None-Match"))
	require.Equal(m.t, http.StatusNotModified, m.wire.statuses[before])
}

// clean checks what is published.
func (m *machine) clean() {
	chain := check.Chain{Profile: check.AtomPMH}
	for finding, err := range chain.Check(m.t.Context(), m.consumer.HTTP, m.producer.URL()) {
		require.NoError(m.t, err)
		require.Failf(m.t, "a finding", "%v\n%s", finding, m.out.text(m.t, "feed.atom"))
	}
}

// FuzzHarvest checks that, whatever the documents are, a harvest ends; that a
// record changes once; that a mark survives JSON; and that what has been
// harvested is not reported again, nor anything concluded from unchanged
// documents.
func FuzzHarvest(f *testing.F) {
	f.Add(feed(day(2), "/1", record("urn:a", day(2)), deletion("urn:b", day(2))), feed(day(1), "", record("urn:b", day(1))))
	f.Add(feed(day(2), "complete", record("urn:a", day(2))), "")
	f.Add(feed(day(2), "/1"), feed(day(3), "/0", record("urn:a", "9999-12-31T23:59:59-14:00"), record("urn:a", "0000-01-01T00:00:00+14:00")))
	f.Add(feed("never", "/1", entry("", day(1), ""), entry("urn:a", "", "<content/>")), "<rss/>")
	for _, name := range []string{"example-3", "example-5"} {
		text := feedtest.ReadFile(f, "testdata/seed/"+name+".xml")
		f.Add(string(text), "")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/feed" {
				_, _ = w.Write([]byte(first))
			} else {
				_, _ = w.Write([]byte(second))
			}
		})}
		h := Harvester{HTTP: w.client(), URL: "https://example.org/feed"}
		var mark Mark
		for range 2 {
			changes := 0
			seen := map[string]bool{}
			harvest := h.Harvest(t.Context(), mark)
			for c, err := range harvest.Changes() {
				if err != nil || c.Kind == Other {
					continue
				}
				require.False(t, seen[c.ID])
				seen[c.ID] = true
				changes++
			}
			next, whole := harvest.Mark()
			if !whole {
				return
			}
			if !mark.IsZero() {
				require.Zero(t, changes)
			}
			text, err := json.Marshal(next)
			require.NoError(t, err)
			mark = Mark{}
			require.NoError(t, json.Unmarshal(text, &mark))
			mark.m.Subscription.Digest = strings.Repeat("0", len(mark.m.Subscription.Digest)) // so that it is read again
		}
	})
}

// A pool is a producer's records, deleted ones included, with a clock.
type pool struct {
	now   time.Time
	items map[string]Item
	count int
}

func newPool() *pool {
	return &pool{now: time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC), items: map[string]Item{}}
}

// put creates or modifies a record, at a later time than its last.
func (p *pool) put(id string, at time.Time) {
	p.count++
	p.set(Item{ID: id, Modified: at, Title: id, Representations: []Representation{
		{URL: fmt.Sprintf("https://example.org/%s/%d.rdf", id[4:], p.count), Type: "application/rdf+xml"},
	}})
}

func (p *pool) remove(id string, at time.Time) {
	p.set(Item{ID: id, Modified: at, Title: id, Deleted: true})
}

func (p *pool) set(it Item) {
	if last, ok := p.items[it.ID]; ok && !it.Modified.After(last.Modified) {
		it.Modified = last.Modified.Add(time.Nanosecond)
	}
	p.items[it.ID] = it
}

// wait lets time pass until no record is stamped in the future.
func (p *pool) wait() {
	for _, it := range p.items {
		if it.Modified.After(p.now) {
			p.now = it.Modified
		}
	}
}

// query is a Pool.
func (p *pool) query(_ context.Context, since time.Time) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, it := range p.items {
			if !it.Modified.Before(since) && !yield(it, nil) {
				return
			}
		}
	}
}

// A copied is what a consumer stores of a record.
type copied struct {
	at   time.Time
	url  string
	gone bool
}

// present returns the present records and their states.
func (p *pool) present() map[string]copied {
	all := map[string]copied{}
	for id, it := range p.items {
		if !it.Deleted {
			all[id] = copied{at: it.Modified, url: it.Representations[0].URL}
		}
	}
	return all
}

// A consumer stores what harvests bring.
type consumer struct {
	*Harvester
	mark Mark
	has  map[string]copied
}

// harvest harvests once, and stores the result with the mark.
func (c *consumer) harvest(ctx context.Context) (h *Harvest, changes []Change, err error) {
	h = c.Harvest(ctx, c.mark)
	for change, failed := range h.Changes() {
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		changes = append(changes, change)
	}
	c.apply(h, changes)
	c.mark, _ = h.Mark()
	return h, changes, err
}

func (c *consumer) apply(h *Harvest, changes []Change) {
	if h.All() {
		clear(c.has)
	}
	for _, change := range changes {
		if change.Kind == Other || change.Time.Before(c.has[change.ID].at) {
			continue
		}
		now := copied{at: change.Time, gone: change.Kind == Deleted}
		if !now.gone {
			now.url = change.Chosen.URL
		}
		c.has[change.ID] = now
	}
}

func (c *consumer) present() map[string]copied {
	all := maps.Clone(c.has)
	maps.DeleteFunc(all, func(_ string, v copied) bool { return v.gone })
	return all
}

// A memory is an Output that can fail.
type memory struct {
	*publish.MemoryOutput
	feedtest.Faults
}

func newMemory() *memory { return &memory{MemoryOutput: &publish.MemoryOutput{}} }

// Put implements publish.Output.
func (m *memory) Put(ctx context.Context, name string, data []byte) error {
	return m.Change(name, func() error { return m.MemoryOutput.Put(ctx, name, data) })
}

// Remove implements publish.Output.
func (m *memory) Remove(ctx context.Context, name string) error {
	return m.Change(name, func() error { return m.MemoryOutput.Remove(ctx, name) })
}

// requireUnlocked requires that nobody has the lock.
func (m *memory) requireUnlocked(t require.TestingT) {
	unlock, err := m.Lock(context.Background())
	require.NoError(t, err)
	require.NoError(t, unlock())
}

// text returns a document.
func (m *memory) text(t require.TestingT, name string) string {
	data, err := fs.ReadFile(m, name)
	require.NoError(t, err)
	return string(data)
}

// A wire carries requests to a handler, after whatever happens before them.
type wire struct {
	handler  http.Handler
	before   func()
	lose     func() bool // whether to lose the response after it was made
	requests []*http.Request
	statuses []int
}

var errLost = errors.New("connection reset")

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.before()
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	w.requests, w.statuses = append(w.requests, r), append(w.statuses, rec.Code)
	if w.lose != nil && w.lose() {
		return nil, errLost
	}
	return rec.Result(), nil
}

// client returns a client that requests one document at a time, and tries once.
func (w *wire) client() *feedhistory.Client {
	return &feedhistory.Client{
		AllowPrivate: true, Transport: w, Tries: 1, PerHost: 1,
	}
}

const base = "https://example.org/records/"
