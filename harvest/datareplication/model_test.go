package datareplication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
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
	cursor Mark
	log    []string
	copy   map[string]string
	busy   bool // one harvest at a time
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
	before := m.each.cursor.Time
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

// harvest reads the feed over a wire that may tear, until the consumer is
// killed, at random.
func (m *machine) harvest(c *consumer) {
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(m.out).handler.ServeHTTP(w, r) })}
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
	if c.copy != nil && c.cursor.IsZero() {
		c.copy = map[string]string{}
	}
	h := client.Harvest(m.t.Context(), c.cursor)
	for e, err := range h.Entities() {
		if err != nil {
			m.failed(c, err, quiet)
			return
		}
		c.take(m.t, e)
		c.cursor = h.Mark()
		if kill--; kill == 0 {
			return
		}
	}
	c.cursor = h.Mark()
}

// failed checks that a harvest ended for one of the possible reasons.
func (m *machine) failed(c *consumer, err error, quiet bool) {
	var cut *CutShortError
	var reach *ReachError
	var page *PageError
	switch {
	case errors.As(err, &reach) && c.copy != nil:
		c.cursor = Mark{}
	case errors.As(err, &cut) && !quiet:
	case gone(err) && errors.As(err, &page) && page.Snapshot && !quiet && c.copy != nil:
	default:
		require.NoError(m.t, err, "%v", c.cursor)
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
