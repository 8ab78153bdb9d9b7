package mirror

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A feed that waits or is being polled is not added again, and the list of
// hosts does not grow for ever.
func TestQueue(t *testing.T) {
	q := newQueue(time.Second)
	now := time.Unix(0, 0)
	for range 2 {
		q.add("a1", "a")
		q.add("a2", "a")
		q.add("b1", "b")
	}
	require.Equal(t, 3, q.waiting)
	var order []string
	var turns []*turn
	for t := q.next(now); t != nil; t = q.next(now) {
		order, turns = append(order, t.feed), append(turns, t)
		q.add(t.feed, t.lane.host)
	}
	require.Equal(t, []string{"a1", "b1"}, order)
	_, ok := q.wake()
	require.False(t, ok, "nobody rests")
	q.done(turns[0], now)
	at, ok := q.wake()
	require.True(t, ok)
	require.Equal(t, now.Add(time.Second), at)
	q.done(turns[1], now)
	last := q.next(at)
	require.NotNil(t, last)
	require.Equal(t, "a2", last.feed)
	q.done(last, at)
	require.Nil(t, q.next(at.Add(time.Second)))
	require.Empty(t, q.hosts)
	require.Empty(t, q.turns)
}
