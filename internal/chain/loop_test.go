package chain_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/chain"
)

// A document repeats an earlier one of its chain by its URL, its bytes, or its self link.
func TestLoopDetector(t *testing.T) {
	const site = "https://example.org"
	facts := func(ids ...string) (all []chain.Fact) {
		for _, id := range ids {
			all = append(all, chain.Fact{ID: id, Time: 1})
		}
		return all
	}
	newest := chain.Document{Asked: site + "/", URL: site + "/", Self: site + "/feed", Text: "newest", Facts: slices.Values(facts("a", "b"))}
	for name, test := range map[string]struct {
		doc    chain.Document
		chains int // begun since
		want   string
	}{
		"new": {doc: chain.Document{Asked: site + "/2", URL: site + "/2", Text: "2", Facts: slices.Values(facts("c"))}},
		"redirect": {
			doc:  chain.Document{Asked: site + "/2", URL: site + "/", Text: "2", Facts: slices.Values(facts("c"))},
			want: "it redirects to " + site + "/, which has already been read",
		},
		"bytes": {
			doc:  chain.Document{Asked: site + "/2", URL: site + "/2", Text: "newest", Facts: slices.Values(facts("c"))},
			want: "its content is the same as that of an earlier document",
		},
		"bytes of another chain": {
			doc:    chain.Document{Asked: site + "/2", URL: site + "/2", Text: "newest", Facts: slices.Values(facts("c"))},
			chains: 1,
		},
		"self link": {
			doc:  chain.Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b"))},
			want: "its self link is " + site + "/feed, which has already been read, and it brings nothing new",
		},
		"self link, something new": {doc: chain.Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b", "c"))}},
		"self link, nothing":       {doc: chain.Document{Asked: site + "/2", URL: site + "/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts())}},
		"self link elsewhere":      {doc: chain.Document{Asked: site + "/2", URL: "https://other.example/2", Self: site + "/feed", Text: "2", Facts: slices.Values(facts("b"))}},
	} {
		d := chain.NewLoopDetector()
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
	facts := slices.Values([]chain.Fact{{ID: "a"}, {ID: "b", Deleted: true}})
	d := chain.NewLoopDetector()
	d.Begin()
	require.True(t, d.IsNew(facts))
	d.See("/1")
	require.True(t, d.Record(chain.Document{Asked: "/1", URL: "/1", Text: "1", Facts: facts}))
	require.False(t, d.Record(chain.Document{Asked: "/1", URL: "/1", Text: "1", Facts: facts}))
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
	first := slices.Values([]chain.Fact{{ID: "a"}, {ID: "b"}})
	d := chain.NewLoopDetector()
	d.Begin()
	require.False(t, d.RepeatsFirst(first))
	require.True(t, d.RepeatsFirst(slices.Values([]chain.Fact{{ID: "b"}, {ID: "c"}})))
	require.False(t, d.RepeatsFirst(slices.Values([]chain.Fact{{ID: "b"}})))
	require.True(t, d.RepeatsFirst(first))
}
