package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// rules are the tests whose answers the package's own test knows by heart.
var rules = []test{
	{"Feed", testFeed},
	{"FeedURLs", testFeedURLs},
	{"FeedsByURL", testFeedsByURL},
	{"FeedsDue", testFeedsDue},
	{"Conflict", testConflict},
	{"Number", testNumber},
	{"Remove", testRemove},
	{"RecordRoundTrip", testRecordRoundTrip},
	{"RecordIDs", testRecordIDs},
	{"RecordTimes", testRecordTimes},
	{"Put", testPut},
	{"Touch", testTouch},
	{"Order", testOrder},
	{"Interval", testInterval},
	{"Changes", testChanges},
	{"Deleted", testDeleted},
	{"Search", testSearch},
	{"Versions", testVersions},
	{"Keep", testKeep},
	{"Document", testDocument},
	{"Names", testNames},
	{"DocumentsByRank", testDocumentsByRank},
	{"Forget", testForget},
	{"Ended", testEnded},
}

func testFeed(_ *testing.T, w *world) {
	w.look(feedURL)
	var f mirror.Feed
	fill(&f)
	f.URL = feedURL
	w.commit(feedURL, mirror.Commit{Feed: &f})
	f.Commits = 1
	same(w, &f, w.feed(feedURL))
	w.commit(feedURL, mirror.Commit{Feed: &mirror.Feed{URL: feedURL}})
	same(w, &mirror.Feed{URL: feedURL, Commits: 2}, w.feed(feedURL), "nothing is left of the old state")
}

// oddURLs are URLs to be told apart, and sorted, by each of their bytes.
var oddURLs = []string{
	"HTTPS://example.org/feed", "https://example.org/", "https://example.org/Feed", "https://example.org/feed",
	"https://example.org/feed ", "https://example.org/feed%20", "https://example.org/feed'\"\\",
	"https://example.org/feed\x00", "https://example.org/feed\x01", "https://example.org/fée", "https://example.org/e\u0301",
	"https://example.org/é", "https://example.org/\uffff", "https://example.org/\U0001F600",
	"https://example.org/" + long('a', 8<<10), "https://example.org/" + long('b', 8<<10), "https://example.org/" + long('b', 8<<10-1),
}

// long returns a string that compresses badly, and differs from others in its last
// byte.
func long(last byte, n int) string {
	var b strings.Builder
	for x := uint64(1); b.Len() < n-1; x = x*6364136223846793005 + 1442695040888963407 {
		b.WriteByte('a' + byte(x>>59)%26)
	}
	return b.String() + string(last)
}

func testFeedURLs(_ *testing.T, w *world) {
	for i, url := range oddURLs {
		w.commit(url, mirror.Commit{Feed: &mirror.Feed{URL: url, Polls: int64(i)}, Put: []*mirror.Record{live(url, at(i))}})
	}
	for _, url := range oddURLs {
		w.feed(url)
		w.entries(mirror.Query{Feed: url})
	}
	askForURLs(w, oddURLs)
}

func testFeedsByURL(_ *testing.T, w *world) {
	var urls []string
	for i := range 300 { // more than an implementation might read at once
		urls = append(urls, feedURL+string(rune('A'+i*7%300)))
	}
	for _, url := range urls {
		w.commit(url, mirror.Commit{})
	}
	askForURLs(w, urls)
	w.feeds(mirror.FeedQuery{Due: epoch, After: "a"})
	w.feeds(mirror.FeedQuery{Limit: -1})
}

func askForURLs(w *world, urls []string) {
	urls = slices.Sorted(slices.Values(urls))
	w.feeds(mirror.FeedQuery{})
	w.feeds(mirror.FeedQuery{Limit: 2})
	for i, url := range urls {
		if i%7 == 0 || len(urls) < 50 {
			w.feeds(mirror.FeedQuery{After: url})
		}
	}
	w.feeds(mirror.FeedQuery{After: urls[2], Limit: 2})
	w.feeds(mirror.FeedQuery{After: "H"}) // a URL that is not there
}

func testFeedsDue(_ *testing.T, w *world) {
	for _, f := range []mirror.Feed{
		{URL: "d", Next: at(1)},
		{URL: "b", Next: at(2)},
		{URL: "a", Next: at(2)},
		{URL: "c", Next: at(3).Add(time.Nanosecond)},
		{URL: "e"},
		{URL: "gone", Gone: true},
		{URL: "alias", Alias: "e"},
		{URL: "z", Next: at(3).In(time.FixedZone("", -7200))},
		{URL: "never", Next: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
	} {
		w.commit(f.URL, mirror.Commit{Feed: &f})
	}
	w.feeds(mirror.FeedQuery{Due: at(3)})
	w.feeds(mirror.FeedQuery{Due: at(2).Add(-time.Nanosecond)})
	w.feeds(mirror.FeedQuery{Due: at(9), Limit: 3})
	w.feeds(mirror.FeedQuery{Due: at(0)})
	w.commit("e", mirror.Commit{})
	w.commit("d", mirror.Commit{Feed: &mirror.Feed{URL: "d", Next: at(1), Gone: true}})
	w.feeds(mirror.FeedQuery{Due: at(2)})
}

// testNumber checks whether a feed from another store keeps its version.
func testNumber(_ *testing.T, w *world) {
	for _, number := range []int64{0, 7, 0, 3} {
		w.commit(feedURL, mirror.Commit{Number: number})
		w.feed(feedURL)
	}
}

func testConflict(_ *testing.T, w *world) {
	refused := func(version int64) {
		w.Helper()
		for range 2 {
			w.both("stale commit", func(s mirror.Store) error {
				f := &mirror.Feed{URL: feedURL, Commits: version, Title: "refused"}
				err := s.Commit(w.ctx, &mirror.Commit{
					Feed: f, Put: []*mirror.Record{live("refused", at(0))}, Touch: []*mirror.Record{live("marked", at(0))},
					Versions: []*mirror.Record{{ID: "a", Copy: mirror.Copy{Digest: "refused"}}}, Keep: 9,
					Documents: []*mirror.DocumentRecord{{URL: "refused", Names: []string{"refused"}}}, Forget: true,
				})
				require.ErrorIs(w, err, mirror.ErrConflict)
				require.EqualValues(w, version, f.Commits)
				return err
			})
		}
	}
	refused(1)
	w.look(feedURL)
	w.commit(feedURL, mirror.Commit{
		Feed: &mirror.Feed{URL: feedURL, Title: "stored"}, Put: []*mirror.Record{live("a", at(0))},
		Documents: []*mirror.DocumentRecord{{URL: "d", Names: []string{"d"}}},
	})
	refused(0)
	refused(2)
	refused(-1)
	w.commit(feedURL, mirror.Commit{})
	refused(1)
	w.look(feedURL, "marked", "refused")
	w.remove(feedURL)
	refused(2)
	refused(1)
}

func testRemove(_ *testing.T, w *world) {
	w.remove(feedURL)
	stock := func(url string) {
		for i := range 2 {
			r := live("a", at(i))
			r.Copy.Digest += string(rune('0' + i))
			r.Content = content("Title", "tortoise", at(i))
			w.commit(url, mirror.Commit{
				Put: []*mirror.Record{r}, Keep: 3, Documents: []*mirror.DocumentRecord{{URL: "d", Names: []string{"d", "e"}}},
			})
		}
		w.look(url)
		w.entries(mirror.Query{Search: "tortoise"})
	}
	stock(feedURL)
	stock("other")
	w.remove(feedURL)
	w.remove(feedURL)
	w.entries(mirror.Query{Search: "tortoise"})
	w.feeds(mirror.FeedQuery{Limit: 1, After: feedURL})
	w.look(feedURL, "a", "d", "e")
	w.commit(feedURL, mirror.Commit{}) // it is a new feed
	w.look(feedURL, "a", "d", "e")
	stock(feedURL)
}

func testRecordRoundTrip(_ *testing.T, w *world) {
	var full mirror.Record
	fill(&full)
	full.Feed, full.ID, full.State = feedURL, "full", mirror.Deleted
	unseen := &mirror.Record{
		Feed: feedURL, ID: "unseen", State: mirror.Unseen,
		Tombstone: mirror.TombstoneRecord{When: at(1), Rank: mirror.Rank{Time: at(2), Seq: -3}},
	}
	bare := &mirror.Record{Feed: feedURL, ID: "bare", State: mirror.Live}
	w.commit(feedURL, mirror.Commit{Put: []*mirror.Record{&full, bare}, Touch: []*mirror.Record{unseen}})
	known := full
	known.Content = mirror.Content{
		Format: full.Content.Format, Updated: full.Content.Updated, Published: full.Content.Published, Size: full.Content.Size,
	}
	same(w, map[string]*mirror.Record{"unseen": unseen, "full": &known, "bare": bare},
		w.records(feedURL, "unseen", "unknown", "full", "bare", "full"))
	same(w, []*mirror.Record{&full, bare}, w.entries(mirror.Query{Feed: feedURL, States: mirror.Current | mirror.Former}), "a tombstone alone is no entry")
	w.records(feedURL)
	w.records("another feed", "full")
}

// oddIDs returns different IDs, however similar they look.
func oddIDs() []string {
	ids := append([]string{"", " ", "a", "A", "a ", " a", "á", "a\u0301", "a\t", "tag:a,2005:%_?$1", "[\"a\"]", "{a,b}", "null"}, oddURLs...)
	ids = append(ids, long('x', 4<<10), long('y', 4<<10), long('y', 4<<10-1))
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

func testRecordIDs(_ *testing.T, w *world) {
	ids := oddIDs()
	for range 2 {
		var records []*mirror.Record
		for i, id := range ids {
			r := live(id, at(0))
			r.Content.Title, r.Copy.Digest = fmt.Sprint(i), fmt.Sprint(i)
			records = append(records, r)
		}
		w.put(feedURL, records...)
	}
	w.records(feedURL, ids...)
	zero := int64(0)
	for _, id := range ids {
		w.entries(mirror.Query{Beyond: &mirror.Record{Added: at(0), Feed: feedURL, ID: id}},
			mirror.Query{Feed: feedURL, AfterCommit: &zero, Beyond: &mirror.Record{LastCommit: 1, ID: id}})
	}
	for i, id := range ids {
		w.commit(feedURL, mirror.Commit{Versions: []*mirror.Record{{ID: id, Copy: mirror.Copy{Digest: fmt.Sprint("v", i)}}}, Keep: 1})
	}
	w.look(feedURL)
}

func testRecordTimes(_ *testing.T, w *world) {
	var last time.Time
	for _, instant := range []time.Time{
		{},
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC),
		time.Date(999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Unix(0, 0).In(time.FixedZone("", -3600)),
		time.Date(2024, 3, 10, 1, 59, 59, 100000000, time.FixedZone("", -8*3600)),
		time.Date(2024, 3, 10, 15, 29, 59, 100000001, time.FixedZone("", 5*3600+1800)),
		time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600)),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	} {
		r := live("a", instant)
		r.Added, r.Changed, r.Content.Published, r.Tombstone.When, r.Tombstone.Rank.Time = instant, instant, instant, instant, instant
		w.put(feedURL, r)
		r.Feed = feedURL
		same(w, []*mirror.Record{r}, w.entries(mirror.Query{}))
		w.entries(mirror.Query{Since: instant}, mirror.Query{Until: instant},
			mirror.Query{Beyond: &mirror.Record{Added: instant, Feed: feedURL, ID: "b"}},
			mirror.Query{Beyond: &mirror.Record{Added: last}}, mirror.Query{Beyond: r})
		last = instant
	}
}

func testPut(_ *testing.T, w *world) {
	w.put(feedURL, live("a", at(1)), live("b", at(2)))
	w.put("another", live("a", at(3)))
	changed := live("a", at(4))
	changed.Content, changed.Copy.Digest, changed.LastCommit = content("New", "words", at(4)), "new", 2
	w.put(feedURL, changed)
	w.look(feedURL)
}

func testTouch(_ *testing.T, w *world) {
	w.put(feedURL, live("a", at(1)))
	var mark mirror.Record
	fill(&mark)
	mark.Feed, mark.ID, mark.State = "disregarded", "a", mirror.Absent
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{&mark}, Keep: 3})
	w.look(feedURL)

	// An entry without a time of its own sorts by when it was added, in Touch, too.
	bare := live("bare", time.Time{})
	w.put(feedURL, bare)
	bare.Added = at(7)
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{bare}})
	w.entries(mirror.Query{Since: at(7)}, mirror.Query{Search: "content"})
}

// stock stores many entries in three feeds and returns the live ones in order. Several
// entries, of the same feed and of different feeds, have the same time.
func (w *world) stock() []*mirror.Record {
	w.Helper()
	for n, url := range []string{"b", "a", "c"} {
		var put []*mirror.Record
		for i := range 250 {
			r := live(fmt.Sprintf("%03d", i*7%250), at(i/(3+n)))
			r.Feed, r.LastCommit, r.FirstCommit = url, int64(i%9), int64(i)
			switch i % 5 {
			case 0: // published only
				r.Content.Published, r.Content.Updated = r.Content.Updated, time.Time{}
			case 1: // neither
				r.Added, r.Content.Updated = r.Content.Updated, time.Time{}
			case 2:
				r.Content.Published = at(1000)
			}
			if i%11 == 0 {
				r.State = []mirror.State{mirror.Deleted, mirror.Absent}[i%2]
			}
			put = append(put, r)
		}
		w.put(url, put...)
	}
	return w.entries(mirror.Query{})
}

func testOrder(_ *testing.T, w *world) {
	want := w.stock()
	w.entries(mirror.Query{Limit: 7}, mirror.Query{Limit: len(want) + 1}, mirror.Query{Limit: -1},
		mirror.Query{Feed: "a"}, mirror.Query{Feed: "a", Limit: 200}, mirror.Query{Skip: -1})
	for skip := 0; skip <= len(want)+1; skip += 29 {
		w.entries(mirror.Query{Skip: skip, Limit: 3}, mirror.Query{Skip: skip, Feed: "a", Reverse: true}, mirror.Query{Skip: skip, Feed: "b", Since: at(20), Until: at(40)},
			mirror.Query{Skip: skip, Beyond: want[4], Limit: 2}, mirror.Query{Skip: skip, States: mirror.AllStates, Limit: 1}, mirror.Query{Skip: skip, Search: "content"})
	}
	for _, oldest := range []bool{false, true} {
		want := w.entries(mirror.Query{Reverse: oldest})
		for i := 0; i < len(want); i += 41 {
			w.entries(mirror.Query{Reverse: oldest, Beyond: want[i], Limit: 9})
		}
		between := *want[50] // of no record
		between.ID += " "
		of := w.entries(mirror.Query{Reverse: oldest, Feed: "b"})
		w.entries(mirror.Query{Reverse: oldest, Beyond: want[299]},
			mirror.Query{Reverse: oldest, Feed: "b", Beyond: of[99]},
			mirror.Query{Reverse: oldest, Beyond: &between},
			mirror.Query{Reverse: oldest, Beyond: &mirror.Record{Added: want[50].Time(), Feed: "0"}},
			mirror.Query{Reverse: oldest, Beyond: &mirror.Record{Added: at(9999)}})
	}
}

func testInterval(_ *testing.T, w *world) {
	w.stock()
	want := w.entries(mirror.Query{Since: at(20), Until: at(40)})
	w.entries(mirror.Query{Since: at(20).In(time.FixedZone("", 7200))}, mirror.Query{Until: at(40)},
		mirror.Query{Since: at(20).Add(1), Until: at(40).Add(1)},
		mirror.Query{Feed: "c", Since: at(20), Until: at(40)},
		mirror.Query{Since: at(20), Until: at(40), Beyond: want[4], Limit: 4},
		mirror.Query{Since: at(20), Until: at(20)})
}

func testChanges(_ *testing.T, w *world) {
	w.stock()
	for version := int64(-1); version < 10; version++ {
		w.entries(mirror.Query{Feed: "a", AfterCommit: &version})
	}
	all, three := int64(-1), int64(3)
	w.entries(mirror.Query{Feed: "a", AfterCommit: &all, Limit: 3},
		mirror.Query{Feed: "a", AfterCommit: &three, Beyond: &mirror.Record{LastCommit: 1, ID: "x"}},
		mirror.Query{Feed: "a", AfterCommit: &three, Since: at(30)},
		mirror.Query{AfterCommit: &all})
	for i, r := range w.entries(mirror.Query{Feed: "a", AfterCommit: &all}) {
		if i%13 == 0 {
			w.entries(mirror.Query{Feed: "a", AfterCommit: &all, Beyond: &mirror.Record{LastCommit: r.LastCommit, ID: r.ID}})
		}
	}
}

func testDeleted(_ *testing.T, w *world) {
	var records []*mirror.Record
	for i, state := range []mirror.State{mirror.Live, mirror.Deleted, mirror.Absent, mirror.Live} {
		r := live(string(state)+fmt.Sprint(i), at(-i))
		r.Feed, r.State, r.LastCommit = feedURL, state, int64(i+1)
		records = append(records, r)
	}
	w.put(feedURL, records...)
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{{ID: "unseen", State: mirror.Unseen, LastCommit: 9, Added: at(1)}}})
	zero := int64(0)
	w.entries(mirror.Query{},
		mirror.Query{Feed: feedURL, AfterCommit: &zero},
		mirror.Query{Search: "content"},
		mirror.Query{States: mirror.Current | mirror.Former},
		mirror.Query{States: mirror.Current | mirror.Former, Feed: feedURL, AfterCommit: &zero},
		mirror.Query{States: mirror.Current | mirror.Former, Search: "content"},
		mirror.Query{States: mirror.Former},
		mirror.Query{States: mirror.Former, Search: "conten", Prefix: true, Until: records[1].Time()},
		mirror.Query{States: mirror.Former, Feed: feedURL, AfterCommit: &zero},
		mirror.Query{States: mirror.Current | mirror.Former, Limit: 2, Beyond: records[0]},
		mirror.Query{States: mirror.Traces},
		mirror.Query{States: mirror.Traces, Feed: feedURL, Reverse: true},
		mirror.Query{States: mirror.Traces, Feed: feedURL, AfterCommit: &zero},
		mirror.Query{States: mirror.Traces, Feed: "another feed"},
		mirror.Query{States: mirror.Current | mirror.Traces},
		mirror.Query{States: mirror.Former | mirror.Traces, Feed: feedURL},
		mirror.Query{States: mirror.AllStates, Feed: feedURL, AfterCommit: &zero, Reverse: true},
		mirror.Query{States: mirror.AllStates, Feed: feedURL, AfterCommit: &zero},
		mirror.Query{States: mirror.AllStates, Feed: feedURL, AfterCommit: &zero, Reverse: true, Beyond: &mirror.Record{LastCommit: 4}, Limit: 2},
		mirror.Query{Feed: feedURL, AfterCommit: &zero, Reverse: true, Limit: 1})
	back := *records[2]
	back.State = mirror.Live
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{&back}})
	w.look(feedURL)
}

func testSearch(_ *testing.T, w *world) {
	var records []*mirror.Record
	for _, text := range [][3]string{
		{"plain", "The Tortoise", "and the hare"},
		{"markup", "Fish &amp; chips", "<p>one</p><p class='hidden'>two</p><br/>thr&#233;e"},
		{"quotes", "Operators", "NOT a AND b OR c* NEAR(d) col:e \"f\" g-h it's 100%"},
		{"case", "STRASSE Ελλάδα", "ÉCLAIR Żółć"},
		{"empty", "", ""},
	} {
		r := live(text[0], at(len(text[0])))
		r.Content = content(text[1], text[2], at(len(text[0])))
		records = append(records, r)
	}
	w.put(feedURL, records...)
	json := live("json", at(0))
	json.Content = mirror.Content{
		Format: feedhistory.FormatJSONFeed, Data: `{"id":"json","content_html":"<b>gazelle</b>","title":"Jay"}`, Title: "Jay",
	}
	rss := live("rss", at(0))
	rss.Content = mirror.Content{
		Format: feedhistory.FormatRSS, Data: `<item><guid>rss</guid><title>Ar</title><description>a &lt;i&gt;gazelle&lt;/i&gt; too</description></item>`, Title: "Ar",
	}
	damaged := live("damaged", at(0))
	damaged.Content.Data, damaged.Content.Title = "<entry", "gazelle"
	w.put("other", json, rss, damaged)
	for _, search := range []string{
		"tortoise", "TORTOISE", "hare the", "tortoise hare", "hare tortoise fish", "tort", "oise", "tort*",
		"fish", "one two", "onetwo", "hidden", "thrée", "p", "xmlns",
		"operators NOT", "hare NOT tortoise", "hare OR fish", `"hare"`, `"the hare`, "hare)", "col:e", "hare AND", "-hare",
		"title:hare", "hare'", "' OR 1=1 --", "g-h", "&hare|", "hare:*", "strasse", "ελλάδα", "ΕΛΛΆΔΑ", "éclair", "żółć",
		"gazelles", `"gazelles"`, "gazelle -too", "tortoise -hare", "fish OR gazelle", `"a gazelle"`, `"gazelle a"`, `gazelle -"a gazelle"`, "OR", "-fish OR hare",
		"gazelle", "gazelle too", "\x00hare", "ha\x00re", "?!", " ", "\x00", "*", `""`,
	} {
		w.entries(mirror.Query{Search: search})
	}
	for _, search := range []string{
		"fish OR gaz", "gazelle -to", `"a gaz`, `"gazelle to`, `"a gaz"`,
		"tort", "tortoise", "t", "the tort", "tort the", "fish ha", "gaz", "éc", "żół", "g h", "oise", "ha*", "'ha", "*",
	} {
		w.entries(mirror.Query{Search: search, Prefix: true})
	}
	w.entries(mirror.Query{Search: "gazelle", Limit: 1},
		mirror.Query{Search: "gazelle", Beyond: &mirror.Record{Added: at(0), Feed: "other", ID: "rss"}},
		mirror.Query{Search: "gazelle", Feed: feedURL}, mirror.Query{Search: "gazelle", Until: at(0)})

	// Only the current version is searched.
	changed := live("plain", at(1))
	changed.Content, changed.Copy.Digest = content("The snail", "won", at(1)), "2"
	w.put(feedURL, changed)
	w.entries(mirror.Query{Search: "tortoise"}, mirror.Query{Search: "snail won"})
}

func testVersions(_ *testing.T, w *world) {
	version := func(digest string, hours int) *mirror.Record {
		r := live("a", at(hours))
		r.Copy.Digest, r.Content = digest, content("Title "+digest, "Content", at(hours))
		return r
	}
	of := func(records ...*mirror.Record) (versions []*mirror.Record) {
		for _, r := range records {
			versions = append(versions, &mirror.Record{ID: r.ID, Copy: r.Copy, Content: r.Content})
		}
		return versions
	}
	one, two, three, older := version("one", 1), version("two", 2), version("three", 3), version("older", 0)
	w.put(feedURL, one, live("b", at(1)))
	for _, c := range []mirror.Commit{
		{Put: []*mirror.Record{two}},
		{Put: []*mirror.Record{three}},
		{Versions: of(older, two, three, older)},
		{Put: []*mirror.Record{version("two", 4)}}, // a version current again is not an earlier one
		{Put: []*mirror.Record{version("two", 5)}},
	} {
		c.Keep = 9
		w.commit(feedURL, c)
		w.versions(feedURL, "a")
	}
	// If times are equal, the rank of the document decides.
	place := func(digest string, rank, place int) *mirror.Record {
		r := version(digest, 1)
		r.Copy.Rank = mirror.Rank{Time: at(rank), Seq: int64(place)}
		return r
	}
	w.commit(feedURL, mirror.Commit{Versions: of(place("x", 3, -1), place("z", 4, 2), place("y", 3, 10)), Keep: 9})
	w.versions(feedURL, "a")
	w.versions("another", "a")

	// A tombstone alone is not a version.
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{{ID: "c", State: mirror.Unseen}}, Keep: 9})
	w.put(feedURL, live("c", at(1)))
	var full mirror.Record
	fill(&full)
	full = mirror.Record{ID: "d", Copy: full.Copy, Content: full.Content}
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Record{&full}, Keep: 1})
	same(w, []*mirror.Record{&full}, w.versions(feedURL, "d"))
	w.look(feedURL)
}

func testKeep(_ *testing.T, w *world) {
	put := func(id string, n, keep int) {
		r := live(id, at(n))
		r.Copy.Digest = fmt.Sprint(n)
		w.commit(feedURL, mirror.Commit{Put: []*mirror.Record{r}, Keep: keep})
	}
	for n := range 5 {
		put("a", n, 3)
		put("b", n, 9)
		put("c", n, 9)
	}
	w.look(feedURL)
	old := &mirror.Record{ID: "a", Copy: mirror.Copy{At: at(-1), Digest: "old"}}
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Record{old}, Keep: 3})
	mark := live("b", at(4))
	mark.Copy.Digest = "4"
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{mark}, Keep: 2})
	w.look(feedURL)
	put("b", 5, 0)
	w.commit(feedURL, mirror.Commit{Versions: []*mirror.Record{old}})
	w.look(feedURL)
}

func document(url string, names ...string) *mirror.DocumentRecord {
	return &mirror.DocumentRecord{URL: url, Names: names}
}

// file commits documents of a feed.
func (w *world) file(url string, documents ...*mirror.DocumentRecord) {
	w.Helper()
	w.commit(url, mirror.Commit{Documents: documents})
}

func testDocument(t *testing.T, w *world) {
	var full mirror.DocumentRecord
	fill(&full)
	full.URL, full.Names = "full", []string{"z", "full", "a\x00"}
	w.file(feedURL, &full, document("bare", "bare"))
	same(w, &full, w.document(feedURL, "a\x00"))
	w.look(feedURL, "a", "FULL", "full ")
	w.document("another feed", "bare")
	w.file(feedURL, document("full", "full")) // replaces the one with the same URL, and no other
	w.look(feedURL, "z")
	for _, url := range oddURLs {
		w.file(feedURL, document(url, url))
	}
	for _, url := range oddURLs {
		w.document(feedURL, url)
	}
	require.Len(t, feedtest.All(t, w.Documents(w.ctx, feedURL)), 2+len(oddURLs))
}

func testNames(_ *testing.T, w *world) {
	for _, documents := range [][]*mirror.DocumentRecord{
		{document("one", "one", "self"), document("two", "two", "self", "self")}, // the last one has the name
		{document("one", "one", "self")},                                         // over several commits, too
		{document("three", "three", "one")},                                      // a name that is another's URL
		{document("one", "one")},                                                 // the name is now of the last that has it still
		{document("five", "x"), document("five", "five")},                        // the second of a change replaces the first
	} {
		w.file(feedURL, documents...)
		w.look(feedURL, "x")
	}
	w.file("another feed", document("four", "self"))
	w.look(feedURL)
}

func testDocumentsByRank(_ *testing.T, w *world) {
	var all []*mirror.DocumentRecord
	for i := range 300 { // more than an implementation might read at once
		d := document(string(rune('a'+i)), string(rune('a'+i)))
		d.Rank = mirror.Rank{Time: at(i / 7), Seq: int64(i%7 - 3)}
		all = append([]*mirror.DocumentRecord{d}, all...)
	}
	for i := range all {
		if i%10 == 0 { // in a different order
			batch := slices.Clone(all[290-i : 300-i])
			batch[2], batch[7] = batch[7], batch[2]
			w.file(feedURL, batch...)
		}
	}
	w.file("another", document("x"))
	w.documents(feedURL)
	moved := *all[299]
	moved.Rank = mirror.Rank{Time: at(1000)} // the rank of the last commit counts
	w.file(feedURL, &moved)
	w.documents(feedURL)
}

func testForget(_ *testing.T, w *world) {
	w.commit(feedURL, mirror.Commit{
		Put: []*mirror.Record{live("a", at(0))}, Documents: []*mirror.DocumentRecord{document("one", "one", "self"), document("two", "two")},
	})
	w.file("another", document("x", "x"))
	w.commit(feedURL, mirror.Commit{Forget: true, Documents: []*mirror.DocumentRecord{document("two", "two", "new")}})
	w.look(feedURL, "one", "self")
	w.commit(feedURL, mirror.Commit{Forget: true})
	w.look(feedURL)
}
