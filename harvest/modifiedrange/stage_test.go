package modifiedrange

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A killed harvest is one whose process ends during a request. Each answer it has yielded is
// stored, together with the mark after it.
type killed struct {
	t      *testing.T
	store  *store
	wire   *wire
	ask    Dialect
	mark   Mark
	came   map[string]bool
	lossy  bool
	asked  map[string]int
	killed int // the requests asked again; some are without a kill
}

// rangeOf returns the range a request asks for.
func rangeOf(r *http.Request) string {
	return r.URL.RawQuery + " " + r.Header.Get(fieldModifiedRange) + " " + r.Header.Get(fieldRange)
}

// run harvests until the given request, which is the last of the process. It returns whether
// there was such a request.
func (k *killed) run(until int) (ended bool) {
	n, again := 0, 0
	k.wire.before = func(r *http.Request) {
		q := rangeOf(r)
		if n++; n <= until && n > 1 && k.asked[q] > 0 {
			again++
		}
		if n <= until {
			k.asked[q]++
		}
	}
	k.wire.lose = func() bool { return n >= until }
	c := k.wire.client()
	c.Dialect, c.Overlap = k.ask, -1
	k.store.now = k.store.now.Add(time.Hour) // so no two processes ask the same for new items
	h := c.Harvest(k.t.Context(), k.mark)
	for doc, err := range h.Documents() {
		if n >= until {
			break
		}
		if err == nil {
			k.take(doc, h)
		} else {
			k.lossy = true
		}
	}
	if n < until {
		var whole bool
		k.mark, whole = h.Mark()
		require.Equal(k.t, !k.lossy, whole)
	}
	k.killed += again
	return n < until
}

// take stores a document with the mark, as JSON.
func (k *killed) take(doc *feedhistory.Document, h *Harvest) {
	for _, e := range doc.Entries {
		k.came[e.ID] = true
	}
	mark, _ := h.Mark()
	text, err := json.Marshal(mark)
	require.NoError(k.t, err)
	k.mark = Mark{}
	require.NoError(k.t, json.Unmarshal(text, &k.mark))
}

// A harvest killed during any of its requests, and those that continue it, bring the same items
// as an unbroken one, and report a loss if it does. A kill costs the request under way: a
// harvest repeats none but its first. Only a server that does not name the ranges of its answers
// costs up to three more, until it has shown how it answers.
//
// Duties: modified-range#9.
func TestKilled(t *testing.T) {
	latest := func(a, b version) int { return b.at.Compare(a.at) }
	oldest := func(a, b version) int { return a.at.Compare(b.at) }
	seeds := uint64(15)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		var sizes []int
		for range 1 + random.IntN(20) {
			sizes = append(sizes, 1+random.IntN(1+int(seed%3)*2))
		}
		limit := 2 + random.IntN(6)
		s := groups(sizes...)
		for name, handler := range map[string]http.Handler{
			"ours": s.handler(limit), "latest": &cutter{store: s, limit: limit, order: latest}, "oldest": &cutter{store: s, limit: limit, order: oldest},
		} {
			testKilled(t, fmt.Sprint(name, seed), s, handler, ModifiedRange, 0)
		}
		for _, f := range []foreign{
			{dialect: ModifiedRange}, {dialect: ModifiedRange, cuts: true}, {dialect: RangeUpdated, closed: true}, {dialect: GData, claims: true},
		} {
			f.store, f.limit = s, limit
			testKilled(t, fmt.Sprintf("%d %+v", seed, f), s, &f, f.dialect, 3)
		}
	}
}

// The unit of the stamps is known from earlier answers, and kept.
//
// Duties: modified-range#5.
func TestKilledUnits(t *testing.T) {
	s := groupsApart(time.Millisecond, 1, 3, 3, 1)
	s.put("urn:new", "text", s.now.Add(-2*time.Millisecond+2*time.Nanosecond))
	testKilled(t, "units", s, &foreign{store: s, dialect: ModifiedRange, limit: 1}, ModifiedRange, 3)
}

func testKilled(t *testing.T, name string, s *store, handler http.Handler, ask Dialect, more int) {
	begin := func() *killed {
		return &killed{t: t, store: s, wire: &wire{handler: handler}, ask: ask, came: map[string]bool{}, asked: map[string]int{}}
	}
	const unbroken = 10_000
	want := begin()
	require.True(t, want.run(unbroken), name)
	for first := 1; ; first++ {
		k := begin()
		if k.run(first) {
			return
		}
		once := *k
		once.came, once.asked, once.wire = maps.Clone(k.came), maps.Clone(k.asked), &wire{handler: handler}
		require.True(t, once.run(unbroken))
		once.requireEqual(want, 1, more*min(1, 6/first), "%s killed at %d", name, first)
		kills := 1
		for second := first%3 + 1; kills < 9 && !k.run(second); kills++ {
			second = cmp.Or((first+kills)%4, 1)
		}
		if kills == 9 {
			require.True(t, k.run(unbroken), name)
		}
		k.requireEqual(want, kills, more, "%s killed %d times, first at %d", name, kills, first)
	}
}

// requireEqual requires the result of another harvest. Each kill may cost one request, and until
// it is known how the server answers, a few more.
func (k *killed) requireEqual(want *killed, kills, more int, format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n" + k.wire.log.String()
	require.Equal(k.t, want.came, k.came, text)
	require.Equal(k.t, want.lossy, k.lossy, text)
	require.LessOrEqual(k.t, k.killed, want.killed+kills+more, text)
}

// A stage that cannot be read costs requests, and loses nothing.
func TestMalformedStage(t *testing.T) {
	for _, confirm := range []string{"", "x", "/=", "/=x", "2026-03-01T11:00:00Z/2026-03-01T11:50:00Z", strings.Repeat("=", 9)} {
		s := groups(slices.Repeat([]int{1}, 30)...)
		mark := Mark{Rest: Rest{End: s.now.Add(-10 * time.Minute), Next: s.now, Dialect: ModifiedRange, Stage: stage{Confirm: confirm}}}
		h, err := feedhistory.Merge((&wire{handler: s.handler(4)}).client().Harvest(t.Context(), mark).Documents())
		require.NoError(t, err)
		require.Empty(t, h.Gaps)
		require.Len(t, h.Entries, 20, confirm)
	}
}

// Eight requests bring a harvest forward with any server; one is enough if the server names the
// ranges of its answers.
//
// Duties: modified-range#12.
func TestLeastRequests(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 30} {
		s := groups(slices.Repeat([]int{1, 2}, n)...)
		testLeast(t, s.handler(3), 1)
		for _, f := range []foreign{
			{dialect: ModifiedRange}, {dialect: ModifiedRange, closed: true}, {dialect: RangeUpdated}, {dialect: RangeUpdated, strict: true},
			{dialect: GData}, {dialect: GData, claims: true}, {dialect: GData, claims: true, closed: true},
		} {
			for _, f.limit = range []int{3, 100} {
				f.store = s
				testLeast(t, &f, 8)
			}
		}
	}
}

func testLeast(t *testing.T, handler http.Handler, requests int) {
	var mark Mark
	for runs, whole := 0, false; !whole; runs++ {
		require.Less(t, runs, 100, "%+v", handler)
		c := (&wire{handler: handler}).client()
		c.Budget.Requests = requests
		h := c.Harvest(t.Context(), mark)
		_, err := feedhistory.Merge(h.Documents())
		require.NoError(t, err)
		mark, whole = h.Mark()
	}
}
