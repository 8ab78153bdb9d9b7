package publish

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A model is the expected content of the feed, expressed as simply as possible.
type model struct {
	entries map[string]string // id to time and text
	deleted map[string]string // id to time
	erased  map[string]bool   // these may still be among the deleted
}

func newModel() model {
	return model{map[string]string{}, map[string]string{}, map[string]bool{}}
}

func (m model) clone() model {
	return model{maps.Clone(m.entries), maps.Clone(m.deleted), maps.Clone(m.erased)}
}

func stamp(t time.Time, text string) string { return t.UTC().Format(time.RFC3339Nano) + " " + text }

func (m model) put(id string, at time.Time, text string) {
	m.entries[id] = stamp(at, text)
	delete(m.deleted, id)
	delete(m.erased, id)
}

func (m model) remove(id string, at time.Time) {
	m.deleted[id] = stamp(at, "deleted")
	delete(m.entries, id)
}

func (m model) erase(id string) {
	delete(m.entries, id)
	m.erased[id] = true
}

// matches reports whether a reader has found exactly the expected content.
func (m model) matches(h *feedhistory.History) bool {
	entries, deleted := map[string]string{}, map[string]string{}
	for _, e := range h.Entries {
		entries[e.ID] = stamp(e.Updated, e.Title().Plain())
	}
	for _, d := range h.Deleted {
		if _, ok := m.deleted[d.Ref]; ok || !m.erased[d.Ref] {
			deleted[d.Ref] = stamp(d.When, "deleted")
		}
	}
	return maps.Equal(m.entries, entries) && maps.Equal(m.deleted, deleted)
}

func (m model) ids() []string { return slices.Sorted(maps.Keys(m.entries)) }

// A machine drives a Publisher and its model in parallel.
type machine struct {
	out   *memory
	p     *Publisher
	model model
	now   time.Time
	count int
}

// TestModel drives a Publisher through random histories. After each step a
// reader who walks the feed has exactly what was published, and knows that
// nothing is missing.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{out: newMemory(), model: newModel(), now: day}
		m.p = newPublisher(m.out)
		m.p.Format = rapid.SampledFrom([]feedhistory.Format{feedhistory.Atom, feedhistory.RSS}).Draw(t, "format")
		t.Repeat(map[string]func(*rapid.T){
			"append": m.append, "append again": m.append, "old date": m.oldDate, "edit": m.edit,
			"correct": m.correct, "delete": m.delete, "erase": m.erase, "stale": m.stale,
			"split": m.split, "reopen": m.reopen, "crash": m.crash, "": m.check,
		})
	})
}

func (m *machine) tick(t *rapid.T) time.Time {
	m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int64{
		1, int64(time.Millisecond), int64(time.Second), int64(time.Hour), int64(9 * 24 * time.Hour),
	}).Draw(t, "later")))
	return m.now
}

// fresh returns an entry that never existed, with the given date.
func (m *machine) fresh(t *rapid.T, at time.Time, into model) *feedhistory.Entry {
	m.count++
	id, text := fmt.Sprintf("e%d", m.count), fmt.Sprintf("text %d & <b>", m.count)
	into.put(id, at, text)
	return entry(t, id, at, text)
}

// some draws the id of a published entry.
func (m *machine) some(t *rapid.T) string {
	ids := m.model.ids()
	if len(ids) == 0 {
		t.Skip("nothing is published")
	}
	return rapid.SampledFrom(ids).Draw(t, "id")
}

func (m *machine) append(t *rapid.T) {
	var all []*feedhistory.Entry
	for range rapid.IntRange(0, 9).Draw(t, "entries") {
		all = append(all, m.fresh(t, m.tick(t), m.model))
	}
	require.NoError(t, m.p.Append(t.Context(), all...))
}

func (m *machine) oldDate(t *rapid.T) {
	at := m.now.Add(-time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "ago")))
	require.NoError(t, m.p.Append(t.Context(), m.fresh(t, at, m.model)))
}

func (m *machine) edit(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	if deleted := slices.Sorted(maps.Keys(m.model.deleted)); len(deleted) > 0 && rapid.Bool().Draw(t, "revive") {
		id = deleted[0]
	}
	m.count++
	text := fmt.Sprintf("edited %d", m.count)
	m.model.put(id, at, text)
	require.NoError(t, m.p.Append(t.Context(), m.fresh(t, at, m.model), entry(t, id, at, text)))
}

func (m *machine) correct(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	m.model.put(id, at, "corrected")
	require.NoError(t, m.p.Correct(t.Context(), entry(t, id, at, "corrected")))
}

func (m *machine) delete(t *rapid.T) {
	id, at := m.some(t), m.tick(t)
	m.model.remove(id, at)
	require.NoError(t, m.p.Delete(t.Context(), id, at))
}

func (m *machine) erase(t *rapid.T) {
	ids := []string{m.some(t), m.some(t)}
	for _, id := range ids {
		m.model.erase(id)
	}
	require.NoError(t, m.p.Erase(t.Context(), ids...))
}

// stale offers items that are not newer than the published ones.
func (m *machine) stale(t *rapid.T) {
	id := m.some(t)
	at, err := time.Parse(time.RFC3339Nano, m.model.entries[id][:len(m.model.entries[id])-len(text(m.model.entries[id]))-1])
	require.NoError(t, err)
	require.ErrorIs(t, m.p.Append(t.Context(), entry(t, id, at, "changed")), ErrSameTime)
	require.ErrorIs(t, m.p.Append(t.Context(), entry(t, id, at.Add(-1), "changed")), ErrStale)
	require.ErrorIs(t, m.p.Delete(t.Context(), id, at.Add(-1)), ErrStale)
	require.NoError(t, m.p.Append(t.Context(), entry(t, id, at, text(m.model.entries[id]))), "the very same")
}

// text returns what follows the time.
func text(stamped string) string {
	for i := range stamped {
		if stamped[i] == ' ' {
			return stamped[i+1:]
		}
	}
	return ""
}

func (m *machine) split(t *rapid.T) {
	m.p.Split = rapid.SampledFrom([]feedhistory.Split{
		{Size: 1}, {Size: 2}, {Size: 7}, {Period: feedhistory.Day}, {Period: feedhistory.Month}, {Period: feedhistory.Year},
	}).Draw(t, "split")
	m.p.Recent = rapid.SampledFrom([]int{-1, 0, 1, 5}).Draw(t, "recent")
}

func (m *machine) reopen(*rapid.T) {
	old := m.p
	m.p = &Publisher{Output: m.out, Base: base, Format: old.Format, Split: old.Split, Recent: old.Recent}
}

// crash interrupts a call at any of its operations. The call has either taken
// effect or not.
func (m *machine) crash(t *rapid.T) {
	after := rapid.IntRange(0, 9).Draw(t, "operations")
	how := rapid.SampledFrom([]feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed}).Draw(t, "how")
	done := m.model.clone()
	m.out.Fail = func(string) feedtest.Failure {
		if after--; after == -1 {
			return how
		}
		return feedtest.Works
	}
	var err error
	if ids := m.model.ids(); len(ids) > 0 && rapid.Bool().Draw(t, "erase") {
		id := rapid.SampledFrom(ids).Draw(t, "id")
		done.erase(id)
		err = m.p.Erase(t.Context(), id)
	} else {
		var all []*feedhistory.Entry
		for range rapid.IntRange(1, 9).Draw(t, "entries") {
			all = append(all, m.fresh(t, m.tick(t), done))
		}
		err = m.p.Append(t.Context(), all...)
	}
	m.out.Fail = nil
	if rapid.Bool().Draw(t, "a new process") {
		m.out = m.out.clone()
		m.reopen(t)
	} else if err != nil {
		require.ErrorIs(t, err, feedtest.ErrDisk)
	}
	h := m.fetch(t)
	if err == nil || done.matches(h) {
		m.model = done
		return
	}
	if require.NoError(t, m.p.Append(t.Context())); len(m.out.files) > 0 && done.matches(m.fetch(t)) {
		m.model = done // the call had taken effect already
	}
}

func (m *machine) fetch(t *rapid.T) *feedhistory.History {
	if _, ok := m.out.files[m.p.name()]; !ok {
		require.Empty(t, m.model.entries)
		return &feedhistory.History{}
	}
	checkChain(t, m.out, m.p)
	return fetch(t, m.out, m.p.URL())
}

func (m *machine) check(t *rapid.T) {
	if h := m.fetch(t); !m.model.matches(h) {
		require.Equal(t, m.model.entries, facts(h))
		t.Fatal("not what was published")
	}
}
