package modifiedrange

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// After each sync a mirror equals the collection, and the next sync asks for
// later changes.
func TestKeep(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	collection := &store{now: start.Add(time.Hour)}
	for i, id := range []string{"urn:a", "urn:b", "urn:c", "urn:d"} {
		collection.put(id, "first", start.Add(time.Duration(i)*time.Second))
	}
	server := feedtest.Server(t, collection.handler(2))
	http := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
	defer http.CloseIdle()
	c := Client{HTTP: http, URL: server.URL + "/collection"}
	m := &mirror.Mirror{Store: &mirror.Memory{}}

	changes, err := c.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, feedhistory.Whole, changes.Verdict)
	require.Equal(t, 4, changes.Added)

	collection.now = start.Add(3 * time.Hour)
	collection.put("urn:a", "second", start.Add(2*time.Hour))
	collection.remove("urn:b", start.Add(2*time.Hour))
	changes, err = c.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1}, []int{changes.Added, changes.Changed, changes.Deleted})
	require.Equal(t, feedhistory.Whole, changes.Verdict)

	got := map[string]string{}
	for _, r := range feedtest.All(t, m.Store.Entries(t.Context(), mirror.Query{Feed: c.URL})) {
		got[r.ID] = r.Content.Title
	}
	require.Equal(t, map[string]string{"urn:a": "second", "urn:c": "first", "urn:d": "first"}, got)

	var state State
	require.NoError(t, m.ReadMark(t.Context(), c.URL, "modified-range", &state))
	require.Equal(t, collection.now.Add(-time.Minute), state.Since)

	server.Close() // what was harvested stays, and so does the state
	_, err = c.Keep(t.Context(), m)
	require.Error(t, err)
	var same State
	require.NoError(t, m.ReadMark(t.Context(), c.URL, "modified-range", &same))
	require.Equal(t, state, same)
}
