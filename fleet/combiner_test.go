package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Everybody gets an answer: if a group fails, each request is done by itself.
func TestCombiner(t *testing.T) {
	odd := errors.New("odd")
	var mu sync.Mutex
	done, largest := map[int]int{}, 0
	release := make(chan struct{})
	c := &combiner[int]{do: func(_ context.Context, group []int) error {
		<-release
		mu.Lock()
		defer mu.Unlock()
		largest = max(largest, len(group))
		if slices.ContainsFunc(group, func(n int) bool { return n%50 == 7 }) {
			return odd
		}
		for _, n := range group {
			done[n]++
		}
		return nil
	}}
	var all sync.WaitGroup
	for n := range 1000 {
		all.Go(func() {
			err := c.ask(n)
			if n%50 == 7 {
				require.ErrorIs(t, err, odd)
			} else {
				require.NoError(t, err)
			}
		})
		if n == 500 { // the first group has at most 100 of them, and the second is full
			require.Eventually(t, func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(c.waiting) > together
			}, 5*time.Minute, time.Millisecond)
			close(release)
		}
	}
	all.Wait()
	require.Len(t, done, 980)
	for n, times := range done {
		require.Equal(t, 1, times, n)
	}
	require.Equal(t, together, largest)
}
