package chain

import (
	"iter"
	"strconv"
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

// A chain of many documents: its first and its latest facts are known, and each document.
// Below the bound, all are.
func TestManyFacts(t *testing.T) {
	const size, most = 100, 10_000
	const documents = 5 * most / size
	facts := func(first int) iter.Seq[Fact] {
		return func(yield func(Fact) bool) {
			for i := range size {
				if !yield(Fact{ID: strconv.Itoa(first + (i+7)%size)}) {
					return
				}
			}
		}
	}
	address := func(n int) string { return "https://example.org/" + strconv.Itoa(n) }
	d := NewLoopDetector()
	d.limits = factLimits{first: most, latest: most}
	d.Begin()
	for n := range documents {
		if n*size == 2*most {
			require.False(t, d.IsNew(facts(n*size/2+size/2)), "all are known yet")
		}
		doc := Document{Asked: address(n), URL: address(n), Self: address(0), Text: address(n), Facts: facts(n * size)}
		d.See(doc.Asked)
		require.Empty(t, d.Repeats(doc))
		require.True(t, d.Record(doc))
	}
	for name, n := range map[string]int{"first": 0, "middle": documents / 2, "last": documents - 1} {
		again := Document{Asked: address(-1), URL: address(-1), Self: address(0), Text: name, Facts: facts(n * size)}
		require.Contains(t, d.Repeats(again), "it brings nothing new", name)
		require.False(t, d.IsNew(again.Facts), name)
		require.False(t, d.Record(again), name)
		require.True(t, d.HasSeen(address(n)), name)
	}
	require.False(t, d.IsNew(facts(size/2)), "of two documents")
	require.False(t, d.IsNew(facts(documents*size-3*size/2)), "of two documents")
	require.True(t, d.IsNew(facts(documents*size-size/2)))
	require.True(t, d.IsNew(facts(2*most+size/2)), "forgotten")
	require.LessOrEqual(t, d.facts[1].first.size+d.facts[1].old.size+d.facts[1].young.size, 3*most)
}
