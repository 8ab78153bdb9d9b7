package feedhistory

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// merge merges documents, newest first, which cannot fail.
func merge(t require.TestingT, docs ...*Document) *History {
	h, err := Merge(feedtest.Values(docs...))
	require.NoError(t, err)
	require.Equal(t, len(docs), h.Documents)
	return h
}

// parsed reads documents.
func parsed(t *testing.T, texts ...string) (docs []*Document) {
	t.Helper()
	for _, text := range texts {
		d, err := Parse(strings.NewReader(text), "http://example.org/")
		require.NoError(t, err)
		docs = append(docs, d)
	}
	return docs
}

// at returns a time n seconds after the first; zero means none.
func at(n int) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(1_000_000_000+int64(n), 0).UTC()
}

// ids returns the entries' ids, sorted.
func ids(entries []*Entry) []string {
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// winners returns the kept copies by id.
func winners(h *History) map[string]*Entry {
	kept := map[string]*Entry{}
	for _, e := range h.Entries {
		kept[e.ID] = e
	}
	return kept
}

var id = rapid.Map(rapid.IntRange(0, 9), strconv.Itoa)

// documents draws documents, with entries drawn from the generator.
func documents(entry *rapid.Generator[*Entry], times *rapid.Generator[int]) *rapid.Generator[[]*Document] {
	document := rapid.Custom(func(t *rapid.T) *Document {
		return &Document{Updated: at(times.Draw(t, "document time")), Entries: rapid.SliceOfN(entry, 0, 8).Draw(t, "entries")}
	})
	return rapid.SliceOfN(document, 1, 6)
}

// distinct gives all entries different times, in random order.
func distinct(t *rapid.T, docs []*Document) {
	var all []*Entry
	for _, d := range docs {
		all = append(all, d.Entries...)
	}
	for i, e := range rapid.Permutation(all).Draw(t, "times") {
		e.Updated = at(i + 1)
	}
}

var (
	anyTime   = rapid.IntRange(0, 5)
	someTime  = rapid.IntRange(1, 5)
	datedOnce = rapid.Custom(func(t *rapid.T) *Entry { return &Entry{ID: id.Draw(t, "id")} })
	datedAny  = rapid.Custom(func(t *rapid.T) *Entry {
		return &Entry{ID: id.Draw(t, "id"), Updated: at(anyTime.Draw(t, "time"))}
	})
)

// Any set of entries, split into documents in any way and with any duplicates, merges to the
// same set.
func TestMergeIsTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(datedAny, anyTime).Draw(t, "documents")
		want := map[string]bool{}
		for _, d := range docs {
			for _, e := range d.Entries {
				want[e.ID] = true
			}
		}
		h := merge(t, docs...)
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), ids(h.Entries))
		require.Empty(t, h.Deleted)
		require.Empty(t, h.Gaps)
	})
}

// 5005#20: the most recently updated copy wins, in any order and split of the copies.
func TestMergeKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(datedOnce, anyTime).Draw(t, "documents")
		distinct(t, docs)
		want := map[string]*Entry{}
		for _, d := range docs {
			for _, e := range d.Entries {
				if want[e.ID] == nil || e.Updated.After(want[e.ID].Updated) {
					want[e.ID] = e
				}
			}
		}
		require.Equal(t, want, winners(merge(t, docs...)))
		require.Equal(t, want, winners(merge(t, rapid.Permutation(docs).Draw(t, "order")...)))
		require.Equal(t, want, winners(merge(t, slices.Concat(docs, docs)...)), "read twice")
	})
}

// If documents have different times, the winner does not depend on their order, whichever
// entries have times and however many of these are equal.
func TestMergeIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(datedAny, someTime).Draw(t, "documents")
		for i, d := range rapid.Permutation(docs).Draw(t, "document times") {
			d.Updated = at(i + 1)
		}
		h, again := merge(t, docs...), merge(t, rapid.Permutation(docs).Draw(t, "order")...)
		for id, e := range winners(h) {
			require.Same(t, e, winners(again)[id])
		}
	})
}

// 5005#21: among copies with the same time, or none, the one from the most recently updated
// document wins; without any times, the one from the first document.
func TestMergeByDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(datedOnce, rapid.Just(0)).Draw(t, "documents")
		same := at(anyTime.Draw(t, "every entry's time"))
		dated := rapid.Bool().Draw(t, "documents have times")
		order := docs
		if dated {
			order = rapid.Permutation(docs).Draw(t, "document times")
		}
		want := map[string]*Entry{}
		for i, d := range order { // newest first
			if dated {
				d.Updated = at(100 - i)
			}
			for _, e := range d.Entries {
				e.Updated = same
				if want[e.ID] == nil {
					want[e.ID] = e
				}
			}
		}
		kept := winners(merge(t, docs...))
		require.Len(t, kept, len(want))
		for id, e := range want {
			require.Same(t, e, kept[id])
		}
	})
}

// RFC 6721: an entry exists unless a tombstone is not older than its newest copy, in any order
// and split.
func TestMergeTombstones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := documents(datedOnce, anyTime).Draw(t, "documents")
		distinct(t, docs)
		updated, deleted := map[string]time.Time{}, map[string]time.Time{}
		for _, d := range docs {
			for _, e := range d.Entries {
				if e.Updated.After(updated[e.ID]) {
					updated[e.ID] = e.Updated
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "tombstones") {
				stone := Tombstone{Ref: id.Draw(t, "ref"), When: at(rapid.IntRange(1, 50).Draw(t, "when"))}
				d.Deleted = append(d.Deleted, stone)
				if stone.When.After(deleted[stone.Ref]) {
					deleted[stone.Ref] = stone.When
				}
			}
		}
		var present, gone []string
		for id, when := range updated {
			if deleted[id].Before(when) {
				present = append(present, id)
			}
		}
		for id, when := range deleted {
			if !updated[id].After(when) {
				gone = append(gone, id)
			}
		}
		for _, docs := range [][]*Document{docs, rapid.Permutation(docs).Draw(t, "order")} {
			h := merge(t, docs...)
			require.ElementsMatch(t, present, ids(h.Entries))
			var refs []string
			for _, d := range h.Deleted {
				refs = append(refs, d.Ref)
				require.Equal(t, deleted[d.Ref], d.When, "the latest tombstone")
			}
			require.ElementsMatch(t, gone, refs)
		}
	})
}

// Entries are in the order of the documents, and of their first places in these.
func TestMergeOrder(t *testing.T) {
	h := merge(t,
		&Document{Entries: []*Entry{{ID: "5"}, {ID: "4"}}},
		&Document{Entries: []*Entry{{ID: "4"}, {ID: "3"}}},
		&Document{Entries: []*Entry{{ID: "3"}, {ID: "5", Updated: at(1)}, {ID: "2"}}},
	)
	var got []string
	for _, e := range h.Entries {
		got = append(got, e.ID)
	}
	require.Equal(t, []string{"5", "4", "3", "2"}, got)
}

// A Merger returns at any time what Merge returns for the documents so far; one that keeps no
// entries returns the same except for those.
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

// requireSameHistory compares everything but the times at which gaps were found.
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
