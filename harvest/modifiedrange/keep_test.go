package modifiedrange

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// After each harvest a mirror equals the collection, and the next harvest asks for
// later changes.
func TestKeep(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	collection := &store{now: start.Add(time.Hour)}
	for i, id := range []string{"urn:a", "urn:b", "urn:c", "urn:d"} {
		collection.put(id, "first", start.Add(time.Duration(i)*time.Second))
	}
	server := feedtest.Server(t, collection.handler(2))
	http := &feedhistory.Client{AllowPrivate: true}
	defer http.CloseIdle()
	c := Harvester{HTTP: http, URL: server.URL + "/collection"}
	m := &mirror.Mirror{Store: mirror.NewMemory()}

	changes, err := c.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Equal(t, 4, changes.Added)

	collection.now = start.Add(3 * time.Hour)
	collection.put("urn:a", "second", start.Add(2*time.Hour))
	collection.remove("urn:b", start.Add(2*time.Hour))
	changes, err = c.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1}, []int{changes.Added, changes.Changed, changes.Deleted})
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)

	got := map[string]string{}
	for _, r := range feedtest.All(t, m.Store.Entries(t.Context(), mirror.Query{Feed: c.URL})) {
		got[r.ID] = r.Content.Title
	}
	require.Equal(t, map[string]string{"urn:a": "second", "urn:c": "first", "urn:d": "first"}, got)

	var state Mark
	require.NoError(t, m.ReadMark(t.Context(), c.URL, "modified-range", &state))
	require.Equal(t, start.Add(2*time.Hour), state.Since) // the newest stamp, which is earlier than the clock

	server.Close() // what was harvested stays, and so does the state
	_, err = c.Keep(t.Context(), m)
	require.Error(t, err)
	var same Mark
	require.NoError(t, m.ReadMark(t.Context(), c.URL, "modified-range", &same))
	require.Equal(t, state, same)
}

// A harvest that reaches a limit, or loses a response, continues where it ended: only
// its last answer comes again.
func TestKeepContinues(t *testing.T) {
	for _, limits := range []harvest.Budget{{Requests: 3}, {Items: 9}, {Bytes: 3000}, {}} {
		sizes := make([]int, 40)
		for i := range sizes {
			sizes[i] = 1 + i%3
		}
		w := &wire{handler: groups(sizes...).handler(4)}
		c := w.client()
		c.Budget = limits
		m := &mirror.Mirror{Store: mirror.NewMemory()}
		requests, runs, whole := 0, 0, false
		for ; !whole; runs++ {
			require.Less(t, runs, 40)
			left := 3
			w.lose = func() bool {
				requests++
				left--
				return limits == harvest.Budget{} && left == -1
			}
			changes, err := c.Keep(t.Context(), m)
			require.NoError(t, err)
			if whole = changes.Feed.Verdict == feedhistory.VerdictWhole; !whole {
				require.NotEmpty(t, changes.Feed.Ledger.Gaps())
			}
		}
		require.Greater(t, runs, 2, "%+v", limits)
		require.LessOrEqual(t, requests, 25+2*runs, "%+v", limits)
		want, got := 0, 0
		for _, n := range sizes {
			want += n
		}
		for _, err := range m.Store.Entries(t.Context(), mirror.Query{Feed: c.URL}) {
			require.NoError(t, err)
			got++
		}
		require.Equal(t, want, got, "%+v", limits)
		var state Mark
		require.NoError(t, m.ReadMark(t.Context(), c.URL, "modified-range", &state))
		require.Zero(t, state.Rest)
	}
}

// A harvest that ends after any of its answers asks for none of them again, and one that loses
// an answer only for that one.
//
// Duties: modified-range#9.
func TestNothingAgain(t *testing.T) {
	for lost := range 2 {
		for cut := 1; cut < 9; cut++ {
			w := &wire{handler: groups(slices.Repeat([]int{1, 2, 1}, 10)...).handler(4)}
			h := w.client().Harvest(t.Context(), Mark{})
			left := cut
			w.lose = func() bool {
				left--
				return left == -1
			}
			got := map[string]int{}
			take := func(h *Harvest, most int) (whole bool) {
				for r, err := range h.Readings() {
					for _, e := range entriesOf(r, err) {
						got[e.ID]++
					}
					if most--; most == 0 && lost == 0 {
						break
					}
				}
				_, whole = h.Mark()
				return whole
			}
			require.False(t, take(h, cut))
			w.lose = nil
			at, _ := h.Mark()
			require.NotZero(t, at.Rest)
			require.True(t, take(w.client().Harvest(t.Context(), at), -1))
			require.Len(t, got, 40)
			again := 0
			for id, n := range got {
				require.LessOrEqual(t, n, 2, id)
				again += n - 1
			}
			require.LessOrEqual(t, again, 3+4*lost, "only what the overlap has, and the lost answer") // an answer has four at least
		}
	}
}

func entriesOf(r *feedhistory.Reading, err error) []*feedhistory.Entry {
	if err != nil || r.Document == nil {
		return nil
	}
	return r.Document.Entries
}
