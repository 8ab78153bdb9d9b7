package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func testRecordRoundTrip(t *testing.T, w world) {
	var full mirror.Record
	fill(&full)
	full.Feed, full.ID, full.State = feedURL, "full", mirror.Deleted
	unseen := &mirror.Record{
		Feed: feedURL, ID: "unseen", State: mirror.Unseen,
		Tombstone: mirror.TombstoneRecord{When: at(1), Rank: mirror.Rank{Time: at(2), Seq: -3}},
	}
	bare := &mirror.Record{Feed: feedURL, ID: "bare", State: mirror.Live}
	w.commit(feedURL, mirror.Commit{Put: []*mirror.Record{&full, bare}, Touch: []*mirror.Record{unseen}})

	got, err := w.other.Records(w.ctx, feedURL, []string{"unseen", "unknown", "full", "bare", "full"})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, feedhistory.Format(0), got["unseen"].Content.Format)
	same(t, unseen, got["unseen"])
	same(t, bare, got["bare"])
	known := full
	known.Content = mirror.Content{
		Format: full.Content.Format, Updated: full.Content.Updated, Published: full.Content.Published, Size: full.Content.Size,
	}
	same(t, &known, got["full"])
	require.True(t, got["full"].Time().Equal(full.Time()))

	entries := w.entries(mirror.Query{Feed: feedURL, Deleted: true})
	require.Len(t, entries, 2, "a tombstone alone is no entry")
	same(t, &full, entries[0])
	same(t, bare, entries[1])

	got, err = w.Records(w.ctx, feedURL, nil)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = w.Records(w.ctx, "another feed", []string{"full"})
	require.NoError(t, err)
	require.Empty(t, got)
}

// oddIDs returns different IDs, however similar they look.
func oddIDs() []string {
	ids := append([]string{"", " ", "a", "A", "a ", " a", "á", "a\u0301", "a\t", "tag:a,2005:%_?$1", "[\"a\"]", "{a,b}", "null"}, oddURLs...)
	return append(ids, long('x', 4<<10), long('y', 4<<10), long('y', 4<<10-1))
}

func testRecordIDs(t *testing.T, w world) {
	ids := slices.Compact(sorted(oddIDs()))
	for range 2 {
		var records []*mirror.Record
		for i, id := range ids {
			r := live(id, at(0))
			r.Content.Title, r.Copy.Digest = fmt.Sprint(i), fmt.Sprint(i)
			records = append(records, r)
		}
		w.put(feedURL, records...)
	}
	found, err := w.Records(w.ctx, feedURL, ids)
	require.NoError(t, err)
	require.Len(t, found, len(ids))
	for _, id := range ids {
		require.Equal(t, id, found[id].ID)
	}
	for _, r := range w.entries(mirror.Query{Feed: feedURL}) {
		require.Equal(t, r.ID, ids[parse(t, r.Content.Title)])
	}
	descending := reversed(sorted(ids))
	require.Equal(t, descending, w.ids(mirror.Query{}), "of one time, by ID")
	for i, id := range descending {
		require.Equal(t, none(descending[i+1:]), w.ids(mirror.Query{Beyond: &mirror.Place{Time: at(0), Feed: feedURL, ID: id}}))
		zero := int64(0)
		require.Equal(t, none(reversed(descending[:i])),
			w.ids(mirror.Query{Feed: feedURL, AfterCommit: &zero, Beyond: &mirror.Place{Commit: 1, ID: id}}))
	}
	for i, id := range ids {
		w.commit(feedURL, mirror.Commit{Versions: []*mirror.Version{{ID: id, Copy: mirror.Copy{Digest: fmt.Sprint("v", i)}}}, Keep: 1})
	}
	for i, id := range ids {
		versions := feedtest.All(t, w.Versions(w.ctx, feedURL, id))
		require.Len(t, versions, 1)
		same(t, &mirror.Version{ID: id, Copy: mirror.Copy{Digest: fmt.Sprint("v", i)}}, versions[0])
	}
}

func testRecordTimes(t *testing.T, w world) {
	var last time.Time
	for i, instant := range []time.Time{
		{},
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC),
		time.Date(999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Unix(0, 0),
		time.Date(2024, 3, 10, 1, 59, 59, 100000000, time.FixedZone("", -8*3600)),
		time.Date(2024, 3, 10, 15, 29, 59, 100000001, time.FixedZone("", 5*3600+1800)),
		time.Now(),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	} {
		r := live("a", instant)
		r.Added, r.Changed, r.Content.Published, r.Tombstone.When, r.Tombstone.Rank.Time = instant, instant, instant, instant, instant
		w.put(feedURL, r)
		r.Feed = feedURL
		got := w.entries(mirror.Query{})
		require.Len(t, got, 1, "%v", instant)
		same(t, r, got[0], "%v", instant)
		require.Equal(t, instant.IsZero(), got[0].Added.IsZero())
		if i > 0 {
			require.Len(t, w.entries(mirror.Query{Since: instant}), 1)
			require.Empty(t, w.entries(mirror.Query{Until: instant}), "%v", instant)
			require.Len(t, w.entries(mirror.Query{Beyond: &mirror.Place{Time: instant, Feed: feedURL, ID: "b"}}), 1, "%v", instant)
			require.Empty(t, w.entries(mirror.Query{Beyond: &mirror.Place{Time: last}}), "%v", instant)
			require.Empty(t, w.entries(mirror.Query{Beyond: got[0].Place()}))
		}
		last = instant
	}
}

func testPut(t *testing.T, w world) {
	w.put(feedURL, live("a", at(1)), live("b", at(2)))
	w.put("another", live("a", at(3)))
	changed := live("a", at(4))
	changed.Content, changed.Copy.Digest, changed.LastCommit = content("New", "words", at(4)), "new", 2
	w.put(feedURL, changed)
	changed.Feed = feedURL
	entries := w.entries(mirror.Query{})
	require.Len(t, entries, 3)
	same(t, changed, entries[0])
	require.Equal(t, "another", entries[1].Feed)
	require.Equal(t, "b", entries[2].ID)
}

func testMark(t *testing.T, w world) {
	a := live("a", at(1))
	w.put(feedURL, a)
	var mark mirror.Record
	fill(&mark)
	mark.Feed, mark.ID, mark.State = "disregarded", "a", mirror.Absent
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{&mark}, Keep: 3})
	require.Empty(t, w.entries(mirror.Query{}))
	want := mark
	want.Feed, want.Content = feedURL, a.Content
	got := w.entries(mirror.Query{Deleted: true})
	require.Len(t, got, 1)
	same(t, &want, got[0])
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "a")), "marking makes no version")

	// An entry without a time of its own sorts by when it was added, in Touch,
	// too.
	bare := live("bare", time.Time{})
	w.put(feedURL, bare)
	bare.Added = at(7)
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{bare}})
	require.Equal(t, []string{"bare"}, w.ids(mirror.Query{Since: at(7)}))
	require.Equal(t, []string{"bare"}, w.ids(mirror.Query{Search: "content"}), "content that was only marked is found")
}

func testVersions(t *testing.T, w world) {
	version := func(digest string, hours int) *mirror.Record {
		r := live("a", at(hours))
		r.Copy.Digest = digest
		r.Content = content("Title "+digest, "Content", at(hours))
		return r
	}
	of := func(records ...*mirror.Record) (versions []*mirror.Version) {
		for _, r := range records {
			versions = append(versions, &mirror.Version{ID: r.ID, Copy: r.Copy, Content: r.Content})
		}
		return versions
	}
	has := func(records ...*mirror.Record) {
		t.Helper()
		same(t, of(records...), feedtest.All(t, w.Versions(w.ctx, feedURL, "a")))
	}
	one, two, three, older := version("one", 1), version("two", 2), version("three", 3), version("older", 0)
	w.put(feedURL, one, live("b", at(1)))
	has()
	w.put(feedURL, two)
	has(one)
	w.put(feedURL, three)
	has(two, one)
	w.commit(feedURL, mirror.Commit{Versions: of(older, two, three, older), Keep: 9})
	has(two, one, older)
	again := version("two", 4)
	w.put(feedURL, again)
	has(three, one, older) // a version current again is not an earlier one
	marked := version("two", 5)
	w.put(feedURL, marked)
	has(three, one, older)
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "b")))
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, "another", "a")))

	// If times are equal, the rank of the document decides.
	place := func(digest string, rank, place int) *mirror.Record {
		r := version(digest, 1)
		r.Copy.Rank = mirror.Rank{Time: at(rank), Seq: int64(place)}
		return r
	}
	x, y, z := place("x", 3, -1), place("y", 3, 10), place("z", 4, 2)
	w.commit(feedURL, mirror.Commit{Versions: of(x, z, y), Keep: 9})
	has(three, z, y, x, one, older)

	// A tombstone alone is not a version.
	unseen := &mirror.Record{ID: "c", State: mirror.Unseen}
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{unseen}, Keep: 9})
	w.put(feedURL, live("c", at(1)))
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "c")))

	var full mirror.Version
	fill(&full)
	full.ID = "d"
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Version{&full}, Keep: 1})
	same(t, []*mirror.Version{&full}, feedtest.All(t, w.other.Versions(w.ctx, feedURL, "d")))
}

func testKeep(t *testing.T, w world) {
	put := func(id string, n, keep int) {
		r := live(id, at(n))
		r.Copy.Digest = fmt.Sprint(n)
		w.commit(feedURL, mirror.Commit{Put: []*mirror.Record{r}, Keep: keep})
	}
	has := func(id string, digests ...string) {
		t.Helper()
		var got []string
		for _, v := range feedtest.All(t, w.Versions(w.ctx, feedURL, id)) {
			got = append(got, v.Copy.Digest)
		}
		require.Equal(t, digests, got)
	}
	for n := range 5 {
		put("a", n, 3)
		put("b", n, 9)
		put("c", n, 9)
	}
	has("a", "3", "2", "1")
	has("b", "3", "2", "1", "0")
	old := &mirror.Version{ID: "a", Copy: mirror.Copy{At: at(-1), Digest: "old"}}
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Version{old}, Keep: 3})
	has("a", "3", "2", "1")
	mark := live("b", at(4))
	mark.Copy.Digest = "4"
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{mark}, Keep: 2})
	has("b", "3", "2")
	has("c", "3", "2", "1", "0")
	put("b", 5, 0)
	has("b")
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Version{old}})
	has("a")
	has("c", "3", "2", "1", "0") // was not touched
}
