package atompmh

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

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
	data, err := m.ReadFile(name)
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
		Transport: w, Retry: feedhistory.Retry{Tries: 1}, Policy: feedhistory.Policy{PerHost: 1},
	}
}

const base = "https://example.org/records/"
