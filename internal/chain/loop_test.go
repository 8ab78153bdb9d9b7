package chain

import (
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A document repeats an earlier one of its chain by its URL, its bytes, or its self link.
func TestLoopDetector(t *testing.T) {
	const site = "https://example.org"
	facts := func(ids ...string) (all []Fact) {
		for _, id := range ids {
			all = append(all, Fact{ID: id, Time: 1})
		}
		return all
	}
	newest := Document{Asked: site + "/", URL: site + "/", Self: site + "/feed", Text: "newest", Facts: slices.Values(facts("a", "b"))}
	for name, test := range map[string]struct {
		doc    Document
		chains int // begun since
		want   string
	}{
		"new": {doc: Document{Asked: site + "/2", URL: site + "/2", Text: "2", Facts: slices.Values(facts("c"))}},
		"redirect": {
			doc:  Document{Asked: site + "/2", URL: site + "/", Text: "2", Facts: slices.Values(facts("c"))},
			want: "it redirects to " + site + "/, which has already been read",
		},
		"bytes": {
			doc:  Document{Asked: site + "/2", URL: site + "/2", Text: "newest", Facts: slices.Values(facts("c"))},
			want: "its content is the same as that of an earlier document",
		},
		"bytes of another chain": {
			doc:    Document{Asked: site + "/2", URL: site + "/2", Text: "newest", Facts: slices.Values(facts("c"))},
			chains: 1,
		},
		"self link": {
			doc:  Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b"))},
			want: "its self link is " + site + "/feed, which has already been read, and it brings nothing new",
		},
		"self link, something new": {doc: Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b", "c"))}},
		"self link, nothing":       {doc: Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts())}},
		"self link elsewhere":      {doc: Document{Asked: site + "/2", URL: "https://other.example/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b"))}},
	} {
		d := NewLoopDetector()
		d.Begin()
		d.See(newest.Asked)
		require.Empty(t, d.Repeats(newest), name)
		require.True(t, d.Record(newest), name)
		for range test.chains {
			d.Begin()
		}
		d.See(test.doc.Asked)
		require.Equal(t, test.want, d.Repeats(test.doc), name)
	}
}

// Chains may meet; a chain's facts are its own.
func TestChains(t *testing.T) {
	facts := slices.Values([]Fact{{ID: "a"}, {ID: "b", Deleted: true}})
	d := NewLoopDetector()
	d.Begin()
	require.True(t, d.IsNew(facts))
	d.See("/1")
	require.True(t, d.Record(Document{Asked: "/1", URL: "/1", Text: "1", Facts: facts}))
	require.False(t, d.Record(Document{Asked: "/1", URL: "/1", Text: "1", Facts: facts}))
	require.True(t, d.Shares(facts))
	require.False(t, d.Joins("/1"))
	d.Begin()
	require.True(t, d.Joins("/1"))
	require.False(t, d.Shares(facts))
	require.False(t, d.IsNew(facts))
	require.True(t, d.HasRead("1"))
	d.Forget("/1")
	require.False(t, d.HasSeen("/1"))
}

// Each fact of the first document counts once where a later one repeats it.
func TestRepeatsFirst(t *testing.T) {
	first := slices.Values([]Fact{{ID: "a"}, {ID: "b"}})
	d := NewLoopDetector()
	d.Begin()
	require.False(t, d.RepeatsFirst(first))
	require.True(t, d.RepeatsFirst(slices.Values([]Fact{{ID: "b"}, {ID: "c"}})))
	require.False(t, d.RepeatsFirst(slices.Values([]Fact{{ID: "b"}})))
	require.True(t, d.RepeatsFirst(first))
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
