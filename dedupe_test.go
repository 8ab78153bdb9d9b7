package feedhistory_test

import (
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// merge merges documents, newest first, which cannot fail.
func merge(t require.TestingT, docs ...*feedhistory.Document) *feedhistory.History {
	h, err := feedhistory.Merge(feedhistory.Readings(docs...))
	require.NoError(t, err)
	require.Equal(t, len(docs), h.Documents)
	return h
}

// parsed reads documents.
func parsed(t *testing.T, texts ...string) (docs []*feedhistory.Document) {
	t.Helper()
	for _, text := range texts {
		d, err := feedhistory.Parse(strings.NewReader(text), "http://example.org/")
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
func ids(entries []*feedhistory.Entry) []string {
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// winners returns the kept copies by id.
func winners(h *feedhistory.History) map[string]*feedhistory.Entry {
	kept := map[string]*feedhistory.Entry{}
	for _, e := range h.Entries {
		kept[e.ID] = e
	}
	return kept
}

var id = rapid.Map(rapid.IntRange(0, 9), strconv.Itoa)

// documents draws documents, with entries drawn from the generator.
func documents(entry *rapid.Generator[*feedhistory.Entry], times *rapid.Generator[int]) *rapid.Generator[[]*feedhistory.Document] {
	document := rapid.Custom(func(t *rapid.T) *feedhistory.Document {
		return &feedhistory.Document{Updated: at(times.Draw(t, "document time")), Entries: rapid.SliceOfN(entry, 0, 8).Draw(t, "entries")}
	})
	return rapid.SliceOfN(document, 1, 6)
}

// distinct gives all entries different times, in random order.
func distinct(t *rapid.T, docs []*feedhistory.Document) {
	var all []*feedhistory.Entry
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
	datedOnce = rapid.Custom(func(t *rapid.T) *feedhistory.Entry { return &feedhistory.Entry{ID: id.Draw(t, "id")} })
	datedAny  = rapid.Custom(func(t *rapid.T) *feedhistory.Entry {
		return &feedhistory.Entry{ID: id.Draw(t, "id"), Updated: at(anyTime.Draw(t, "time"))}
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
		want := map[string]*feedhistory.Entry{}
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
		want := map[string]*feedhistory.Entry{}
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
				stone := feedhistory.Tombstone{Ref: id.Draw(t, "ref"), When: at(rapid.IntRange(1, 50).Draw(t, "when"))}
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
		for _, docs := range [][]*feedhistory.Document{docs, rapid.Permutation(docs).Draw(t, "order")} {
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
		&feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "5"}, {ID: "4"}}},
		&feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "4"}, {ID: "3"}}},
		&feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "3"}, {ID: "5", Updated: at(1)}, {ID: "2"}}},
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
		*feedhistory.Reading
		err error
	}
	ids := rapid.SampledFrom([]string{"1", "2", "3"})
	times := rapid.IntRange(0, 3)
	draw := rapid.Custom(func(t *rapid.T) item {
		doc := &feedhistory.Document{URL: "http://example.org/" + ids.Draw(t, "url")}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			doc.Entries = append(doc.Entries, &feedhistory.Entry{ID: ids.Draw(t, "id"), Updated: at(times.Draw(t, "updated"))})
		}
		for range rapid.IntRange(0, 2).Draw(t, "deletions") {
			doc.Deleted = append(doc.Deleted, feedhistory.Tombstone{Ref: ids.Draw(t, "ref"), When: at(times.Draw(t, "when"))})
		}
		switch rapid.IntRange(0, 9).Draw(t, "outcome") {
		case 0:
			gap := &feedhistory.Gap{URL: doc.URL, Reason: feedhistory.ReasonTruncated, Err: errors.New("cut"), Document: doc}
			return item{&feedhistory.Reading{Gaps: []*feedhistory.Gap{gap}}, nil}
		case 1:
			return item{&feedhistory.Reading{Unchanged: true, Known: feedhistory.Known{Kind: feedhistory.KindArchived}}, nil}
		case 2:
			return item{&feedhistory.Reading{Document: doc}, errors.New("the network is down")}
		}
		return item{&feedhistory.Reading{Document: doc}, nil}
	})
	items := rapid.SliceOfN(draw, 0, 6).Draw(t, "items")

	var merger feedhistory.Merger
	var streaming feedhistory.Merger // of documents without entries
	for n := range len(items) + 1 {
		want, wantErr := feedhistory.Merge(func(yield func(*feedhistory.Reading, error) bool) {
			for _, i := range items[:n] {
				if !yield(i.Reading, i.err) {
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
			require.Equal(t, want.Verdict(), light.Verdict())
			require.Equal(t, want.Documents, light.Documents)
			require.Equal(t, len(want.Gaps), len(light.Gaps))
		}
		if n < len(items) {
			ended := slices.ContainsFunc(items[:n+1], func(i item) bool { return i.err != nil })
			require.Equal(t, !ended, merger.Add(items[n].Reading, items[n].err))
			light := *items[n].Reading
			light.Document = stripped(light.Document)
			streaming.Add(&light, items[n].err)
		}
	}
}

// stripped returns a copy of a document without its entries and tombstones.
func stripped(doc *feedhistory.Document) *feedhistory.Document {
	if doc == nil {
		return nil
	}
	head := *doc
	head.Entries, head.Deleted = nil, nil
	return &head
}

// requireSameHistory compares everything but the times at which gaps were found.
func requireSameHistory(t require.TestingT, want, got *feedhistory.History) {
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

func TestMergeDuplicates(t *testing.T) {
	const (
		dec1 = "Mon, 01 Dec 2003 00:00:00 GMT"
		dec2 = "Tue, 02 Dec 2003 00:00:00 GMT"
		dec3 = "Wed, 03 Dec 2003 00:00:00 GMT"
	)
	rss := func(built, title, item string) string {
		if built != "" {
			built = "<lastBuildDate>" + built + "</lastBuildDate>"
		}
		return `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/">` +
			"<channel>" + built + "<item><guid>urn:1</guid><title>" + title + "</title>" + item + "</item></channel></rss>"
	}
	atom := func(updated, title, entry string) string {
		if updated != "" {
			updated = "<updated>" + updated + "</updated>"
		}
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + updated +
			"<entry><id>urn:1</id><title>" + title + "</title>" + entry + "</entry></feed>"
	}
	pubDate := func(s string) string { return "<pubDate>" + s + "</pubDate>" }
	updated := func(s string) string { return "<updated>" + s + "</updated>" }

	for _, test := range []struct {
		name string
		docs []string // newest first; the copy that is to be kept is called "this"
	}{
		{"5005#20: newer entry in the older document", []string{
			atom("2003-12-03T00:00:00Z", "that", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "this", updated("2003-12-02T00:00:00Z"))}},
		{"5005#20: newer entry in the newer document", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-03T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-02T00:00:00Z"))}},
		{"5005#20: published is not updated", []string{
			atom("2003-12-03T00:00:00Z", "this", "<published>2003-12-01T00:00:00Z</published>"),
			atom("2003-12-02T00:00:00Z", "that", "<published>2003-12-02T00:00:00Z</published>")}},
		{"5005#21: same time", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: same time, the documents' times disagree with the chain", []string{
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: same time, same document time", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-03T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"5005#21: no times at all", []string{atom("", "this", ""), atom("", "that", ""), atom("", "that", "")}},
		{"5005#21: no entry times, every document of the same time", []string{
			atom("2003-12-03T00:00:00Z", "this", ""),
			atom("2003-12-03T00:00:00Z", "that", ""),
			atom("2003-12-03T00:00:00Z", "that", "")}},
		{"5005#21: same instant in two zones", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-01T00:00:00Z")),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T02:00:00+02:00"))}},
		{"no time, in a document newer than the other copy", []string{
			atom("2003-12-03T00:00:00Z", "this", ""),
			atom("2003-12-02T00:00:00Z", "that", updated("2003-12-01T00:00:00Z"))}},
		{"no time, in a document older than the other copy", []string{
			atom("2003-12-03T00:00:00Z", "this", updated("2003-12-02T00:00:00Z")),
			atom("2003-12-01T00:00:00Z", "that", "")}},
		{"5005#22: older pubDate in the newer document", []string{
			rss(dec3, "this", pubDate(dec1)),
			rss(dec2, "that", pubDate(dec2))}},
		{"5005#22: older pubDate in the newer document, no lastBuildDate", []string{
			rss("", "this", pubDate(dec1)),
			rss("", "that", pubDate(dec2))}},
		{"5005#22: the same pubDate", []string{
			rss(dec3, "this", pubDate(dec1)),
			rss(dec2, "that", pubDate(dec1))}},
		{"5005#22: lastBuildDate decides against the chain", []string{
			rss(dec2, "that", pubDate(dec2)),
			rss(dec3, "this", pubDate(dec1))}},
		{"5005#22: atom:updated counts", []string{
			rss(dec3, "that", pubDate(dec3)+"<a:updated>2003-12-01T00:00:00Z</a:updated>"),
			rss(dec2, "this", pubDate(dec1)+"<a:updated>2003-12-02T00:00:00Z</a:updated>")}},
		{"5005#22: dc:date counts", []string{
			rss(dec3, "that", "<dc:date>2003-12-01T00:00:00Z</dc:date>"),
			rss(dec2, "this", "<dc:date>2003-12-02T00:00:00Z</dc:date>")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := merge(t, parsed(t, test.docs...)...)
			require.Len(t, h.Entries, 1)
			require.Equal(t, "this", h.Entries[0].Title().Plain())
		})
	}
}

// 5005#21, settled: a document without a time has that of its Last-Modified.
func TestMergeLastModified(t *testing.T) {
	older, newer := &feedhistory.Entry{ID: "1"}, &feedhistory.Entry{ID: "1"}
	h := merge(t,
		&feedhistory.Document{LastModified: at(1), Entries: []*feedhistory.Entry{older}},
		&feedhistory.Document{LastModified: at(2), Entries: []*feedhistory.Entry{newer}})
	require.Same(t, newer, h.Entries[0])

	h = merge(t, // its own time goes first
		&feedhistory.Document{Updated: at(3), LastModified: at(1), Entries: []*feedhistory.Entry{newer}},
		&feedhistory.Document{LastModified: at(2), Entries: []*feedhistory.Entry{older}})
	require.Same(t, newer, h.Entries[0])
}

func TestMergeTombstoneRules(t *testing.T) {
	entry := func(n int) *feedhistory.Document {
		return &feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "1", Updated: at(n)}}}
	}
	stone := func(n int) *feedhistory.Document {
		return &feedhistory.Document{Deleted: []feedhistory.Tombstone{{Ref: "1", When: at(n)}}}
	}
	for _, test := range []struct {
		name    string
		docs    []*feedhistory.Document // newest first
		deleted bool
	}{
		{"newer", []*feedhistory.Document{stone(2), entry(1)}, true},
		{"newer, in the older document", []*feedhistory.Document{entry(1), stone(2)}, true},
		{"of the same time", []*feedhistory.Document{stone(1), entry(1)}, true},
		{"of the same time, in the older document", []*feedhistory.Document{entry(1), stone(1)}, true},
		{"stale", []*feedhistory.Document{entry(2), stone(1)}, false},
		{"stale, in the newer document", []*feedhistory.Document{stone(1), entry(2)}, false},
		{"older and newer", []*feedhistory.Document{stone(1), stone(3), entry(2)}, true},
		{"newer and older", []*feedhistory.Document{stone(3), stone(1), entry(2)}, true},
		{"between two copies", []*feedhistory.Document{entry(3), stone(2), entry(1)}, false},
		{"after two copies", []*feedhistory.Document{entry(1), entry(2), stone(3)}, true},
		{"entry without time, newer document", []*feedhistory.Document{entry(0), stone(1)}, false},
		{"entry without time, older document", []*feedhistory.Document{stone(1), entry(0)}, true},
		{"entry without time, between two", []*feedhistory.Document{stone(1), entry(0), stone(2)}, true},
		{"without time, newer document", []*feedhistory.Document{stone(0), entry(1)}, true},
		{"without time, older document", []*feedhistory.Document{entry(1), stone(0)}, false},
		{"alone", []*feedhistory.Document{stone(1)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := merge(t, test.docs...)
			if test.deleted {
				require.Empty(t, h.Entries)
				require.Len(t, h.Deleted, 1)
				return
			}
			require.Len(t, h.Entries, 1)
			require.Empty(t, h.Deleted)
		})
	}
}

func TestMergeErrors(t *testing.T) {
	boom := errors.New("boom")
	gap := &feedhistory.Gap{Reason: feedhistory.ReasonTruncated, Err: boom, Document: &feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "2"}}}}
	of := func(items ...any) iter.Seq2[*feedhistory.Reading, error] {
		return func(yield func(*feedhistory.Reading, error) bool) {
			for _, item := range items {
				r := &feedhistory.Reading{}
				r.Document, _ = item.(*feedhistory.Document)
				if gap, ok := item.(*feedhistory.Gap); ok {
					r.Gaps, item = []*feedhistory.Gap{gap}, nil
				}
				err, _ := item.(error)
				if !yield(r, err) {
					return
				}
			}
		}
	}
	one, three := &feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "1"}}}, &feedhistory.Document{Entries: []*feedhistory.Entry{{ID: "3"}}}

	h, err := feedhistory.Merge(of(one, gap, three))
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, ids(h.Entries), "what was read of a damaged document counts")
	require.Equal(t, 2, h.Documents, "it was not read to its end")
	require.Equal(t, []*feedhistory.Gap{gap}, h.Gaps)
	require.Equal(t, feedhistory.VerdictPartial, h.Verdict())

	h, err = feedhistory.Merge(of(one, boom, three))
	require.ErrorIs(t, err, boom)
	require.Equal(t, []string{"1"}, ids(h.Entries), "nothing is read after another error")

	h, err = feedhistory.Merge(of(boom))
	require.ErrorIs(t, err, boom)
	require.Nil(t, h)

	read := 0
	_, err = feedhistory.Merge(func(yield func(*feedhistory.Reading, error) bool) {
		for r, err := range of(one, boom, three) {
			if read++; !yield(r, err) {
				return
			}
		}
	})
	require.ErrorIs(t, err, boom)
	require.Equal(t, 2, read, "an error ends the sequence")

	var m feedhistory.Merger
	require.False(t, m.Add(nil, nil))
	_, err = m.History()
	require.ErrorContains(t, err, "both the Reading and the error are nil")

	newest, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/1"/></feed>`), "http://a.example/feed")
	require.NoError(t, err)
	h, err = feedhistory.Merge(of(newest, boom))
	require.ErrorIs(t, err, boom)
	require.Len(t, h.Gaps, 2, "the link, and the end")
	require.Equal(t, []string{"http://a.example/1", newest.URL}, []string{h.Gaps[0].URL, h.Gaps[0].From}, "what was due next")
}

// The kind of the history is that of its newest document, also if that has not changed.
func TestMergeKind(t *testing.T) {
	unchanged := func(kind feedhistory.Kind) *feedhistory.Reading {
		return &feedhistory.Reading{Unchanged: true, Known: feedhistory.Known{Kind: kind}}
	}
	read := &feedhistory.Reading{Document: &feedhistory.Document{}}
	for _, c := range []struct {
		want     feedhistory.Kind
		readings []*feedhistory.Reading
	}{
		{feedhistory.KindArchived, []*feedhistory.Reading{unchanged(feedhistory.KindArchived)}},
		{feedhistory.KindArchived, []*feedhistory.Reading{unchanged(feedhistory.KindArchived), unchanged(feedhistory.KindPaged)}},
		{feedhistory.KindArchived, []*feedhistory.Reading{unchanged(feedhistory.KindArchived), read}},
		{feedhistory.KindPlain, []*feedhistory.Reading{read, unchanged(feedhistory.KindPaged)}},
	} {
		var m feedhistory.Merger
		for _, r := range c.readings {
			require.True(t, m.Add(r, nil))
		}
		h, err := m.History()
		require.NoError(t, err)
		require.Equal(t, c.want, h.Kind, len(c.readings))
	}
}

func TestVerdict(t *testing.T) {
	gaps := []*feedhistory.Gap{{Err: errors.New("x")}}
	for _, test := range []struct {
		h    feedhistory.History
		want feedhistory.Verdict
	}{
		{feedhistory.History{Kind: feedhistory.KindComplete}, feedhistory.VerdictWhole},
		{feedhistory.History{Kind: feedhistory.KindArchived}, feedhistory.VerdictWhole},
		{feedhistory.History{Kind: feedhistory.KindPlain}, feedhistory.VerdictWindow},
		{feedhistory.History{Kind: feedhistory.KindPaged}, feedhistory.VerdictLossy}, // 5005#4
		{feedhistory.History{Kind: feedhistory.KindComplete, Gaps: gaps}, feedhistory.VerdictPartial},
		{feedhistory.History{Kind: feedhistory.KindArchived, Gaps: gaps}, feedhistory.VerdictPartial},
		{feedhistory.History{Kind: feedhistory.KindPlain, Gaps: gaps}, feedhistory.VerdictPartial},
		{feedhistory.History{Kind: feedhistory.KindPaged, Gaps: gaps}, feedhistory.VerdictPartial},
	} {
		test.h.Head = &feedhistory.Document{}
		require.Equal(t, test.want, test.h.Verdict())
		test.h.Head.Coverage = &feedhistory.Coverage{} // whose author forgot the verdict
		require.Contains(t, []feedhistory.Verdict{feedhistory.VerdictUnknown, feedhistory.VerdictPartial}, test.h.Verdict())
	}
}

// No zero value claims that anything is there.
func TestNothingIsUnknown(t *testing.T) {
	require.Equal(t, feedhistory.VerdictUnknown, new(feedhistory.History).Verdict())
	require.Equal(t, "unknown", feedhistory.Verdict(0).String())
	gaps := (&feedhistory.Document{URL: "http://example.org/", Coverage: &feedhistory.Coverage{}}).Declared()
	require.Len(t, gaps, 1)
	for v := feedhistory.VerdictUnknown; v <= feedhistory.VerdictWhole; v++ {
		var back feedhistory.Verdict
		require.NoError(t, back.UnmarshalText([]byte(v.String())))
		require.Equal(t, v, back)
		require.Equal(t, v >= feedhistory.VerdictWindow, v == feedhistory.VerdictWindow || v == feedhistory.VerdictWhole)
	}
	require.Equal(t, feedhistory.VerdictUnknown, (*feedhistory.History)(nil).Verdict())
	require.Equal(t, feedhistory.VerdictUnknown, (&feedhistory.History{Head: &feedhistory.Document{}}).Verdict())
	var v feedhistory.Verdict
	require.Error(t, v.UnmarshalText([]byte("splendid")))
	for word, want := range map[string]feedhistory.Verdict{"whole": feedhistory.VerdictWhole, "window": feedhistory.VerdictWindow, "lossy": feedhistory.VerdictLossy, "partial": feedhistory.VerdictPartial} {
		require.NoError(t, v.UnmarshalText([]byte(word))) // as stored by earlier versions
		require.Equal(t, want, v)
	}
}

// The head is the newest document's, without its entries.
func TestMergeHead(t *testing.T) {
	first := &feedhistory.Document{Title: "newest", Complete: true, Entries: []*feedhistory.Entry{{ID: "1"}}, Deleted: []feedhistory.Tombstone{{Ref: "2"}}}
	h := merge(t, first, &feedhistory.Document{Title: "older"})
	require.Equal(t, "newest", h.Head.Title)
	require.Equal(t, feedhistory.KindComplete, h.Kind)
	require.Empty(t, h.Head.Entries)
	require.Empty(t, h.Head.Deleted)
	require.Len(t, first.Entries, 1, "the document itself is left as it was")
}

// Tombstones are in order of time, the latest first.
func TestMergeDeletedOrder(t *testing.T) {
	h := merge(t, &feedhistory.Document{Deleted: []feedhistory.Tombstone{{Ref: "b", When: at(1)}, {Ref: "a", When: at(1)}, {Ref: "c", When: at(2)}}})
	var refs []string
	for _, d := range h.Deleted {
		refs = append(refs, d.Ref)
	}
	require.Equal(t, []string{"c", "a", "b"}, refs)
}

// A reader that leaves a walk before its end does not have everything, wherever it leaves; one
// that has reached the end lacks nothing for that reason.
func TestMergeOfAWalkThatWasLeft(t *testing.T) {
	for _, file := range walks(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			all, items := leave(t, text, 0)
			require.False(t, all != nil && isUnread(all))
			for n := 1; n < min(items, 6); n++ {
				h, _ := leave(t, text, n)
				require.True(t, h == nil || h.Verdict() == feedhistory.VerdictPartial, "left after %d of %d: %v", n, items, h)
			}
		})
	}
}

// A walk says that it is at its end: a reader that leaves there has left nothing.
func TestMergeOfAWalkThatWasLeftAtItsEnd(t *testing.T) {
	const plain = "-- /feed.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><id>urn:1</id></entry></feed>\n"
	h, _ := leave(t, plain, 2)
	require.Equal(t, feedhistory.VerdictWindow, h.Verdict())
	h, _ = leave(t, plain, 1)
	require.True(t, isUnread(h))
	const archived = "-- /feed.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"prev-archive\" href=\"/1.atom\"/></feed>\n" +
		"-- /1.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"next-archive\" href=\"/feed.atom\"/></feed>\n"
	h, _ = leave(t, archived, 3)
	require.Equal(t, feedhistory.VerdictWhole, h.Verdict())
	h, _ = leave(t, archived, 2)
	require.True(t, isUnread(h))
}

// leave leaves a walk after n items; 0 means at its end. It also returns how many there were.
func leave(t *testing.T, site string, n int) (h *feedhistory.History, items int) {
	v := newVisit(t, feedtest.Serve(t, site), optionsOf(feedtest.Parse(site)))
	v.client.PerHost = 1
	defer v.client.CloseIdle()
	var m feedhistory.Merger
	for r, err := range walkFrom(t.Context(), &v.client, v.url, &v.past) {
		m.Add(r, err)
		if items++; items == n {
			break
		}
	}
	h, _ = m.History()
	return h, items
}

// unread is in the error of the gap for the rest of a walk that has been left.
const unread = "the rest of the feed has not been read"

func isUnread(h *feedhistory.History) bool {
	for _, g := range h.Gaps {
		if strings.Contains(g.Error(), unread) {
			return true
		}
	}
	return false
}

// Documents read without a walk are not taken for a whole feed: each link that leads to none
// of them is a gap.
func TestMergeWithoutAWalk(t *testing.T) {
	read := func(path, links string) *feedhistory.Document {
		doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">`+
			links+`<entry><id>`+path+`</id></entry></feed>`), "http://a.example"+path)
		require.NoError(t, err)
		return doc
	}
	archive := func(n string, older string) *feedhistory.Document {
		links := `<fh:archive/><link rel="current" href="/feed"/>`
		if older != "" {
			links += `<link rel="prev-archive" href="` + older + `"/>`
		}
		return read(n, links)
	}
	feed := read("/feed", `<link rel="prev-archive" href="/3"/>`)
	three, two, one := archive("/3", "/2"), archive("/2", "/1"), archive("/1", "")
	for name, test := range map[string]struct {
		docs    []*feedhistory.Document
		unread  []string
		verdict feedhistory.Verdict
	}{
		"all":                    {[]*feedhistory.Document{feed, three, two, one}, nil, feedhistory.VerdictWhole},
		"in another order":       {[]*feedhistory.Document{feed, one, three, two}, nil, feedhistory.VerdictWhole},
		"the first":              {[]*feedhistory.Document{feed}, []string{"/3"}, feedhistory.VerdictPartial},
		"two of four":            {[]*feedhistory.Document{feed, three}, []string{"/2"}, feedhistory.VerdictPartial},
		"without the middle":     {[]*feedhistory.Document{feed, three, one}, []string{"/2"}, feedhistory.VerdictPartial},
		"one archive":            {[]*feedhistory.Document{one}, []string{"/feed"}, feedhistory.VerdictPartial},
		"archives":               {[]*feedhistory.Document{three, two, one}, []string{"/feed"}, feedhistory.VerdictPartial},
		"an archive of a feed":   {[]*feedhistory.Document{read("/x", `<fh:archive/>`)}, []string{"/x"}, feedhistory.VerdictPartial},
		"a page":                 {[]*feedhistory.Document{read("/p", `<link rel="next" href="/p2"/>`)}, []string{"/p2"}, feedhistory.VerdictPartial},
		"pages":                  {[]*feedhistory.Document{read("/p", `<link rel="next" href="/p2"/>`), read("/p2", `<link rel="previous" href="/p"/>`)}, nil, feedhistory.VerdictLossy},
		"a plain feed":           {[]*feedhistory.Document{read("/plain", "")}, nil, feedhistory.VerdictWindow},
		"a complete one":         {[]*feedhistory.Document{read("/c", `<fh:complete/>`)}, nil, feedhistory.VerdictWhole},
		"by the name it has":     {[]*feedhistory.Document{feed, read("/elsewhere", `<fh:archive/><link rel="self" href="/3"/>`)}, nil, feedhistory.VerdictWhole},
		"with a part of its own": {[]*feedhistory.Document{read("/feed", `<link rel="prev-archive" href="/3#part"/>`), archive("/3", "")}, nil, feedhistory.VerdictWhole},
	} {
		for _, streaming := range []bool{false, true} {
			var m feedhistory.Merger
			for _, doc := range test.docs {
				if streaming {
					doc = stripped(doc)
				}
				m.Add(&feedhistory.Reading{Document: doc}, nil)
			}
			h, err := m.History()
			require.NoError(t, err, name)
			var rest []string
			for _, g := range h.Gaps {
				require.ErrorContains(t, g, unread, name)
				rest = append(rest, strings.TrimPrefix(g.URL, "http://a.example"))
			}
			require.Equal(t, test.unread, rest, name)
			require.Equal(t, test.verdict, h.Verdict(), name)
		}
	}
}
