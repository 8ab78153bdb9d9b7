package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// stocked stores many entries in three feeds and returns the live ones in
// order. Several entries, of the same feed and of different feeds, have the
// same time.
func (w world) stocked() (records []*mirror.Record) {
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
			} else {
				records = append(records, r)
			}
			put = append(put, r)
		}
		w.put(url, put...)
	}
	sortNewestFirst(records)
	return records
}

func sortNewestFirst(records []*mirror.Record) {
	slices.SortFunc(records, func(a, b *mirror.Record) int {
		if c := b.Time().Compare(a.Time()); c != 0 {
			return c
		} else if a.Feed != b.Feed {
			return 1 - 2*boolInt(a.Feed > b.Feed)
		}
		return 1 - 2*boolInt(a.ID > b.ID)
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func ofFeed(records []*mirror.Record, feed string) []*mirror.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r *mirror.Record) bool { return r.Feed != feed })
}

func (w world) yields(want []*mirror.Record, q mirror.Query) {
	w.Helper()
	same(w, want, w.entries(q), "%+v", q)
}

func testOrder(t *testing.T, w world) {
	want := w.stocked()
	w.yields(want, mirror.Query{})
	w.yields(want[:7], mirror.Query{Limit: 7})
	w.yields(want, mirror.Query{Limit: len(want) + 1})
	w.yields(ofFeed(want, "a"), mirror.Query{Feed: "a"})
	w.yields(ofFeed(want, "a")[:200], mirror.Query{Feed: "a", Limit: 200})
}

func testOrderOfPlaces(t *testing.T, w world) {
	want := w.stocked()
	for i := 0; i < len(want); i += 17 {
		w.yields(want[i+1:min(len(want), i+10)], mirror.Query{Beyond: want[i].Place(), Limit: 9})
	}
	w.yields(want[300:], mirror.Query{Beyond: want[299].Place()})
	of := ofFeed(want, "b")
	w.yields(of[100:], mirror.Query{Feed: "b", Beyond: of[99].Place()})

	// No record has this place.
	between := want[50].Place()
	between.ID += " "
	w.yields(want[50:], mirror.Query{Beyond: between})
	between = &mirror.Place{Time: want[50].Time(), Feed: "0"}
	next := slices.IndexFunc(want, func(r *mirror.Record) bool { return r.Time().Before(between.Time) })
	w.yields(want[next:], mirror.Query{Beyond: between})
	w.yields(want, mirror.Query{Beyond: &mirror.Place{Time: at(9999)}})

	// The same in reverse order.
	between = want[50].Place()
	slices.Reverse(want)
	w.yields(want, mirror.Query{Oldest: true})
	for i := 0; i < len(want); i += 17 {
		w.yields(want[i+1:min(len(want), i+10)], mirror.Query{Oldest: true, Beyond: want[i].Place(), Limit: 9})
	}
	w.yields(want[300:], mirror.Query{Oldest: true, Beyond: want[299].Place()})
	of = ofFeed(want, "b")
	w.yields(of[100:], mirror.Query{Oldest: true, Feed: "b", Beyond: of[99].Place()})
	at50 := len(want) - 51
	between.ID += " "
	w.yields(want[at50+1:], mirror.Query{Oldest: true, Beyond: between})
	w.yields(want[:0], mirror.Query{Oldest: true, Beyond: &mirror.Place{Time: at(9999)}})
}

func testInterval(t *testing.T, w world) {
	records := w.stocked()
	within := func(since, until time.Time) (want []*mirror.Record) {
		for _, r := range records {
			if !r.Time().Before(since) && r.Time().Before(until) {
				want = append(want, r)
			}
		}
		return want
	}
	far := at(1 << 20)
	want := within(at(20), at(40))
	require.NotEmpty(t, want)
	w.yields(want, mirror.Query{Since: at(20), Until: at(40)})
	w.yields(within(at(20), far), mirror.Query{Since: at(20).In(time.FixedZone("", 7200))})
	w.yields(within(time.Time{}, at(40)), mirror.Query{Until: at(40)})
	w.yields(within(at(20).Add(1), at(40).Add(1)), mirror.Query{Since: at(20).Add(1), Until: at(40).Add(1)})
	w.yields(ofFeed(want, "c"), mirror.Query{Feed: "c", Since: at(20), Until: at(40)})
	w.yields(want[5:9], mirror.Query{Since: at(20), Until: at(40), Beyond: want[4].Place(), Limit: 4})
	w.yields(nil, mirror.Query{Since: at(20), Until: at(20)})
}

func testChanges(t *testing.T, w world) {
	want := ofFeed(w.stocked(), "a")
	slices.SortFunc(want, func(a, b *mirror.Record) int {
		if a.LastCommit != b.LastCommit {
			return int(a.LastCommit - b.LastCommit)
		}
		return 1 - 2*boolInt(a.ID < b.ID)
	})
	after := func(version int64) []*mirror.Record {
		return slices.DeleteFunc(slices.Clone(want), func(r *mirror.Record) bool { return r.LastCommit <= version })
	}
	for version := range int64(10) {
		w.yields(after(version), mirror.Query{Feed: "a", AfterCommit: &version})
	}
	all, none := int64(-1), int64(8)
	w.yields(want, mirror.Query{Feed: "a", AfterCommit: &all})
	w.yields(nil, mirror.Query{Feed: "a", AfterCommit: &none})
	w.yields(want[:3], mirror.Query{Feed: "a", AfterCommit: &all, Limit: 3})
	for i := 0; i < len(want); i += 13 {
		beyond := &mirror.Place{Commit: want[i].LastCommit, ID: want[i].ID}
		w.yields(want[i+1:], mirror.Query{Feed: "a", AfterCommit: &all, Beyond: beyond})
	}
	three := int64(3)
	w.yields(after(3), mirror.Query{Feed: "a", AfterCommit: &three, Beyond: &mirror.Place{Commit: 1, ID: "x"}})
	var recent []*mirror.Record
	for _, r := range after(3) {
		if !r.Time().Before(at(30)) {
			recent = append(recent, r)
		}
	}
	w.yields(recent, mirror.Query{Feed: "a", AfterCommit: &three, Since: at(30)})
	failure(t, w.Entries(w.ctx, mirror.Query{AfterCommit: &all}))
}

// testChangesMoving follows a long change, and remembers how far it has come
// where the query points.
func testChangesMoving(t *testing.T, w world) {
	var records []*mirror.Record
	for i := range 1000 {
		records = append(records, live(fmt.Sprintf("%04d", i), at(i)))
	}
	w.put(feedURL, records...)
	seen, n := int64(0), 0
	for r, err := range w.Entries(w.ctx, mirror.Query{Feed: feedURL, AfterCommit: &seen}) {
		require.NoError(t, err)
		require.Equal(t, records[n].ID, r.ID)
		seen = r.LastCommit
		n++
	}
	require.Len(t, records, n)
}

func testDeleted(t *testing.T, w world) {
	var want []*mirror.Record
	for i, state := range []mirror.State{mirror.Live, mirror.Deleted, mirror.Absent, mirror.Live} {
		r := live(string(state)+fmt.Sprint(i), at(-i))
		r.Feed, r.State, r.LastCommit = feedURL, state, int64(i+1)
		want = append(want, r)
	}
	w.put(feedURL, want...)
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{{ID: "unseen", State: mirror.Unseen, LastCommit: 9, Added: at(1)}}})
	zero := int64(0)
	living := []*mirror.Record{want[0], want[3]}
	w.yields(living, mirror.Query{})
	w.yields(living, mirror.Query{Feed: feedURL, AfterCommit: &zero})
	w.yields(living, mirror.Query{Search: "content"})
	w.yields(want, mirror.Query{Deleted: true})
	w.yields(want, mirror.Query{Deleted: true, Feed: feedURL, AfterCommit: &zero})
	w.yields(want, mirror.Query{Deleted: true, Search: "content"})
	w.yields(want[1:3], mirror.Query{Gone: true})
	w.yields(want[2:3], mirror.Query{Gone: true, Deleted: true, Search: "conten", Prefix: true, Until: want[1].Time()})
	w.yields(want[1:3], mirror.Query{Gone: true, Feed: feedURL, AfterCommit: &zero})
	w.yields(want[1:3], mirror.Query{Deleted: true, Limit: 2, Beyond: want[0].Place()})
	require.Equal(t, []string{"unseen"}, w.ids(mirror.Query{Bare: true}))
	require.Equal(t, []string{"unseen"}, w.ids(mirror.Query{Bare: true, Deleted: true, Feed: feedURL, Oldest: true}))
	require.Equal(t, []string{"unseen"}, w.ids(mirror.Query{Bare: true, Feed: feedURL, AfterCommit: &zero}))
	require.Empty(t, w.ids(mirror.Query{Bare: true, Feed: "another feed"}))
	every := []string{"unseen", "live3", "absent2", "deleted1", "live0"}
	require.Equal(t, every, w.ids(mirror.Query{Every: true, Feed: feedURL, AfterCommit: &zero, Latest: true}))
	require.Equal(t, reversed(every), w.ids(mirror.Query{Every: true, Feed: feedURL, AfterCommit: &zero}))
	before := &mirror.Place{Commit: 4}
	require.Equal(t, every[2:4], w.ids(mirror.Query{Every: true, Feed: feedURL, AfterCommit: &zero, Latest: true, Beyond: before, Limit: 2}))
	require.Equal(t, every[1:2], w.ids(mirror.Query{Feed: feedURL, AfterCommit: &zero, Latest: true, Limit: 1}))

	back := *want[2]
	back.State = mirror.Live
	w.commit(feedURL, mirror.Commit{Touch: []*mirror.Record{&back}})
	require.Equal(t, []string{"live0", "absent2", "live3"}, w.ids(mirror.Query{}))
}

func testSearch(t *testing.T, w world) {
	texts := map[string][2]string{
		"plain":  {"The Tortoise", "and the hare"},
		"markup": {"Fish &amp; chips", "<p>one</p><p class='hidden'>two</p><br/>thr&#233;e"},
		"quotes": {"Operators", "NOT a AND b OR c* NEAR(d) col:e \"f\" g-h it's 100%"},
		"case":   {"STRASSE Ελλάδα", "ÉCLAIR Żółć"},
		"empty":  {"", ""},
	}
	var records []*mirror.Record
	for id, text := range texts {
		r := live(id, at(len(id)))
		r.Content = content(text[0], text[1], at(len(id)))
		records = append(records, r)
	}
	records[0].Feed = feedURL
	w.put(feedURL, records...)
	json := live("json", at(0))
	json.Content = mirror.Content{
		Format: feedhistory.JSONFeed, Data: `{"id":"json","content_html":"<b>gazelle</b>","title":"Jay"}`, Title: "Jay",
	}
	rss := live("rss", at(0))
	rss.Content = mirror.Content{
		Format: feedhistory.RSS, Data: `<item><guid>rss</guid><title>Ar</title><description>a &lt;i&gt;gazelle&lt;/i&gt; too</description></item>`, Title: "Ar",
	}
	damaged := live("damaged", at(0))
	damaged.Content.Data, damaged.Content.Title = "<entry", "gazelle"
	w.put("other", json, rss, damaged)

	for search, want := range map[string][]string{
		"tortoise": {"plain"}, "TORTOISE": {"plain"}, "hare the": {"plain"}, "tortoise hare": {"plain"},
		"hare tortoise fish": nil, "tort": nil, "oise": nil, "tort*": nil,
		"fish": {"markup"}, "one two": {"markup"}, "onetwo": nil, "hidden": nil, "thrée": {"markup"}, "p": nil, "xmlns": nil,
		"operators NOT": {"quotes"}, "hare NOT tortoise": nil, "hare OR fish": nil, `"hare"`: {"plain"},
		`"the hare`: {"plain"}, "hare)": {"plain"}, "col:e": {"quotes"}, "hare AND": {"plain"}, "-hare": {"plain"},
		"title:hare": nil, "hare'": {"plain"}, "' OR 1=1 --": nil, "g-h": {"quotes"}, "&hare|": {"plain"}, "hare:*": {"plain"},
		"strasse": {"case"}, "ελλάδα": {"case"}, "ΕΛΛΆΔΑ": {"case"}, "éclair": {"case"}, "żółć": {"case"},
		"gazelle": {"rss", "json", "damaged"}, "gazelle too": {"rss"}, "\x00hare": {"plain"}, "ha\x00re": nil,
	} {
		require.Equal(t, want, w.ids(mirror.Query{Search: search}), "%q", search)
	}
	for _, search := range []string{"?!", " ", "\x00", "*", `""`} {
		require.ErrorIs(t, failure(t, w.Entries(w.ctx, mirror.Query{Search: search})), errors.ErrUnsupported, "%q", search)
	}
	require.Equal(t, []string{"rss"}, w.ids(mirror.Query{Search: "gazelle", Limit: 1}))
	require.Equal(t, []string{"json", "damaged"}, w.ids(mirror.Query{Search: "gazelle", Beyond: &mirror.Place{Time: at(0), Feed: "other", ID: "rss"}}))
	require.Empty(t, w.ids(mirror.Query{Search: "gazelle", Feed: feedURL}))
	require.Empty(t, w.ids(mirror.Query{Search: "gazelle", Until: at(0)}))

	for search, want := range map[string][]string{
		"tort": {"plain"}, "tortoise": {"plain"}, "t": {"markup", "plain", "rss"}, "the tort": {"plain"}, "tort the": nil,
		"fish ha": nil, "gaz": {"rss", "json", "damaged"}, "éc": {"case"}, "żół": {"case"}, "g h": {"quotes"}, "oise": nil, "ha*": {"plain"}, "'ha": {"plain"},
	} {
		require.Equal(t, want, w.ids(mirror.Query{Search: search, Prefix: true}), "%q", search)
	}
	require.ErrorIs(t, failure(t, w.Entries(w.ctx, mirror.Query{Search: "*", Prefix: true})), errors.ErrUnsupported)

	// Only the current version is searched.
	changed := live("plain", at(1))
	changed.Content, changed.Copy.Digest = content("The snail", "won", at(1)), "2"
	w.put(feedURL, changed)
	require.Empty(t, w.ids(mirror.Query{Search: "tortoise"}))
	require.Equal(t, []string{"plain"}, w.ids(mirror.Query{Search: "snail won"}))
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// none turns an empty list into nil.
func none(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func parse(t *testing.T, number string) int {
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	return n
}
