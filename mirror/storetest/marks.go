package storetest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// markers returns both stores, or skips the test if they keep no marks.
func (w *world) markers(t *testing.T) (one, other mirror.Marker) {
	one, ok := w.Store.(mirror.Marker)
	other, too := w.other.(mirror.Marker)
	if !ok || !too {
		t.Skip("the store is no Marker")
	}
	return one, other
}

// marked returns the IDs of the marks a query selects.
func marked(t testing.TB, s mirror.Marker, q mirror.MarksQuery) (ids []string) {
	for _, m := range feedtest.All(t, s.Marks(t.Context(), q)) {
		ids = append(ids, m.ID)
	}
	return ids
}

func testMarks(t *testing.T, w *world) {
	s, other := w.markers(t)
	w.put(feedURL, live("known", at(1)))
	ids := []string{"known", "unknown", "with\x00NUL", strings.Repeat("long", 1000) + "1", strings.Repeat("long", 1000) + "2"}
	full := func(m *mirror.Marks) {
		m.Read, m.Starred, m.Forward, m.Backward = at(1), at(2), at(3), at(4)
		m.Position, m.Labels = 90*time.Second, []string{"a", "ä\x00"}
	}
	require.NoError(t, s.Mark(w.ctx, feedURL, append(ids, ids[0]), func(m *mirror.Marks) {
		require.Equal(t, feedURL, m.Feed)
		require.Contains(t, ids, m.ID)
		full(m)
	}))
	for _, m := range feedtest.All(t, other.Marks(w.ctx, mirror.MarksQuery{Feed: feedURL})) {
		want := &mirror.Marks{Feed: feedURL, ID: m.ID}
		full(want)
		for _, times := range [][2]time.Time{{want.Read, m.Read}, {want.Starred, m.Starred}, {want.Forward, m.Forward}, {want.Backward, m.Backward}} {
			require.True(t, times[0].Equal(times[1]), "%v", m)
		}
		require.Equal(t, want.Position, m.Position)
		require.Equal(t, want.Labels, m.Labels)
	}
	require.ElementsMatch(t, ids, marked(t, other, mirror.MarksQuery{Feed: feedURL}))
	require.ElementsMatch(t, ids[1:3], marked(t, s, mirror.MarksQuery{Feed: feedURL, IDs: append([]string{"other"}, ids[1:3]...)}))
	require.Empty(t, marked(t, s, mirror.MarksQuery{Feed: feedURL, IDs: []string{}}))
	require.Empty(t, marked(t, s, mirror.MarksQuery{Feed: feedURL + "2"}))

	require.NoError(t, s.Mark(w.ctx, feedURL, ids[:1], func(m *mirror.Marks) { *m = mirror.Marks{} }))
	require.PanicsWithValue(t, ids[1], func() {
		_ = s.Mark(w.ctx, feedURL, ids[:2], func(m *mirror.Marks) {
			if full(m); m.ID == ids[1] {
				panic(m.ID)
			}
		})
	})
	require.ElementsMatch(t, ids[1:], marked(t, other, mirror.MarksQuery{Feed: feedURL}))
	require.ErrorIs(t, s.Mark(w.ctx, feedURL+"2", ids, full), mirror.ErrNotFound)
	for _, q := range []mirror.MarksQuery{{}, {Feed: feedURL, Limit: -1}, {With: "seen"}} {
		for _, err := range s.Marks(w.ctx, q) {
			require.Error(t, err, "%+v", q)
		}
	}
	ended, end := context.WithCancel(w.ctx)
	end()
	require.ErrorIs(t, s.Mark(ended, feedURL, ids, full), context.Canceled)

	w.remove(feedURL)
	w.put(feedURL, live("known", at(1)))
	require.Empty(t, marked(t, s, mirror.MarksQuery{Feed: feedURL}))
}

// Marks are ordered by ID or, with one of them, by its time; also over several pages.
func testMarksOrder(t *testing.T, w *world) {
	s, _ := w.markers(t)
	const many = 600
	var ids, latest []string
	for _, feed := range []string{feedURL, feedURL + "2"} {
		w.put(feed, live("known", at(1)))
		var own []string
		for i := range many {
			own = append(own, "id "+strconv.Itoa(1000+i))
		}
		require.NoError(t, s.Mark(w.ctx, feed, own, func(m *mirror.Marks) {
			n, _ := strconv.Atoi(strings.TrimPrefix(m.ID, "id "))
			if m.Read = at(1); n%2 == 0 {
				m.Forward = at(n / 4) // some at the same time
			}
		}))
		ids = own
	}
	for n := 1000 + many - 2; n >= 1000; n -= 4 {
		latest = append(latest, "id "+strconv.Itoa(n-2), "id "+strconv.Itoa(n))
	}
	require.Equal(t, ids, marked(t, s, mirror.MarksQuery{Feed: feedURL}))
	require.Equal(t, ids[:300], marked(t, s, mirror.MarksQuery{Feed: feedURL, Limit: 300}))
	require.Equal(t, latest, marked(t, s, mirror.MarksQuery{Feed: feedURL, With: "forward"}))
	require.Equal(t, latest[:2], marked(t, s, mirror.MarksQuery{Feed: feedURL + "2", With: "forward", Limit: 2}))
	require.Equal(t, []string{latest[0], latest[1], latest[0], latest[1], latest[2]}, marked(t, s, mirror.MarksQuery{With: "forward", Limit: 5}))
	require.Len(t, marked(t, s, mirror.MarksQuery{With: "forward"}), many)
	require.Equal(t, ids, marked(t, s, mirror.MarksQuery{Feed: feedURL, With: "read"})) // all at one time
	require.Empty(t, marked(t, s, mirror.MarksQuery{With: "starred"}))
}

// Of several calls at once, none is lost.
func testMarksAtOnce(t *testing.T, w *world) {
	s, other := w.markers(t)
	w.put(feedURL, live("known", at(1)))
	const calls = 20
	feedtest.AtOnce(t, 2, func(i int) (err error) {
		for range calls {
			err = errors.Join(err, []mirror.Marker{s, other}[i].Mark(w.ctx, feedURL, []string{"known"}, func(m *mirror.Marks) { m.Position++ }))
		}
		return err
	})
	found := feedtest.All(t, s.Marks(w.ctx, mirror.MarksQuery{Feed: feedURL}))
	require.Len(t, found, 1)
	require.EqualValues(t, 2*calls, found[0].Position)
}
