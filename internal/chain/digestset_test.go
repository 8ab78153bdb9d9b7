package chain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A digestSet and a map have the same members.
func TestDigestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8*digestRun).Draw(t, "size")
		step := rapid.Uint64().Draw(t, "step") | 1
		var s digestSet
		for i := range uint64(n) {
			require.False(t, s.has(i*step))
			s.add(i * step)
		}
		require.Equal(t, n, s.size)
		for i := range uint64(n) {
			require.True(t, s.has(i*step))
		}
		for i := range uint64(n) {
			require.False(t, s.has((uint64(n)+i)*step))
		}
		for i, run := range s.runs[min(1, len(s.runs)):] {
			require.GreaterOrEqual(t, len(s.runs[i]), 2*len(run))
		}
	})
}
