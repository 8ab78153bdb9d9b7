package republish

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseReplay(t *testing.T) {
	for query, want := range map[string]string{
		"start=2026-12-01&every=1d":                                      "every=1d&start=2026-12-01",
		"every=14d&start=2026-12-01":                                     "every=2w&start=2026-12-01",
		"start=2026-12-01T07:30:00%2B01:00&every=12h&per=3&days=thu,MON": "days=mon%2Cthu&every=12h&per=3&start=2026-12-01T06%3A30%3A00Z",
		"start=2026-12-01&every=2w&zone=Europe/Berlin&asof=7&new=now":    "asof=7&every=2w&new=now&start=2026-12-01&zone=Europe%2FBerlin",
		"start=2026-12-01&pace=original%C3%9710&new=last":                "pace=original%C3%9710&start=2026-12-01",
		"start=2026-12-01&pace=original&until=2027-01-01&from=urn:x":     "from=urn%3Ax&pace=original%C3%971&start=2026-12-01&until=2027-01-01T00%3A00%3A00Z",
		"start=2026-12-01&pace=originalx2.5&archive=1":                   "pace=original%C3%972.5&start=2026-12-01",
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		r, err := ParseReplay(q)
		require.NoError(t, err, query)
		require.Equal(t, want, r.Query().Encode())
		again, err := ParseReplay(r.Query())
		require.NoError(t, err)
		require.Equal(t, want, again.Query().Encode())
	}
	const good = "&start=2026-12-01&every=1d"
	for query, want := range map[string]string{
		"every=1d": "start= is missing", "start=2026-12-01": "every= is missing", "": "start= is missing",
		"start=&every=1d": "start=: that is neither", "start=tomorrow&every=1d": "neither a date", "start=2026-13-01&every=1d": "neither a date",
		"start=2026-12-01&every=": "a number with h, d or w", "start=2026-12-01&every=30m": "a number with h, d or w", "start=2026-12-01&every=0h": "at least an hour",
		"start=2026-12-01&every=-1d": "at least an hour", "start=2026-12-01&every=9999999d": "too long to wait", "start=2026-12-01&every=1.5d": "a number with h, d or w",
		"start=2026-12-01&every=1d&pace=original": "cannot be combined", "start=2026-12-01&pace=fast": "should be original", "start=2026-12-01&pace=original0": "between 0.01", "start=2026-12-01&pace=originalNaN": "between 0.01",
		"per=0" + good: "between 1 and 100", "per=101" + good: "between 1 and 100", "per=x" + good: "between 1 and 100",
		"days=" + good: "a list of mon", "days=mon,funday" + good: "a list of mon", "zone=Mars" + good: "not a time zone", "zone=" + good: "not a time zone", "zone=Local" + good: "not a time zone", "zone=../etc" + good: "not a time zone",
		"asof=-1" + good: "asof=-1", "asof=x" + good: "asof=x", "new=yes" + good: "now, or last", "until=2026-11-30" + good: "the end comes before the start", "until=x" + good: "neither a date",
		"evry=1d" + good: "evry= is unknown", "per=1&per=2" + good: "per= is given twice",
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = ParseReplay(q)
		require.ErrorContains(t, err, want, query)
	}
}

func mustReplay(t require.TestingT, query string) *Replay {
	q, err := url.ParseQuery(query)
	require.NoError(t, err)
	r, err := ParseReplay(q)
	require.NoError(t, err, query)
	return r
}

// Examples of when entries are released.
func TestTimetable(t *testing.T) {
	at := func(text string) time.Time {
		m, err := parseMoment(text, time.UTC)
		require.NoError(t, err)
		return m
	}
	var order []place
	for i, when := range []string{"2003-01-01", "2003-01-02", "2003-01-12", "2003-02-01", "2004-01-01"} {
		order = append(order, place{id: fmt.Sprint(i), time: at(when)})
	}
	later := []place{{id: "5", added: at("2026-12-03T10:00:00Z")}, {id: "6", added: at("2027-06-01T10:00:00Z")}}
	for query, want := range map[string]string{
		"start=2026-12-01&every=1d":                                       "0 01T00 1 02T00 2 03T00 3 04T00 4 05T00 5 06T00 6 2027-06-01T10",
		"start=2026-12-01&every=12h&per=2":                                "0 01T00 1 01T00 2 01T12 3 01T12 4 02T00 5 03T10 6 2027-06-01T10",
		"start=2026-12-01&every=1d&days=mon,thu":                          "0 03T00 1 07T00 2 10T00 3 14T00 4 17T00 5 21T00 6 2027-06-03T10",
		"start=2026-12-01&every=1w&days=mon":                              "0 07T00 1 14T00 2 21T00 3 28T00 4 2027-01-04T00 5 2027-01-11T00 6 2027-06-07T10",
		"start=2026-12-01&every=2d&new=now":                               "0 01T00 1 03T00 5 03T10 2 05T00 3 07T00 4 09T00 6 2027-06-01T10",
		"start=2026-12-01&every=1d&until=2026-12-04":                      "0 01T00 1 02T00 2 03T00",
		"start=2026-12-01&pace=original×10":                               "0 01T00 1 01T02 2 02T02 3 04T02 4 2027-01-06T12 5 2027-01-06T12 6 2027-06-01T10",
		"start=2026-12-01T22:00:00Z&every=1d&days=wed&zone=Europe/Berlin": "0 02T22 1 09T22 2 16T22 3 23T22 4 30T22 5 2027-01-06T22 6 2027-06-02T10",
		"start=2027-03-27T07:00:00%2B01:00&every=1d&zone=Europe/Berlin":   "0 2027-03-27T06 1 2027-03-28T05 2 2027-03-29T05 3 2027-03-30T05 4 2027-03-31T05 5 2027-04-01T05 6 2027-06-01T10",
	} {
		r := mustReplay(t, query)
		var got []string
		for _, x := range r.timetable(order, later, at("2999-01-01")) {
			got = append(got, x.ID, strings.TrimPrefix(x.At.Format("2006-01-02T15"), "2026-12-"))
		}
		require.Equal(t, want, strings.Join(got, " "), query)
		for _, now := range []string{"2026-11-30", "2026-12-03", "2026-12-31"} { // at any time, the releases so far are the same
			var some []string
			for _, x := range r.timetable(order, later, at(now)) {
				some = append(some, x.ID, strings.TrimPrefix(x.At.Format("2006-01-02T15"), "2026-12-"))
			}
			require.True(t, strings.HasPrefix(want, strings.Join(some, " ")), "%s %s", query, now)
		}
	}
	order[1].gone = at("2026-12-01T12:00:00Z")
	order[2].gone = at("2026-12-04")
	table := mustReplay(t, "start=2026-12-01&every=1d").timetable(order, nil, at("2999-01-01"))
	require.Equal(t, []bool{false, true, false, false, false}, []bool{table[0].Empty, table[1].Empty, table[2].Empty, table[3].Empty, table[4].Empty},
		"what was deleted before its release leaves its place empty")
}

// A publisher for replays adds entries to a store at times of a clock.
type replayWorld struct {
	t     *rapid.T
	store mirror.Store
	feed  *mirror.Feed
	now   time.Time
	ids   []string
	dates map[string]time.Time // the dates when the order was frozen
	gone  map[string]time.Time
}

const replayURL = "https://site.test/feed"

func newReplayWorld(t *rapid.T) *replayWorld {
	w := &replayWorld{t: t, store: mirror.NewMemory(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), dates: map[string]time.Time{}, gone: map[string]time.Time{}}
	w.feed = &mirror.Feed{
		URL: replayURL, Title: "Site", Kind: feedhistory.KindArchived, Verdict: feedhistory.VerdictWhole, Ledger: readAt(replayURL),
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:site</id><title>Site</title><updated>2026-01-01T00:00:00Z</updated><author><name>A</name></author></feed>`,
	}
	return w
}

// step does what publishers do, and mirrors it.
func (w *replayWorld) step(kind string) {
	change := &mirror.Commit{Feed: w.feed}
	version := w.feed.Commits + 1
	write := func(id string, first int64, added time.Time) *mirror.Record {
		when := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 200_000).Draw(w.t, "date")) * time.Hour)
		data := fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>%s</id><title>T%d</title><updated>%s</updated><published>%[3]s</published><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">x &amp; <b>y</b></div></content></entry>`,
			id, version, when.Format(time.RFC3339))
		return &mirror.Record{Feed: replayURL, ID: id, State: mirror.Live, FirstCommit: first, LastCommit: version, Added: added, Changed: w.now,
			Copy: mirror.Copy{At: when, Digest: fmt.Sprint(version)}, Content: mirror.Content{Format: feedhistory.FormatAtom, Data: data, Updated: when, Published: when}}
	}
	switch {
	case kind == "add" || len(w.ids) == 0:
		for range rapid.IntRange(1, 4).Draw(w.t, "new") {
			id := fmt.Sprintf("urn:%d", len(w.ids))
			w.ids = append(w.ids, id)
			r := write(id, version, w.now)
			w.dates[id] = r.Time()
			change.Put = append(change.Put, r)
		}
	default:
		id := rapid.SampledFrom(w.ids).Draw(w.t, "id")
		known, err := w.store.Records(w.t.Context(), replayURL, []string{id})
		require.NoError(w.t, err)
		if known[id].State != mirror.Live {
			return
		}
		r := write(id, known[id].FirstCommit, known[id].Added)
		if kind == "delete" {
			r.State, w.gone[id] = mirror.Deleted, w.now
			r.Content = mirror.Content{}
			change.Touch = append(change.Touch, r)
		} else {
			change.Put = append(change.Put, r)
		}
	}
	require.NoError(w.t, w.store.Commit(w.t.Context(), change))
}

// Every entry is released once, in order, and never before its time. Documents
// are the same in whatever order they are requested, and whatever the publisher
// does.
func TestReplayModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newReplayWorld(t)
		for range rapid.IntRange(1, 5).Draw(t, "before") {
			w.step(rapid.SampledFrom([]string{"add", "add", "delete", "edit"}).Draw(t, "kind"))
		}
		frozen := map[string]time.Time{}
		for r, err := range w.store.Entries(t.Context(), mirror.Query{Feed: replayURL}) {
			require.NoError(t, err)
			frozen[r.ID] = r.Time()
		}
		asof := w.feed.Commits
		start := w.now.AddDate(0, 0, rapid.IntRange(-3, 3).Draw(t, "start"))
		query := "start=" + start.Format(time.DateOnly) + rapid.SampledFrom([]string{
			"&every=1d", "&every=6h", "&every=1d&per=3", "&every=1w&days=mon,thu", "&every=1d&days=tue&zone=America/New_York", "&pace=original×400", "&every=1d&new=now",
		}).Draw(t, "pace") + fmt.Sprintf("&asof=%d", asof)
		servers := []*Handler{}
		for range 2 { // the second server is asked only at the beginning and at the end
			servers = append(servers, &Handler{Store: w.store, Base: "http://127.0.0.1:8005/", Size: 3, Time: func() time.Time { return w.now }})
		}
		path := "/feeds/" + Name(replayURL) + "/replay.atom?" + strings.ReplaceAll(query, "×", "%C3%97")
		seen := map[string]time.Time{} // when each entry was released
		archives := map[string]string{}
		look := func(s *Handler) map[string]time.Time {
			h, err := direct(s).Fetch(t.Context(), "http://127.0.0.1:8005"+path)
			require.NoError(t, err)
			require.Empty(t, h.Gaps)
			now := map[string]time.Time{}
			for _, e := range h.Entries {
				require.False(t, e.Updated.After(w.now), "%s before its time", e.ID)
				require.False(t, e.Updated.Before(start.Add(-24*time.Hour)))
				if was, ok := seen[e.ID]; ok {
					require.True(t, was.Equal(e.Updated), "%s is released once", e.ID)
				}
				now[e.ID] = e.Updated
			}
			return now
		}
		seen = look(servers[0]) // as the page that makes the address does
		look(servers[1])
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "hours")) * time.Hour)
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				w.step(rapid.SampledFrom([]string{"add", "edit", "delete"}).Draw(t, "kind"))
			}
			if !rapid.Bool().Draw(t, "look") {
				continue
			}
			now := look(servers[0])
			for id := range seen {
				require.Contains(t, now, id, "what was released stays")
			}
			seen = now
			for n := 1; ; n++ { // archives never change their entries
				status, body, _ := answer(servers[0], getRequest(t.Context(), path+fmt.Sprintf("&archive=%d", n)))
				if status == http.StatusNotFound {
					break
				}
				require.Equal(t, http.StatusOK, status, body)
				doc, err := feedhistory.Parse(strings.NewReader(body), "")
				require.NoError(t, err)
				var list []string
				for _, e := range doc.Entries {
					list = append(list, e.ID+" "+e.Updated.Format(time.RFC3339))
				}
				text := strings.Join(list, "\n")
				if was, ok := archives[path+fmt.Sprint(n)]; ok {
					require.Equal(t, was, text, "archive %d", n)
				}
				archives[path+fmt.Sprint(n)] = text
			}
		}
		w.now = w.now.AddDate(30, 0, 0)
		all := look(servers[0])
		require.Equal(t, all, look(servers[1]), "the same, in whatever order documents are asked for")
		var base []string
		for id := range frozen {
			if at, ok := all[id]; ok {
				base = append(base, id)
				require.False(t, !w.gone[id].IsZero() && w.gone[id].Before(at))
			} else {
				require.Contains(t, w.gone, id, "%s is released", id)
			}
		}
		for _, id := range w.ids {
			if _, ok := w.gone[id]; !ok {
				require.Contains(t, all, id)
			}
		}
		slices.SortFunc(base, func(a, b string) int { return cmp.Or(frozen[a].Compare(frozen[b]), cmp.Compare(a, b)) })
		for i := 1; i < len(base); i++ {
			require.False(t, all[base[i]].Before(all[base[i-1]]), "in order")
		}
	})
}

// The order stays as it was frozen, over restarts, whatever is edited.
func TestReplayOrderIsKept(t *testing.T) {
	store, out := mirror.NewMemory(), &publish.MemoryOutput{}
	feed := &mirror.Feed{URL: replayURL, Ledger: readAt(replayURL), Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:s</id><title>S</title><updated>2026-01-01T00:00:00Z</updated></feed>`}
	put := func(n int, when string) {
		at, err := time.Parse(time.DateOnly, when)
		require.NoError(t, err)
		known, err := store.Records(t.Context(), replayURL, []string{fmt.Sprint("urn:", n)})
		require.NoError(t, err)
		first := feed.Commits + 1
		if r := known[fmt.Sprint("urn:", n)]; r != nil {
			first = r.FirstCommit
		}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
			Feed: replayURL, ID: fmt.Sprint("urn:", n), State: mirror.Live, FirstCommit: first, LastCommit: feed.Commits + 1, Added: at, Changed: at, Copy: mirror.Copy{At: at, Digest: when},
			Content: mirror.Content{Format: feedhistory.FormatAtom, Updated: at, Data: fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:%d</id><title>%[1]d</title><updated>%sT00:00:00Z</updated></entry>`, n, when)},
		}}}))
	}
	for n := range 5 {
		put(n, fmt.Sprintf("2020-01-%02d", n+1))
	}
	order := func() string {
		s := &Handler{Store: store, Output: out, Time: func() time.Time { return time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC) }}
		doc, err := feedhistory.Parse(strings.NewReader(asked(t, s, "/feeds/"+Name(replayURL)+"/replay.atom?start=2026-01-01&every=1d&asof=5")), "")
		require.NoError(t, err)
		var ids []string
		for _, e := range doc.Entries {
			ids = append(ids, strings.TrimPrefix(e.ID, "urn:"))
		}
		return strings.Join(ids, " ")
	}
	require.Equal(t, "4 3 2 1 0", order())
	put(1, "2021-01-01") // edited, with a different date
	put(9, "2019-01-01") // found later, with an old date
	require.Equal(t, "9 4 3 2 1 0", order())
}

// Somebody who comes back after four weeks finds the releases of that time in
// the subscription document.
func TestReplayHoliday(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &Handler{Store: store, Size: 3, Time: func() time.Time { return now }}
	replay := func(query string) int {
		return strings.Count(asked(t, h, "/feeds/"+Name(damagedURL)+"/replay.atom?start=2026-01-01&"+query), "<entry")
	}
	require.Equal(t, 1, replay("every=1d"))
	now = now.AddDate(0, 0, 23).Add(time.Hour)
	require.Equal(t, 24, replay("every=1d"))
	require.Equal(t, 25, replay("every=1h"))
	now = now.AddDate(0, 0, 60)
	require.Equal(t, leastReleased, replay("every=1d"))
}
