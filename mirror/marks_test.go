package mirror_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func marksOf(t testing.TB, s mirror.Marker, feed string) []*mirror.Marks {
	return feedtest.All(t, s.Marks(t.Context(), mirror.MarksQuery{Feed: feed}))
}

// Marks travel with their feeds, and join those that are there: nothing that was marked is
// forgotten. A store without marks takes the rest.
func TestMarksTravel(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 8, 0, 0, 0, time.UTC) }
	from, to := mirror.NewMemory(), mirror.NewMemory()
	put(t, from, "urn:feed", false, 3)
	require.NoError(t, from.Mark(t.Context(), "urn:feed", []string{"urn:feed#0", "to come"}, func(m *mirror.Marks) {
		m.Read, m.Forward, m.Position, m.Labels = at(2), at(3), time.Minute, []string{"a", "b"}
	}))
	carry := func() {
		var lines bytes.Buffer
		require.NoError(t, mirror.Export(t.Context(), &lines, from, from.Feeds(t.Context(), mirror.FeedQuery{})))
		for _, store := range []mirror.Store{to, struct{ mirror.Store }{mirror.NewMemory()}} {
			in, err := mirror.Import(t.Context(), store, bytes.NewReader(lines.Bytes()), false)
			require.NoError(t, err)
			require.Equal(t, 1, in.Feeds+in.Same)
		}
	}
	carry()
	require.Equal(t, marksOf(t, from, "urn:feed"), marksOf(t, to, "urn:feed"))

	require.NoError(t, to.Mark(t.Context(), "urn:feed", []string{"to come"}, func(m *mirror.Marks) {
		m.Read, m.Starred, m.Forward, m.Labels = at(1), at(1), at(9), []string{"c"}
	}))
	carry() // the feed is here already, in the same state
	require.Equal(t, &mirror.Marks{
		Feed: "urn:feed", ID: "to come", Read: at(2), Starred: at(1), Forward: at(9), Position: time.Minute, Labels: []string{"c", "a", "b"},
	}, marksOf(t, to, "urn:feed")[0])
}

// Erasing an entry erases its marks, also where an import would bring them back.
func TestMarksErased(t *testing.T) {
	store := mirror.NewMemory()
	put(t, store, "urn:feed", false, 2)
	star := func(m *mirror.Marks) { m.Starred = time.Now() }
	require.NoError(t, store.Mark(t.Context(), "urn:feed", []string{"urn:feed#0", "urn:feed#1"}, star))
	var lines bytes.Buffer
	require.NoError(t, mirror.Export(t.Context(), &lines, store, store.Feeds(t.Context(), mirror.FeedQuery{})))
	require.Equal(t, 2, strings.Count(lines.String(), `"type":"marks"`))
	require.NoError(t, (&mirror.Mirror{Store: store}).Erase(t.Context(), "urn:feed", "urn:feed#0"))
	left := func() (ids []string) {
		for _, m := range marksOf(t, store, "urn:feed") {
			ids = append(ids, m.ID)
		}
		return ids
	}
	require.Equal(t, []string{"urn:feed#1"}, left())
	_, err := mirror.Import(t.Context(), store, bytes.NewReader(lines.Bytes()), true)
	require.NoError(t, err)
	require.Equal(t, []string{"urn:feed#1"}, left())
}

// The public view shows and takes no marks of private feeds.
func TestMarksPublic(t *testing.T) {
	full := mirror.NewMemory()
	view := mirror.Public(full)
	read := func(m *mirror.Marks) { m.Read = time.Now() }
	for _, url := range []string{"urn:a", "urn:b", "urn:private"} {
		put(t, full, url, url == "urn:private", 1)
		require.NoError(t, full.Mark(t.Context(), url, []string{"1", "2"}, read))
	}
	q := mirror.MarksQuery{With: "read"}
	all := feedtest.All(t, view.Marks(t.Context(), q))
	require.Len(t, all, 4)
	require.False(t, slices.ContainsFunc(all, func(m *mirror.Marks) bool { return m.Feed == "urn:private" }))
	q.Limit = 3
	require.Len(t, feedtest.All(t, view.Marks(t.Context(), q)), 3)
	require.ErrorIs(t, view.Mark(t.Context(), "urn:private", []string{"1"}, read), mirror.ErrNotFound)
	require.NoError(t, view.Mark(t.Context(), "urn:a", []string{"3"}, read))
	require.Len(t, marksOf(t, full, "urn:a"), 3)
	none := mirror.Public(struct{ mirror.Store }{full})
	require.Error(t, none.Mark(context.Background(), "urn:a", []string{"1"}, read))
}
