package datareplication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoundTrip checks that the client gets each entity that the producer
// publishes exactly once.
//
// Duties: datareplication#consumer-2.
func TestRoundTrip(t *testing.T) {
	out := newMemory()
	p, w := newProducer(out), serve(out)
	got, cursor := harvest(t, w, Mark{})
	require.Empty(t, got)
	require.True(t, cursor.IsZero())
	for i := range 20 {
		require.NoError(t, p.Append(t.Context(), entities(2*i, 2)...))
		got, cursor = harvest(t, w, cursor)
		require.Equal(t, ids(2*i, 2), got)
	}
	got, _ = harvest(t, w, cursor)
	require.Empty(t, got)
	got, again := harvest(t, w, Mark{})
	require.Equal(t, ids(0, 40), got)
	require.Equal(t, cursor, again)
	s, err := loadState(out)
	require.NoError(t, err)
	require.Greater(t, s.Newest.Number, 5)
	t.Log(w.log[len(w.log)-20:])
}
