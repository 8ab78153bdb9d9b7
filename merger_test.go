package feedhistory

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A Merger tells at any time what Merge makes of what has come until then, and
// one that keeps no entries the same of all else.
func TestMerger(t *testing.T) { rapid.Check(t, checkMerger) }

func checkMerger(t *rapid.T) {
	type item struct {
		doc *Document
		err error
	}
	ids := rapid.SampledFrom([]string{"1", "2", "3"})
	times := rapid.IntRange(0, 3)
	draw := rapid.Custom(func(t *rapid.T) item {
		doc := &Document{URL: "http://example.org/" + ids.Draw(t, "url")}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			doc.Entries = append(doc.Entries, &Entry{ID: ids.Draw(t, "id"), Updated: at(times.Draw(t, "updated"))})
		}
		for range rapid.IntRange(0, 2).Draw(t, "deletions") {
			doc.Deleted = append(doc.Deleted, Tombstone{Ref: ids.Draw(t, "ref"), When: at(times.Draw(t, "when"))})
		}
		switch rapid.IntRange(0, 9).Draw(t, "outcome") {
		case 0:
			return item{nil, &Gap{URL: doc.URL, Reason: ReasonTruncated, Err: errors.New("cut"), Document: doc}}
		case 1:
			return item{nil, &Unchanged{Known: Known{Kind: Archived}}}
		case 2:
			return item{doc, errors.New("the network is down")}
		}
		return item{doc, nil}
	})
	items := rapid.SliceOfN(draw, 0, 6).Draw(t, "items")

	var merger Merger
	streaming := Merger{Streaming: true}
	for n := range len(items) + 1 {
		want, wantErr := Merge(func(yield func(*Document, error) bool) {
			for _, i := range items[:n] {
				if !yield(i.doc, i.err) {
					return
				}
			}
		})
		got, err := merger.History()
		requireSameHistory(t, want, got)
		require.Equal(t, wantErr, err)

		light, err := streaming.History()
		require.Equal(t, wantErr, err)
		if want != nil {
			require.Empty(t, light.Entries)
			require.Equal(t, want.Verdict(), light.Verdict())
			require.Equal(t, want.Documents, light.Documents)
			require.Equal(t, len(want.Gaps), len(light.Gaps))
		}
		if n < len(items) {
			ended := slices.ContainsFunc(items[:n+1], func(i item) bool { return i.doc != nil && i.err != nil })
			require.Equal(t, !ended, merger.Add(items[n].doc, items[n].err))
			streaming.Add(items[n].doc, items[n].err)
		}
	}
}

// requireSameHistory compares all but when gaps were found.
func requireSameHistory(t require.TestingT, want, got *History) {
	if want == nil {
		require.Nil(t, got)
		return
	}
	require.Equal(t, len(want.Gaps), len(got.Gaps))
	for i, gap := range want.Gaps {
		require.Equal(t, gap.Error(), got.Gaps[i].Error())
	}
	a, b := *want, *got
	a.Gaps, b.Gaps = nil, nil
	require.Equal(t, a, b)
}
