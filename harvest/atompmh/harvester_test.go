package atompmh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A site has documents by path. It answers 404 for an empty document, and 500
// for unknown paths.
type site struct {
	t      *testing.T
	url    string
	docs   map[string]string
	asked  feedtest.List[string]
	before func(path string) // called before an answer, unless nil
	Harvester
}

func serveSite(t *testing.T, docs map[string]string) *site {
	s := &site{t: t, docs: docs}
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.asked.Add(r.URL.Path); s.before != nil {
			s.before(r.URL.Path)
		}
		doc, ok := s.docs[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusInternalServerError)
		} else if doc == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, doc)
	}))
	s.url, s.HTTP, s.memory = server.URL, loopback(), memoryOf(t)
	s.HTTP.PerHost = 1 // so that no document is requested ahead
	t.Cleanup(s.HTTP.CloseIdle)
	return s
}

// harvest harvests the feed at a path, and returns the result as lines.
func (s *site) harvest(path string, from Mark) (h *Harvest, changes []string, err error) {
	s.URL = s.url + path
	s.asked.Took()
	h = s.Harvester.Harvest(s.t.Context(), from)
	for c, failed := range h.Changes() {
		if err = errors.Join(err, failed); failed == nil {
			changes = append(changes, describe(c))
		}
	}
	return h, changes, err
}

// whole harvests, and requires that nothing is missing.
func (s *site) whole(path string, from Mark) (h *Harvest, next Mark, changes []string) {
	s.t.Helper()
	h, changes, err := s.harvest(path, from)
	require.NoError(s.t, err)
	next, whole := h.Mark()
	require.True(s.t, whole)
	return h, next, changes
}

const xmlns = `xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"`

// feed writes a document. The older one is "complete" for a complete feed.
func feed(updated, older string, entries ...string) string {
	link := `<link rel="prev-archive" href="` + older + `"/>`
	switch older {
	case "":
		link = ""
	case "complete":
		link = "<fh:complete/>"
	}
	return "<feed " + xmlns + "><id>urn:feed</id><updated>" + updated + "</updated>" + link + strings.Join(entries, "") + "</feed>"
}

func record(id, updated string) string {
	return entry(id, updated, `<link type="text/html" href="https://example.org/`+id[4:]+`"/>`)
}

func deletion(id, updated string) string { return entry(id, updated, `<content/>`) }

func entry(id, updated, rest string) string {
	return "<entry><title/><id>" + id + "</id><updated>" + updated + "</updated>" + rest + "</entry>"
}

// day returns a time in January.
func day(n int) string { return fmt.Sprintf("2012-01-%02dT00:00:00Z", n) }

func is(id string, n int) string {
	return fmt.Sprintf("record %s %s https://example.org/%s\n", day(n), id, id[4:])
}

func isDeleted(id string, n int) string { return fmt.Sprintf("deleted %s %s\n", day(n), id) }

func markAt(n int) Mark {
	t, _ := time.Parse(time.RFC3339, day(n))
	return Mark{mark{Time: t, Seen: map[string]seenRecord{}}}
}

// A harvest ends after the first document that is strictly older than the mark,
// and no sooner (atom-pmh consumer#2).
func TestStopRule(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed":  feed(day(9), "/4", record("urn:e", day(9))),
		"/4":     feed(day(6), "/3", record("urn:d", day(6))),
		"/3":     feed(day(6), "/empty", record("urn:c", day(6))),
		"/empty": feed(day(1), "/2"),
		"/2":     feed(day(5), "/1", record("urn:b", day(5))),
		"/1":     feed(day(4), "", record("urn:a", day(4))),
	})
	all := []string{is("urn:a", 4), is("urn:b", 5), is("urn:c", 6), is("urn:d", 6), is("urn:e", 9)}
	for _, test := range []struct {
		from  Mark
		asked string
		want  []string
	}{
		{Mark{}, "/feed /4 /3 /empty /2 /1", all},
		{markAt(4), "/feed /4 /3 /empty /2 /1", all},
		{markAt(5), "/feed /4 /3 /empty /2 /1", all[1:]},
		{markAt(6), "/feed /4 /3 /empty /2", all[2:]},
		{markAt(7), "/feed /4", all[4:]},
		{markAt(9), "/feed /4", all[4:]},
	} {
		h, next, changes := s.whole("/feed", test.from)
		require.Equal(t, test.want, changes, test.from.m.Time)
		require.Equal(t, test.asked, strings.Join(s.asked.All(), " "), test.from.m.Time)
		require.Equal(t, test.from.IsZero(), h.All())
		require.Equal(t, markAt(9).m.Time, next.m.Time)
		require.Len(t, next.m.Seen, 1)
	}
}

// What is read again is not reported again, except entries that came later with
// the same time, or that have changed without a later time.
func TestEqualTimes(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(2), "/1", record("urn:b", day(2))), "/1": feed(day(2), "", record("urn:a", day(2)))})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 2), is("urn:b", 2)}, changes)

	s.docs["/feed"] = feed(day(2), "/2", deletion("urn:b", day(2)), record("urn:c", day(2)), record("urn:d", day(1)))
	s.docs["/2"] = feed(day(2), "/1", record("urn:b", day(2)))
	_, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:d", 1), isDeleted("urn:b", 2), is("urn:c", 2)}, changes)

	moved := strings.Replace(is("urn:c", 2), "org/c", "org/moved", 1)
	s.docs["/feed"] = strings.Replace(s.docs["/feed"], "org/c", "org/moved", 1)
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{moved}, changes)
}

// Fractions of a second count: a change already read is not reported again, and a later one is.
func TestFractions(t *testing.T) {
	at := func(fraction string) string { return "2012-01-02T00:00:00." + fraction + "Z" }
	s := serveSite(t, map[string]string{"/feed": feed(at("5"), "", record("urn:a", at("5")))})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Len(t, changes, 1)
	s.docs["/feed"] = feed(at("500000001"), "", record("urn:a", at("5")), record("urn:b", at("500000001")))
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 2)}, changes)
}

// The latest entry of a record counts, of equally late ones the deletion
// (atom-pmh consumer#4); any other entry is reported as Other (consumer#3).
//
// Duties: atom-pmh consumer#3.
func TestClassification(t *testing.T) {
	link := `<link rel="alternate" href="https://example.org/x"/>`
	for name, test := range map[string]struct {
		first, second string // in the feed, and in its archive
		want          []string
	}{
		"a copy":                      {record("urn:a", day(2)), record("urn:a", day(2)), []string{is("urn:a", 2)}},
		"history after":               {record("urn:a", day(3)) + record("urn:a", day(2)), "", []string{is("urn:a", 3)}},
		"history before":              {record("urn:a", day(2)) + record("urn:a", day(3)), "", []string{is("urn:a", 3)}},
		"deleted":                     {deletion("urn:a", day(3)), record("urn:a", day(2)), []string{isDeleted("urn:a", 3)}},
		"deleted and created":         {record("urn:a", day(3)), deletion("urn:a", day(2)), []string{is("urn:a", 3)}},
		"deleted at the same time":    {deletion("urn:a", day(2)), record("urn:a", day(2)), []string{isDeleted("urn:a", 2)}},
		"deleted then, and before":    {record("urn:a", day(2)), deletion("urn:a", day(2)), []string{isDeleted("urn:a", 2)}},
		"deleted in one document":     {record("urn:a", day(2)) + deletion("urn:a", day(2)), "", []string{isDeleted("urn:a", 2)}},
		"an empty element, not empty": {entry("urn:a", day(2), "<content><!-- nothing -->\n</content>"), "", []string{isDeleted("urn:a", 2)}},
		"with content":                {entry("urn:a", day(2), link+"<content>text</content>"), "", []string{"other 2012-01-02T00:00:00Z urn:a https://example.org/x\n"}},
		"with a link and no content":  {entry("urn:a", day(2), link+"<content/>"), "", []string{"other 2012-01-02T00:00:00Z urn:a https://example.org/x\n"}},
		"with text only":              {entry("urn:a", day(2), "<content>text</content>"), "", []string{"other 2012-01-02T00:00:00Z urn:a\n"}},
		"with markup only":            {entry("urn:a", day(2), `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"/></content>`), "", []string{"other 2012-01-02T00:00:00Z urn:a\n"}},
		"with src":                    {entry("urn:a", day(2), `<content src="https://example.org/x"/>`), "", []string{"other 2012-01-02T00:00:00Z urn:a\n"}},
		"with nothing":                {entry("urn:a", day(2), ""), "", []string{"other 2012-01-02T00:00:00Z urn:a\n"}},
		"content of another kind":     {entry("urn:a", day(2), `<link href="https://example.org/a"/><content xmlns="urn:x">text</content>`), "", []string{is("urn:a", 2)}},
		"no time":                     {entry("urn:a", "yesterday", link), "", []string{"other 0001-01-01T00:00:00Z urn:a https://example.org/x\n"}},
		"other is not the latest":     {entry("urn:a", day(3), "") + record("urn:a", day(2)), "", []string{is("urn:a", 2), "other 2012-01-03T00:00:00Z urn:a\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSite(t, map[string]string{"/feed": feed(day(9), "/1", test.first), "/1": feed(day(2), "", test.second)})
			_, _, changes := s.whole("/feed", Mark{})
			require.Equal(t, test.want, changes)
		})
	}
}

// A complete feed deletes what it leaves out, and only a complete feed does
// (atom-pmh consumer#1), whatever it was before or becomes.
func TestComplete(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed(day(3), "complete", record("urn:a", day(1)), record("urn:b", day(2)), record("urn:c", day(3))),
	})
	h, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 1), is("urn:b", 2), is("urn:c", 3)}, changes)
	require.True(t, h.All())

	s.docs["/feed"] = feed(day(2), "complete", record("urn:a", day(1)), record("urn:b", day(2)))
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:c", 3)}, changes)
	require.False(t, h.All())

	// With archives from now on, after b has vanished without a trace.
	s.docs["/feed"] = feed(day(5), "/1", record("urn:d", day(5)))
	s.docs["/1"] = feed(day(4), "/0", record("urn:c", day(4)))
	_, changes, err := s.harvest("/feed", mark)
	require.ErrorContains(t, err, "500") // nothing is concluded then
	require.Equal(t, []string{is("urn:c", 4), is("urn:d", 5)}, changes)
	s.docs["/0"] = feed(day(1), "", record("urn:a", day(1)))
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:b", 2), is("urn:c", 4), is("urn:d", 5)}, changes)
	require.False(t, h.All())
	require.Len(t, mark.m.Seen, 1)

	// Complete again: the other records are gone, and cannot be named.
	s.docs["/feed"] = feed(day(6), "complete", record("urn:a", day(1)), record("urn:d", day(6)))
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:a", 1), is("urn:d", 6)}, changes)
	require.True(t, h.All())

	// The complete document may be an archive.
	s.docs["/feed"] = feed(day(8), "/2", record("urn:e", day(8)))
	s.docs["/2"] = feed(day(7), "complete", record("urn:d", day(6)))
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:a", 1), is("urn:e", 8)}, changes)
	require.Equal(t, []string{"/feed", "/2"}, s.asked.All())
	require.False(t, h.All())
	require.True(t, mark.m.Complete)
	s.docs["/feed"] = feed(day(9), "complete", record("urn:e", day(8)))
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:d", 6)}, changes)
}

// A complete feed with a link to an older document contradicts itself: it deletes nothing, and the
// harvest says so, whether it has a mark or not, until one of the two marks is gone.
func TestContradiction(t *testing.T) {
	for _, rel := range []string{"prev-archive", "next", "previous", "last"} {
		complete := func(updated string, entries ...string) string {
			return strings.Replace(feed(updated, "/1", entries...), `<link rel="prev-archive"`, `<fh:complete/><link rel="`+rel+`"`, 1)
		}
		s := serveSite(t, map[string]string{
			"/feed": feed(day(4), "complete", record("urn:a", day(1)), record("urn:b", day(2)), record("urn:c", day(3)), record("urn:d", day(4))),
		})
		_, mark, _ := s.whole("/feed", Mark{})
		store := mirror.NewMemory()
		keep := func() *mirror.Report {
			report, err := s.Keep(t.Context(), &mirror.Mirror{Store: store})
			require.NoError(t, err)
			return report
		}
		require.Empty(t, keep().Feed.Ledger.Gaps())
		s.docs["/feed"] = complete(day(5), record("urn:e", day(5)), record("urn:d", day(4)))
		s.docs["/1"] = feed(day(3), "", record("urn:a", day(1)), record("urn:b", day(2)), record("urn:c", day(3)))
		for range 2 {
			h, changes, err := s.harvest("/feed", mark)
			require.Equal(t, feedhistory.ReasonContradiction, feedtest.ErrorAs[*feedhistory.Gap](t, err).Reason, rel)
			require.ErrorContains(t, err, "it has fh:complete, and a link "+rel+" that leads elsewhere")
			require.Equal(t, 1, strings.Count(err.Error(), "5005#26"), "%v", err)
			require.Equal(t, []string{is("urn:e", 5)}, changes)
			require.Equal(t, []string{"/feed", "/1"}, s.asked.All())
			_, whole := h.Mark()
			require.False(t, whole || h.All())
			h, changes, err = s.harvest("/feed", Mark{})
			require.Error(t, err)
			require.Len(t, changes, 5)
			require.False(t, h.All())

			report := keep()
			require.Len(t, report.Feed.Ledger.Gaps(), 1)
			require.Equal(t, feedhistory.ReasonContradiction, report.Feed.Ledger.Gaps()[0].Reason)
			require.Equal(t, []string{"urn:a", "urn:b", "urn:c", "urn:d", "urn:e"}, live(t, store, s.URL))
		}
		s.docs["/feed"] = feed(day(5), "/1", record("urn:e", day(5)), record("urn:d", day(4)))
		s.docs["/1"] = feed(day(3), "", record("urn:a", day(1)), record("urn:c", day(3)))
		_, _, changes := s.whole("/feed", mark)
		require.Equal(t, []string{isDeleted("urn:b", 2), is("urn:e", 5)}, changes)
		require.Empty(t, keep().Feed.Ledger.Gaps())
		require.Equal(t, []string{"urn:a", "urn:c", "urn:d", "urn:e"}, live(t, store, s.URL))
	}
}

// live returns the IDs of the records that a store shows.
func live(t *testing.T, store mirror.Store, url string) (ids []string) {
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// A feed that was set back to an earlier state is read to its end, because the
// mark says nothing about it.
func TestSetBack(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(3), "/1", record("urn:b", day(3))), "/1": feed(day(1), "", record("urn:a", day(1)))})
	h, mark, changes := s.whole("/feed", markAt(5))
	require.Equal(t, []string{is("urn:a", 1), is("urn:b", 3)}, changes)
	require.True(t, h.All())
	require.Equal(t, markAt(3).m.Time, mark.m.Time)
}

// Changes that are published late are found within the overlap.
func TestOverlap(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(5), "/1", record("urn:c", day(5))), "/1": feed(day(1), "", record("urn:a", day(1)))})
	s.Overlap = 72 * time.Hour
	_, mark, _ := s.whole("/feed", Mark{})
	s.docs["/feed"] = feed(day(6), "/2", record("urn:d", day(6)))
	s.docs["/2"] = feed(day(5), "/late", record("urn:c", day(5)))
	s.docs["/late"] = feed(day(4), "/1", record("urn:b", day(4)))
	_, _, changes := s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 4), is("urn:d", 6)}, changes)
}

// The mark does not move unless the harvest is whole and all of it was taken
// (atom-pmh consumer#7).
func TestNotWhole(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed(day(9), "/2", record("urn:c", day(9))),
		"/1":    feed(day(1), "", record("urn:a", day(1))),
	})
	h, changes, err := s.harvest("/feed", markAt(3))
	gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.Equal(t, s.url+"/2", gap.URL)
	require.Equal(t, []string{is("urn:c", 9)}, changes)
	require.Equal(t, []*feedhistory.Gap{gap}, h.Gaps())
	require.Equal(t, 2, h.Requests())
	require.Equal(t, 1, h.DocumentsRead())
	next, whole := h.Mark()
	require.False(t, whole)
	require.Equal(t, markAt(3), next)
	require.False(t, h.All())

	s.docs["/2"] = feed(day(4), "/1", record("urn:b", day(4)))
	_, next, changes = s.whole("/feed", next)
	require.Equal(t, []string{is("urn:b", 4), is("urn:c", 9)}, changes)

	h = s.Harvest(t.Context(), Mark{})
	for range h.Changes() {
		break
	}
	_, whole = h.Mark()
	require.False(t, whole)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h = s.Harvest(ctx, next)
	for _, err := range h.Changes() {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, whole = h.Mark()
	require.False(t, whole)
}

// A document that is not Atom is not a feed of records (atom-pmh#3).
func TestNotAtom(t *testing.T) {
	rss := `<rss version="2.0"><channel><item><guid>urn:x</guid></item></channel></rss>`
	s := serveSite(t, map[string]string{"/rss": rss, "/feed": feed(day(1), "/rss", record("urn:a", day(1)))})
	_, changes, err := s.harvest("/rss", Mark{})
	require.ErrorIs(t, err, harvest.ErrFormat)
	require.EqualError(t, err, s.url+"/rss: this is rss, not Atom (atom-pmh#3)")
	require.Empty(t, changes)

	_, changes, err = s.harvest("/feed", Mark{})
	gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.Equal(t, feedhistory.ReasonNotFeed, gap.Reason)
	require.ErrorIs(t, gap, harvest.ErrFormat)
	require.Equal(t, []string{is("urn:a", 1)}, changes)
}

// What can be read of a damaged document is reported, but nothing is concluded
// from it.
func TestDamaged(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed(day(9), "/2", record("urn:c", day(9))),
		"/2":    strings.TrimSuffix(feed(day(4), "/1", record("urn:b", day(4))), "</feed>") + "<entry><id>urn:cut",
		"/1":    feed(day(1), "", record("urn:a", day(1))),
	})
	h, changes, err := s.harvest("/feed", Mark{})
	feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.Equal(t, []string{is("urn:a", 1), is("urn:b", 4), is("urn:c", 9)}, changes)
	_, whole := h.Mark()
	require.False(t, whole)
}

// If a producer rebuilds its archives while they are read, the subscription
// document is read again, and the new one counts.
func TestArchivesMadeAnew(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed(day(4), "/old", record("urn:b", day(4))), "/old": "",
		"/new": feed(day(3), "", record("urn:a", day(3))),
	})
	s.before = func(path string) {
		if path == "/old" {
			s.docs["/feed"] = feed(day(5), "/new", deletion("urn:b", day(5)))
		}
	}
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 3), isDeleted("urn:b", 5)}, changes)
	require.Equal(t, []string{"/feed", "/old", "/feed", "/new"}, s.asked.All())
	require.Equal(t, s.url+"/new", mark.m.Subscription.Older)
}

// A dailyFeed is a producer such as miletus: it has a document for each day with changes,
// and each document has the time of the latest change of all. A changed record leaves its
// archive. One that lies leaves it there instead, with its new time.
type dailyFeed struct {
	now   time.Time
	items map[string]logged
	days  map[string]string // of the records, by ID
	lies  bool
}

func newDailyFeed(days int) *dailyFeed {
	f := &dailyFeed{now: noon, items: map[string]logged{}, days: map[string]string{}}
	for i := range 3 * days {
		f.put(fmt.Sprintf("urn:%d", i), false)
		f.now = f.now.Add(8 * time.Hour)
	}
	return f
}

func (f *dailyFeed) put(id string, deleted bool) {
	f.now = f.now.Add(time.Minute)
	f.items[id] = logged{id, f.now, deleted, len(f.items) + f.now.Minute()}
	if f.days[id] == "" || !f.lies {
		f.days[id] = f.now.Format(time.DateOnly)
	}
}

func (f *dailyFeed) present() map[string]copied {
	return (&foreign{log: slices.Collect(maps.Values(f.items))}).present()
}

// ServeHTTP implements http.Handler.
func (f *dailyFeed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	day := strings.TrimPrefix(r.URL.Path, "/")
	if day == "feed" {
		day = f.now.Format(time.DateOnly)
	}
	var entries []string
	older, latest := "", time.Time{}
	for _, id := range slices.Sorted(maps.Keys(f.items)) {
		it := f.items[id]
		if it.at.After(latest) {
			latest = it.at
		}
		if f.days[id] == day {
			entries = append(entries, it.entry())
		} else if f.days[id] < day {
			older = max(older, f.days[id])
		}
	}
	if older != "" {
		older = "/" + older
	}
	w.Header().Set("Date", f.now.Format(http.TimeFormat))
	_, _ = w.Write([]byte(feed(latest.Format(time.RFC3339), older, entries...)))
}

// A dailyConsumer keeps up with a dailyFeed, by changes or in a mirror.
type dailyConsumer struct {
	*dailyFeed
	wire  *wire
	known []string // the archives at which harvests ended
	h     *Harvester

	consumer *consumer
	mirror   *mirror.Mirror
}

func newDailyConsumer(f *dailyFeed, memory int, keeps bool) *dailyConsumer {
	c := &dailyConsumer{dailyFeed: f, wire: &wire{handler: f}}
	c.h = &Harvester{HTTP: c.wire.client(), URL: "https://example.org/feed", memory: memory, Known: func(url string) { c.known = append(c.known, url) }}
	if keeps {
		c.mirror = &mirror.Mirror{Store: mirror.NewMemory()}
	} else {
		c.consumer = &consumer{Harvester: c.h, has: map[string]copied{}}
	}
	return c
}

// harvest harvests, and returns the number of requests, and whether the result is right.
func (c *dailyConsumer) harvest(t testingContext) (requests int, right bool) {
	before := len(c.wire.requests)
	var has map[string]copied
	if c.consumer != nil {
		h, _, err := c.consumer.harvest(t.Context())
		require.NoError(t, err)
		_, whole := h.Mark()
		require.True(t, whole)
		has = c.consumer.present()
	} else {
		_, err := c.h.Keep(t.Context(), c.mirror)
		require.NoError(t, err)
		has = kept(t, c.mirror, c.h.URL)
	}
	return len(c.wire.requests) - before, maps.Equal(has, c.present())
}

// If each document has the feed's time, the third harvest and those after it end at a
// known archive. The whole chain is read again at times.
//
// Duties: atom-pmh#7.
func TestFeedTimeInArchives(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		f := newDailyFeed(50)
		c := newDailyConsumer(f, memoryOf(t), keeps)
		var requests []int
		for i := range 60 {
			n, right := c.harvest(t)
			require.True(t, right, i)
			requests = append(requests, n)
			f.now = f.now.Add(time.Duration(i%3) * 9 * time.Hour)
			f.put(fmt.Sprintf("urn:new:%d", i), false)
			f.put(fmt.Sprintf("urn:%d", 2*i), i%5 == 0)
		}
		t.Log(requests)
		for i, n := range requests {
			if i == 0 || i == 1 || i == 22 || i == 43 {
				require.Greater(t, n, 30, i)
			} else {
				require.LessOrEqual(t, n, 5, i)
			}
		}
		require.Len(t, c.known, 56)

		c.h.WholeChain = true
		n, right := c.harvest(t)
		require.Greater(t, n, 30)
		require.True(t, right)
		require.Len(t, c.known, 56)
		if keeps {
			continue
		}

		// The mark remembers the records of archives that were left out.
		c.h.WholeChain = false
		f.put("urn:last", false)
		n, _ = c.harvest(t)
		require.LessOrEqual(t, n, 5)
		require.Len(t, c.known, 57)
		c.h.WholeChain = true
		_, changes, err := c.consumer.harvest(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
	}
}

// A record that has changed in an old archive, against the order of time, is noticed
// at once if it is the latest change, and else at the next pass. Then the producer is no
// longer trusted.
func TestFeedTimeOutOfOrder(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for _, later := range []bool{false, true} {
			f := newDailyFeed(30)
			c := newDailyConsumer(f, memoryOf(t), keeps)
			grow := func() { f.put(fmt.Sprintf("urn:new:%d", len(f.items)), false) }
			for range 4 {
				_, right := c.harvest(t)
				require.True(t, right)
				grow()
			}
			require.Len(t, c.known, 2)
			f.lies = true
			f.put("urn:3", false)
			if later {
				grow()
			}
			harvests := 1
			for _, right := c.harvest(t); !right; _, right = c.harvest(t) {
				harvests++
				grow()
			}
			want, known := 1, 2
			if later {
				want, known = 19, 20
			}
			require.Equal(t, want, harvests)
			for range 5 {
				grow()
				n, right := c.harvest(t)
				require.True(t, right)
				require.Greater(t, n, 28)
			}
			require.Len(t, c.known, known)
		}
	}
}

// TestFeedTime checks that consumers of a producer whose documents all have the feed's
// time have its records after each harvest, whichever responses are lost.
func TestFeedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newDailyFeed(6)
		c := newDailyConsumer(f, rapid.SampledFrom(memories).Draw(t, "memory"), rapid.Bool().Draw(t, "keeps"))
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				f.now = f.now.Add(rapid.SampledFrom([]time.Duration{0, time.Hour, 20 * time.Hour, 50 * time.Hour}).Draw(t, "later"))
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 25).Draw(t, "id"))
				last, ok := f.items[id]
				f.put(id, ok && !last.deleted && rapid.Bool().Draw(t, "delete"))
			}
			if c.mirror != nil && rapid.Bool().Draw(t, "cut short") {
				left := rapid.IntRange(1, 4).Draw(t, "responses until one is lost")
				c.wire.lose = func() bool { left--; return left < 0 }
				_, err := c.h.Keep(t.Context(), c.mirror)
				c.wire.lose = nil
				require.NoError(t, err)
			}
			_, right := c.harvest(t)
			require.True(t, right)
		}
	})
}

// A record from the future waits for its time, is reported, and does not hold
// up other records. Until then its earlier state is published.
func TestFuture(t *testing.T) {
	for _, mode := range []bool{false, true} {
		t.Run(way(mode), func(t *testing.T) {
			now := noon
			p := Producer{Output: newMemory(), Base: base, ByAbsence: mode, Now: func() time.Time { return now }}
			before := item("urn:a", noon.Add(-time.Hour))
			p.Pool = items(before)
			require.NoError(t, p.Update(t.Context()))
			ahead := item("urn:a", noon.AddDate(80, 0, 0))
			ahead.Representations[0].URL += "2"
			soon := item("urn:soon", noon.Add(30*time.Second))
			p.Pool = items(ahead, item("urn:b", noon), soon)
			for range 2 {
				err := p.Update(t.Context())
				record := feedtest.ErrorAs[*harvest.Error](t, err)
				require.Equal(t, harvest.Error{Code: harvest.ErrFuture, Item: "urn:a", At: ahead.Modified, Clause: "atom-pmh#7"}, *record)
				require.NotContains(t, err.Error(), "urn:soon") // clocks may differ by as much
				require.Equal(t, []string{"urn:b", "urn:a"}, published(t, &p))
			}
			doc, err := p.published()
			require.NoError(t, err)
			require.Equal(t, before.Modified, doc.Entries[1].Updated)

			now = noon.Add(time.Minute)
			p.Pool = items(ahead, item("urn:b", noon), soon, item("urn:c", now))
			require.ErrorIs(t, p.Update(t.Context()), harvest.ErrFuture)
			require.Equal(t, []string{"urn:c", "urn:soon", "urn:b", "urn:a"}, published(t, &p))

			now = ahead.Modified
			require.NoError(t, p.Update(t.Context()))
			require.Equal(t, []string{"urn:a", "urn:c", "urn:soon", "urn:b"}, published(t, &p))
		})
	}
}

// If only absence shows deletions, a deleted record does not stay because its
// deletion is stamped in the future.
func TestFutureDeletion(t *testing.T) {
	p := Producer{Output: newMemory(), Base: base, ByAbsence: true, Now: func() time.Time { return noon }}
	p.Pool = items(item("urn:a", noon))
	require.NoError(t, p.Update(t.Context()))
	p.Pool = items(Item{ID: "urn:a", Modified: noon.AddDate(1, 0, 0), Deleted: true})
	require.NoError(t, p.Update(t.Context()))
	require.Empty(t, published(t, &p))
}

// If the published feed itself is from the future, an update returns an error
// instead of never publishing anything.
func TestPublishedFuture(t *testing.T) {
	now := noon.AddDate(80, 0, 0)
	p := Producer{Output: newMemory(), Base: base, Now: func() time.Time { return now }}
	p.Pool = items(item("urn:a", now))
	require.NoError(t, p.Update(t.Context()))
	now = noon
	p.Pool = items(item("urn:a", noon.AddDate(80, 0, 0)), item("urn:b", noon))
	err := p.Update(t.Context())
	require.ErrorIs(t, err, harvest.ErrLate)
	require.ErrorContains(t, err, "the published feed is dated 2092-11-01T12:00:00Z")
	require.ErrorContains(t, err, "urn:b")
}

// A change that becomes visible late is found however late it is: at once by a
// new Producer, and by a running one after the interval.
//
// Duties: atom-pmh#12, atom-pmh#23, atom-pmh#24.
func TestCompare(t *testing.T) {
	late := item("urn:late", noon.Add(-90*time.Second))
	older := Item{ID: "urn:c", Modified: noon.AddDate(0, -3, 0), Deleted: true}
	for name, test := range map[string]struct {
		compare time.Duration
		it      Item
		want    error
		clause  string
		after   time.Duration // time until it is found; negative: never
	}{
		"by default":          {0, late, harvest.ErrLate, "atom-pmh#7", 24 * time.Hour},
		"by the hour":         {time.Hour, late, harvest.ErrLate, "atom-pmh#7", time.Hour},
		"never":               {-1, late, nil, "", -1},
		"an archived one":     {time.Hour, item("urn:c", noon.AddDate(0, -2, 0)), harvest.ErrLate, "atom-pmh#7", time.Hour},
		"a deletion":          {time.Hour, older, harvest.ErrSameTime, "atom-pmh#13, atom-pmh#24", time.Hour},
		"an earlier state":    {time.Hour, item("urn:c", noon.AddDate(0, -4, 0)), harvest.ErrLate, "atom-pmh#12, atom-pmh#23", time.Hour},
		"an earlier deletion": {time.Hour, Item{ID: "urn:c", Modified: noon.AddDate(0, -4, 0), Deleted: true}, harvest.ErrLate, "atom-pmh#12, atom-pmh#23", time.Hour},
		"what was there then": {time.Hour, item("urn:c", noon.AddDate(0, -3, 0)), nil, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			now := noon
			p := Producer{
				Output: newMemory(), Base: base, Compare: test.compare, Now: func() time.Time { return now },
				Split: compose.Split{Size: 1},
			}
			all := []Item{item("urn:a", noon), item("urn:c", noon.AddDate(0, -3, 0)), item("urn:d", noon.AddDate(0, -1, 0))}
			p.Pool = items(all...)
			require.NoError(t, p.Update(t.Context()))
			if test.it.ID == "urn:c" {
				all[1] = test.it
			} else {
				all = append(all, test.it)
			}
			p.Pool = items(all...)
			now = noon.Add(max(test.after, 48*time.Hour) - 1)
			if test.after > 0 {
				now = noon.Add(test.after - 1)
			}
			require.NoError(t, p.Update(t.Context()))
			now = now.Add(1)
			for range 2 { // and again, until somebody does something about it
				err := p.Update(t.Context())
				if test.want == nil {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, test.want)
				record := feedtest.ErrorAs[*harvest.Error](t, err)
				require.Equal(t, test.clause, record.Clause)
				require.Equal(t, test.it.ID, record.Item)
			}
			fresh := p
			fresh.compared = time.Time{}
			if err := fresh.Update(t.Context()); test.compare >= 0 {
				require.ErrorIs(t, err, test.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// If an archive was removed, the records that may have been in it do not count
// as late.
func TestCompareWithoutArchive(t *testing.T) {
	out := newMemory()
	p := Producer{Output: out, Base: base, Split: compose.Split{Size: 1}}
	p.Pool = items(item("urn:a", noon.AddDate(0, -3, 0)), item("urn:b", noon.AddDate(0, -2, 0)), item("urn:c", noon))
	require.NoError(t, p.Update(t.Context()))
	for _, name := range out.Names() {
		if strings.Contains(out.text(t, name), ">urn:a<") {
			require.NoError(t, out.MemoryOutput.Remove(t.Context(), name))
		}
	}
	fresh := Producer{Output: out, Base: base, Pool: p.Pool, Split: p.Split}
	require.NoError(t, fresh.Update(t.Context()))
	fresh = Producer{Output: out, Base: base, Split: p.Split, Pool: items(item("urn:b", noon.AddDate(0, -1, 0)))}
	require.ErrorIs(t, fresh.Update(t.Context()), harvest.ErrLate)
}

// An entry from the future does not move the mark there: later changes are
// found, and the entry is reported once.
func TestFutureMark(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed("2099-01-01T00:00:00Z", "/1", record("urn:x", "2099-01-01T00:00:00Z"), record("urn:b", day(3))),
		"/1":    feed(day(2), "/0", record("urn:a", day(2))),
		"/0":    feed(day(1), "", record("urn:o", day(1))),
	})
	ahead := "record 2099-01-01T00:00:00Z urn:x https://example.org/x\n"
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:o", 1), is("urn:a", 2), is("urn:b", 3), ahead}, changes)
	require.Equal(t, markAt(3).m.Time, mark.m.Time)

	s.docs["/feed"] = feed(day(5), "/3", record("urn:d", day(5)))
	s.docs["/3"] = feed(day(4), "/2", record("urn:c", day(4)))
	s.docs["/2"] = feed("2099-01-01T00:00:00Z", "/1", record("urn:x", "2099-01-01T00:00:00Z"), record("urn:b", day(3)))
	_, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:c", 4), is("urn:d", 5)}, changes)
	require.Equal(t, "/feed /3 /2 /1", strings.Join(s.asked.All(), " "))
	require.Equal(t, markAt(5).m.Time, mark.m.Time)

	// A mark that an earlier version has set to the future is not used.
	mark.m.Time = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	s.docs["/feed"] = strings.Replace(feed("2099-01-01T00:00:00Z", "/4", record("urn:e", day(6))), "<id>", "<id>", 1)
	s.docs["/4"] = feed(day(5), "/3", record("urn:d", day(5)))
	h, mark, changes := s.whole("/feed", mark)
	require.Contains(t, changes, is("urn:e", 6))
	require.False(t, h.All())
	require.Equal(t, markAt(6).m.Time, mark.m.Time)
}

// A reported deletion is not taken back by what is left of the record if the
// deletion could not be read, nor by what the next harvest finds.
func TestDeletedStays(t *testing.T) {
	archive := feed(day(4), "/1", record("urn:a", day(2)), deletion("urn:a", day(4)))
	s := serveSite(t, map[string]string{
		"/feed": feed(day(4), "/1", record("urn:a", day(2)), deletion("urn:a", day(4))),
		"/1":    feed(day(1), "", record("urn:o", day(1))),
	})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:o", 1), isDeleted("urn:a", 4)}, changes)

	s.docs["/feed"] = feed(day(5), "/2", record("urn:b", day(5)))
	s.docs["/2"] = archive[:strings.Index(archive, "<entry><title/><id>urn:a</id><updated>"+day(4))]
	_, changes, err := s.harvest("/feed", mark)
	require.ErrorAs(t, err, new(*feedhistory.Gap))
	require.Equal(t, []string{is("urn:b", 5)}, changes)

	// The whole archive has the deletion, or its producer has dropped it.
	s.docs["/2"] = archive
	_, next, changes := s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 5)}, changes)
	s.docs["/2"] = feed(day(4), "/1", record("urn:a", day(2)))
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 5)}, changes)
	require.Equal(t, markAt(5).m.Time, next.m.Time)
}

// Of two copies with the same time, it is known only after everything has been
// read which one counts.
func TestCopyStays(t *testing.T) {
	moved := strings.Replace(record("urn:a", day(2)), "org/a", "org/moved", 1)
	s := serveSite(t, map[string]string{
		"/feed": feed(day(2), "/1", record("urn:a", day(2))), "/1": feed(day(2), "", moved),
	})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 2)}, changes)
	s.docs["/feed"] = feed(day(3), "/2", record("urn:b", day(3)))
	_, changes, err := s.harvest("/feed", mark) // /2 is missing
	require.Error(t, err)
	require.NotContains(t, strings.Join(changes, ""), "moved")
	s.docs["/2"] = feed(day(2), "/1", moved, deletion("urn:o", day(2)))[:len(feed(day(2), "/1", moved))-len("</feed>")]
	_, changes, err = s.harvest("/feed", mark)
	require.True(t, errors.As(err, new(*feedhistory.Gap)))
	require.Equal(t, []string{is("urn:b", 3)}, changes)
}

// Header is called for each request to the origin of the feed, and its fields
// go nowhere else, whatever links and redirects there are.
func TestHeader(t *testing.T) {
	docs := map[string]string{
		"https://example.org/feed": feed(day(3), "https://example.org/moved", record("urn:c", day(3))),
		"https://example.org/2":    feed(day(2), "https://other.example/1", record("urn:b", day(2))),
		"https://other.example/1":  feed(day(1), "", strings.Replace(record("urn:a", day(1)), "example.org", "other.example", 1)),
		"https://example.org/c":    "c", "https://example.org/b": "b", "https://other.example/a": "a",
	}
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "https://example.org/2", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, docs[r.URL.String()])
	})}
	asked := 0
	h := Harvester{
		HTTP: w.client(), URL: "https://example.org/feed", Parallel: 1,
		Header: func(_ context.Context, url string) (http.Header, error) {
			require.True(t, strings.HasPrefix(url, "https://example.org/"), url)
			asked++
			return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}, "x-key": {"k"}}, nil
		},
	}
	harvest := h.Harvest(t.Context(), Mark{})
	n := 0
	for _, f := range feedtest.All(t, h.Fetch(t.Context(), harvest.Changes(), nil)) {
		require.NoError(t, f.Err)
		require.Len(t, f.Body, 1)
		n++
	}
	require.Equal(t, 3, n)
	tokens := 0
	for _, r := range w.requests {
		if r.URL.Host == "example.org" {
			tokens++
			require.Equal(t, fmt.Sprint("Bearer ", tokens), r.Header.Get("Authorization"))
			require.Equal(t, "k", r.Header.Get("X-Key"))
		} else {
			require.Empty(t, r.Header.Get("Authorization"))
			require.Empty(t, r.Header.Get("X-Key"))
		}
	}
	require.Equal(t, 5, tokens)
	require.Len(t, w.requests, 7)

	failed := errors.New("the token has expired")
	h.Header = func(context.Context, string) (http.Header, error) { return nil, failed }
	for _, err := range h.Harvest(t.Context(), Mark{}).Changes() {
		require.ErrorIs(t, err, failed)
	}
	require.Len(t, w.requests, 7)
}

// The first media range that matches any representation decides, and among the
// representations that it matches, the producer's order (atom-pmh consumer#5).
func TestChoose(t *testing.T) {
	all := []Representation{
		{URL: "html", Type: "text/html; charset=utf-8"},
		{URL: "feed", Type: "application/atom+xml;type=feed"},
		{URL: "entry", Type: `Application/Atom+XML; Type="entry"; charset=UTF-8`},
		{URL: "rdf", Type: "application/rdf+xml"},
		{URL: "unknown"},
		{URL: "bad", Type: "application"},
	}
	for _, test := range []struct {
		accept []string
		want   string
	}{
		{nil, "html"},
		{[]string{"*/*"}, "html"},
		{[]string{"application/rdf+xml"}, "rdf"},
		{[]string{"APPLICATION/RDF+XML"}, "rdf"},
		{[]string{"application/atom+xml"}, "feed"},
		{[]string{"application/atom+xml;type=entry"}, "entry"},
		{[]string{"application/atom+xml; TYPE=Entry; charset=utf-8"}, "entry"},
		{[]string{"application/atom+xml;type=entry;version=2"}, ""},
		{[]string{"application/*"}, "feed"},
		{[]string{"text/*;charset=latin1", "application/rdf+xml", "text/html"}, "rdf"},
		{[]string{"image/png", "text/html"}, "html"},
		{[]string{"image/*"}, ""},
		{[]string{"image/*", "*/*"}, "html"},
		{[]string{"*/*;type=entry"}, "entry"},
	} {
		ranges, err := readRanges(test.accept)
		require.NoError(t, err)
		got := ""
		if chosen := choose(all, ranges); chosen != nil {
			got = chosen.URL
		}
		require.Equal(t, test.want, got, test.accept)
	}
	require.Nil(t, choose(nil, nil))
	only := choose(all[4:], nil)
	require.Equal(t, "unknown", only.URL)
}

func TestAcceptError(t *testing.T) {
	for _, value := range []string{"", "text", "text/", "/html", "*/html", "text/html;q=0.5", "text/html; q", "text html"} {
		h := Harvester{URL: "http://127.0.0.1:1/", Accept: []string{"text/html", value}}
		for _, err := range h.Harvest(t.Context(), Mark{}).Changes() {
			accept := feedtest.ErrorAs[*harvest.Error](t, err, value)
			require.Equal(t, harvest.ErrAccept, accept.Code)
			require.Equal(t, value, accept.Item)
			require.ErrorIs(t, err, accept.Err)
			require.ErrorContains(t, err, fmt.Sprintf("accept %q: ", value))
		}
	}
}

// A record without an accepted type counts as deleted, or not, as the consumer
// chooses.
//
// Duties: atom-pmh consumer#5.
func TestUnacceptable(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(2), "", record("urn:a", day(1)))})
	s.Accept = []string{"application/rdf+xml"}
	_, _, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{"deleted 2012-01-01T00:00:00Z urn:a https://example.org/a\n"}, changes)
	s.KeepUnacceptable = true
	_, _, changes = s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 1)}, changes)
}

// A foreign producer is not ours. It uses the freedoms of the specification:
// where it cuts archives, and whether it cuts them again; the order of entries;
// whether history stays, also that of deleted records. Its records may be
// stamped in the future, its server's clock differs from that of the stamps,
// and its answers may be cut short.
type foreign struct {
	now    time.Time
	skew   time.Duration // of the server's clock
	log    []logged      // in the order of publication
	sorted bool          // entries are in the order of time, else in that of publication
	sparse bool          // only the latest entry of each record stays
	sizes  []int         // of the documents, oldest first, repeatedly
	cut    func(length int) int
}

// A logged is an entry that was published.
type logged struct {
	id      string
	at      time.Time
	deleted bool
	n       int // distinguishes its representation from others
}

// ServeHTTP implements http.Handler.
func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	docs := f.documents()
	n := len(docs) - 1
	if r.URL.Path != "/feed" {
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n >= len(docs) {
			http.NotFound(w, r)
			return
		}
	}
	w.Header().Set("Date", f.now.Add(f.skew).Format(http.TimeFormat))
	text := docs[n]
	if f.cut != nil {
		text = text[:f.cut(len(text))]
	}
	_, _ = w.Write([]byte(text))
}

// documents returns the documents of the feed, oldest first.
func (f *foreign) documents() (docs []string) {
	log := slices.Clone(f.log)
	if f.sparse {
		log = slices.DeleteFunc(log, func(l logged) bool { return f.latest()[l.id] != l })
	}
	if f.sorted {
		slices.SortStableFunc(log, func(a, b logged) int { return a.at.Compare(b.at) })
	}
	updated := time.Unix(0, 0)
	for n := 0; ; n++ {
		size := min(f.sizes[n%len(f.sizes)], len(log))
		var entries []string
		for _, l := range log[:size] {
			entries = append(entries, l.entry())
			if l.at.After(updated) && (!l.at.After(f.now) || f.sorted) {
				updated = l.at // future entries do not count
			}
		}
		older := ""
		if n > 0 {
			older = fmt.Sprintf("/%d", n-1)
		}
		docs = append(docs, feed(updated.Format(time.RFC3339Nano), older, entries...))
		if log = log[size:]; len(log) == 0 {
			return docs
		}
	}
}

func (l logged) entry() string {
	at := l.at.Format(time.RFC3339Nano)
	if l.deleted {
		return deletion(l.id, at)
	}
	return strings.Replace(record(l.id, at), "org/", fmt.Sprintf("org/%d/", l.n), 1)
}

// latest returns the entries that count (atom-pmh consumer#4).
func (f *foreign) latest() map[string]logged {
	all := map[string]logged{}
	for _, l := range f.log {
		if old, ok := all[l.id]; !ok || l.at.After(old.at) || l.at.Equal(old.at) && l.deleted {
			all[l.id] = l
		}
	}
	return all
}

// present returns what a consumer should have.
func (f *foreign) present() map[string]copied {
	all := map[string]copied{}
	for id, l := range f.latest() {
		if !l.deleted {
			all[id] = copied{at: l.at.UTC(), url: fmt.Sprintf("https://example.org/%d/%s", l.n, id[4:])}
		}
	}
	return all
}

// write publishes changes, each stamped with the present or with a future time.
func (f *foreign) write(t *rapid.T) {
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		f.now = f.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute, 5 * time.Hour}).Draw(t, "later"))
		l := logged{id: fmt.Sprintf("urn:%d", rapid.IntRange(0, 6).Draw(t, "id")), at: f.now, n: len(f.log)}
		if rapid.IntRange(0, 7).Draw(t, "future") == 0 {
			l.at = l.at.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 80 * 365 * 24 * time.Hour}).Draw(t, "ahead"))
		}
		last, known := f.latest()[l.id]
		if known && !l.at.After(last.at) {
			continue // every change has a later time than the one before
		}
		l.deleted = known && rapid.IntRange(0, 2).Draw(t, "delete") == 0
		f.log = append(f.log, l)
	}
}

func (f *foreign) recut(t *rapid.T) {
	f.sizes = rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "sizes")
}

// TestForeignProducers checks that, whatever a producer does within its
// freedoms, and whenever answers are cut short, after a whole harvest a
// consumer has the present records, without reading everything each time.
func TestForeignProducers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &foreign{
			now:    time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC),
			skew:   -time.Duration(rapid.IntRange(0, 90).Draw(t, "skew")) * time.Second,
			sorted: rapid.Bool().Draw(t, "sorted"), sparse: rapid.Bool().Draw(t, "sparse"),
		}
		f.recut(t)
		w := &wire{handler: f}
		c := &consumer{Harvester: &Harvester{HTTP: w.client(), URL: "https://example.org/feed", memory: rapid.SampledFrom(memories).Draw(t, "memory")}, has: map[string]copied{}}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			f.write(t)
			if rapid.IntRange(0, 3).Draw(t, "recut") == 0 {
				f.recut(t)
			}
			if rapid.Bool().Draw(t, "torn") {
				seed := rapid.IntRange(1, 1000).Draw(t, "cut")
				f.cut = func(length int) int {
					seed = seed*7919%10007 + 1
					return min(length, seed%(2*length))
				}
				_, _, _ = c.harvest(t.Context())
				f.cut = nil
			}
			h, _, err := c.harvest(t.Context())
			require.NoError(t, err)
			_, whole := h.Mark()
			require.True(t, whole)
			require.Equal(t, f.present(), c.present())
			require.False(t, c.mark.m.Time.After(f.now), "the mark is in the future: %v", c.mark.m.Time)
		}
	})
}

// These are the specification's examples: what harvests bring, one after the
// other, and the resulting pool.
func TestExamples(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/examples/*.txtar") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			archive, site := feedtest.Parse(string(text)), feedtest.ServeFile(t, file)
			path, ok := archive.File("url")
			require.True(t, ok)
			client := loopback()
			defer client.CloseIdle()
			h := Harvester{HTTP: client, URL: site.URL + strings.TrimSpace(path), memory: memoryOf(t)}
			var mark Mark
			pool := map[string]string{}
			for n := 1; ; n++ {
				want, ok := archive.File(fmt.Sprintf("changes %d", n))
				if !ok {
					require.Greater(t, n, 1)
					break
				}
				harvest := h.Harvest(t.Context(), mark)
				var got strings.Builder
				for c, err := range harvest.Changes() {
					require.NoError(t, err)
					line := describe(c)
					if got.WriteString(line); c.Kind == Record {
						pool[c.ID] = line
					} else {
						delete(pool, c.ID)
					}
				}
				require.Equal(t, site.Expand(want), got.String())
				mark, ok = harvest.Mark()
				require.True(t, ok)
				want, _ = archive.File(fmt.Sprintf("pool %d", n))
				var lines []string
				for _, line := range pool {
					lines = append(lines, line)
				}
				require.ElementsMatch(t, strings.SplitAfter(strings.TrimSuffix(site.Expand(want), "\n")+"\n", "\n")[:len(lines)], lines)
			}
		})
	}
}

// describe returns a change as one line.
func describe(c Change) string {
	s := fmt.Sprintf("%s %s %s", c.Kind, c.Time.UTC().Format(time.RFC3339), c.ID)
	for _, r := range c.Representations {
		s += " " + r.URL
	}
	return s + "\n"
}

func loopback() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Tries: 1}
}

// A seedExample is the outcome of harvesting an example of the specification's text as it
// stands: as the feed itself, and as the archive of another document.
type seedExample struct {
	records, deleted int
	feed, archive    string // the beginning of the error; "" for none
}

var seedExamples = map[string]seedExample{
	"general-1-entries":           {2, 0, "", ""},
	"general-2-update-and-delete": {1, 1, "", ""},
	"general-3-subscription":      {0, 0, "refused: http://example.org/feed/L99 ", "refused: http://example.org/feed/L99 "},
	"general-4-archive":           {0, 0, "refused: http://example.org/feed/L98 ", "refused: http://example.org/feed/L98 "},
	"general-5-archive":           {0, 0, "refused: http://example.org/feed/L97 ", "refused: http://example.org/feed/L97 "},
	"general-6-oldest-archive":    {},
	"general-7-complete":          {1, 0, "", ""},

	"example-1-subscription": {1, 0, "refused: http://example.org/archived/2012/10/31 ", "refused: http://example.org/archived/2012/10/31 "},
	"example-1-2012-10-31":   {1, 0, "refused: http://example.org/archived ", "refused: http://example.org/archived/2012/06/30 "},
	"example-1-2012-06-30":   {1, 0, "refused: http://example.org/archived ", "refused: http://example.org/archived/2011/12/31 "},
	"example-1-2011-12-31":   {1, 0, "malformed: ", "malformed: "},
	"example-1-entry":        {0, 0, "not-feed: ", "not-feed: "},
	"example-2":              {0, 1, "refused: ", "refused: "},
	"example-3":              {4, 0, "", ""}, // one quote is missing, and nothing else is in its value
	"example-4":              {3, 0, "", ""},
	"example-5":              {1, 0, "", ""}, // its second entry is later than its feed, which breaks atom-pmh#5
}

// The sixteen examples in the text of the specification are here to the letter. Several are
// not well-formed, or fragments: they give an error with its place, both as the feed itself and
// as an archive, and whatever can be read of them: the harvest concludes nothing from them, and
// the next one begins where this one did. A single entry is not a feed. Examples 3 and 4 lack a
// quote, which loses nothing.
func TestSeedExamples(t *testing.T) {
	files := feedtest.Glob(t, "testdata/seed/*.xml")
	require.Len(t, files, len(seedExamples))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".xml")
		t.Run(name, func(t *testing.T) {
			want, ok := seedExamples[name]
			require.True(t, ok)
			text := feedtest.ReadFile(t, file)
			_, id, _ := strings.Cut(string(text), "<id>")
			id, _, _ = strings.Cut(id, "<")
			before := feed("2012-11-03T00:00:00Z", "/feed", record("urn:new", "2012-11-03T00:00:00Z"))
			s := serveSite(t, map[string]string{
				"/feed":   string(text),
				"/before": strings.Replace(before, "urn:feed", id, 1), // a complete document of another id would be another feed's
			})
			s.HTTP.OneOrigin = true // the links in the text lead to a host that must not get requests
			for path, problem := range map[string]string{"/feed": want.feed, "/before": want.archive} {
				h, changes, err := s.harvest(path, Mark{})
				kinds := map[string]int{}
				for _, c := range changes {
					kind, _, _ := strings.Cut(c, " ")
					kinds[kind]++
				}
				if path == "/before" {
					kinds["record"]--
				}
				require.Equal(t, []int{want.records, want.deleted}, []int{kinds["record"], kinds["deleted"]}, "%v", changes)
				next, whole := h.Mark()
				require.Equal(t, problem == "", whole, "%v", err)
				require.Equal(t, problem == "", !next.IsZero() && next.m.Subscription != (feedhistory.Known{}))
				if whole {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, problem)
				}
			}
		})
	}
}

// The example of deletions in its two forms, to the letter: two records, of which one is deleted
// and the other modified; by a deletion entry, and by a complete feed that lacks the record.
func TestSeedDeletions(t *testing.T) {
	for _, after := range []string{"general-2-update-and-delete", "general-7-complete"} {
		s := serveSite(t, map[string]string{"/feed": string(feedtest.ReadFile(t, "testdata/seed/general-1-entries.xml"))})
		_, mark, changes := s.whole("/feed", Mark{})
		require.Len(t, changes, 2)
		s.docs["/feed"] = string(feedtest.ReadFile(t, "testdata/seed/"+after+".xml"))
		_, _, changes = s.whole("/feed", mark)
		require.Len(t, changes, 2)
		slices.Sort(changes)
		require.Regexp(t, "^deleted .* urn:uuid:0b116a23-9bfc-49b1-97f7-90fb012c60a4\n$", changes[0])
		require.Equal(t, "record 2011-12-10T20:00:00Z urn:uuid:24870a63-01ae-4fed-878b-2ec8d498cfd0 http://example.org/entry/t2.atom-rdc\n", changes[1])
	}
}

// A feed that turns complete, or is set back, deletes what it lacks: each record the mark
// remembers is named.
func TestTurnsComplete(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(2), "", record("urn:a", day(1)), record("urn:b", day(2)))})
	_, mark, _ := s.whole("/feed", Mark{})
	s.docs["/feed"] = feed(day(3), "complete", record("urn:b", day(2)))
	h, next, changes := s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:a", 1), is("urn:b", 2)}, changes)
	require.True(t, h.All())
	_, _, changes = s.whole("/feed", next)
	require.Empty(t, changes)

	s.docs["/feed"] = feed(day(1), "", record("urn:a", day(1)))
	h, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:a", 1), isDeleted("urn:b", 2)}, changes)
	require.True(t, h.All())
}

// A record reported by a harvest of a complete feed that was not whole is reported as deleted
// when the feed lacks it, whatever was read before.
func TestGhosts(t *testing.T) {
	a, b, later := record("urn:a", day(1)), record("urn:b", day(2)), record("urn:a", day(2))
	sound := feed(day(1), "complete", a)
	stray := func(entries ...string) string {
		return strings.Replace(feed(day(2), "complete", entries...), "</feed>", "</entry></feed>", 1)
	}
	for name, test := range map[string]struct {
		first   string // "" for none
		damaged string
		last    string
		want    []string
	}{
		"stray end tag":   {sound, stray(b, a), feed(day(3), "complete", a), []string{isDeleted("urn:b", 2)}},
		"truncated":       {sound, strings.TrimSuffix(feed(day(2), "complete", b, a), "</feed>"), feed(day(3), "complete", a), nil}, // which reports nothing
		"the same again":  {sound, stray(b, a), sound, []string{isDeleted("urn:b", 2)}},
		"changed":         {sound, stray(later), sound, []string{is("urn:a", 1)}},
		"the first":       {"", stray(b, a), sound, []string{is("urn:a", 1), isDeleted("urn:b", 2)}},
		"contradiction":   {sound, strings.Replace(feed(day(2), "/1", b), "<entry", "<fh:complete/><entry", 1), feed(day(3), "complete", a), []string{isDeleted("urn:b", 2)}},
		"turned complete": {feed(day(1), "", a), stray(b, a), feed(day(3), "complete", a), []string{is("urn:a", 1), isDeleted("urn:b", 2)}},
		"still there":     {sound, stray(b, a), feed(day(2), "complete", b, a), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSite(t, map[string]string{"/feed": test.first, "/1": feed(day(1), "", a)})
			var mark Mark
			if test.first != "" {
				_, mark, _ = s.whole("/feed", Mark{})
			}
			s.docs["/feed"] = test.damaged
			for range 2 {
				h, _, err := s.harvest("/feed", mark)
				require.Error(t, err)
				next, whole := h.Mark()
				require.False(t, whole)
				text, err := json.Marshal(next)
				require.NoError(t, err)
				mark = Mark{}
				require.NoError(t, json.Unmarshal(text, &mark))
			}
			s.docs["/feed"] = test.last
			_, next, changes := s.whole("/feed", mark)
			require.Equal(t, test.want, changes)
			require.Len(t, next.m.Seen, strings.Count(test.last, "<entry>"))
		})
	}
}

// A pool without records may have several complete documents, with deletions or nothing. They
// contradict each other only if an older one has a record that the newest does not cover.
func TestEmptyPool(t *testing.T) {
	complete := func(updated, older string, entries ...string) string {
		return strings.Replace(feed(updated, older, entries...), "</id>", "</id><fh:complete/>", 1)
	}
	for name, test := range map[string]struct {
		feed, first, second string
		want                []string
		doubt               bool
	}{
		"nothing":               {complete(day(9), "/1"), complete(day(1), ""), "", nil, false},
		"a deletion":            {complete(day(9), "/1", deletion("urn:a", day(9))), complete(day(1), ""), "", []string{isDeleted("urn:a", 9)}, false},
		"three":                 {complete(day(9), "/1", deletion("urn:a", day(9))), complete(day(8), "/2"), complete(day(1), ""), []string{isDeleted("urn:a", 9)}, false},
		"history that is shown": {complete(day(9), "/1", deletion("urn:a", day(9))), feed(day(1), "", record("urn:a", day(1))), "", []string{isDeleted("urn:a", 9)}, false},
		"deleted before":        {complete(day(9), "/1"), feed(day(2), "", deletion("urn:a", day(2)), record("urn:a", day(1))), "", []string{isDeleted("urn:a", 2)}, false},
		"a record in both":      {complete(day(9), "/1", record("urn:a", day(9))), feed(day(1), "", record("urn:a", day(1))), "", []string{is("urn:a", 9)}, false},
		"a record left out":     {complete(day(9), "/1", record("urn:a", day(9))), feed(day(1), "", record("urn:b", day(1))), "", []string{is("urn:b", 1), is("urn:a", 9)}, true},
		"in the third":          {complete(day(9), "/1"), complete(day(8), "/2"), feed(day(1), "", record("urn:b", day(1))), []string{is("urn:b", 1)}, true},
		"in an archive":         {feed(day(10), "/1", record("urn:c", day(10))), complete(day(9), "/2", deletion("urn:a", day(9))), complete(day(1), ""), []string{isDeleted("urn:a", 9), is("urn:c", 10)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSite(t, map[string]string{"/feed": test.feed, "/1": test.first, "/2": test.second})
			h, changes, err := s.harvest("/feed", Mark{})
			require.Equal(t, test.want, changes)
			next, whole := h.Mark()
			require.Equal(t, test.doubt, !whole)
			m := &mirror.Mirror{Store: mirror.NewMemory()}
			report, kept := s.Keep(t.Context(), m)
			require.NoError(t, kept)
			if test.doubt {
				require.Equal(t, feedhistory.ReasonContradiction, feedtest.ErrorAs[*feedhistory.Gap](t, err).Reason)
				require.Len(t, report.Feed.Ledger.Gaps(), 1)
				return
			}
			require.NoError(t, err)
			require.True(t, next.m.Complete)
			require.Empty(t, report.Feed.Ledger.Gaps())
			require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict)
			_, _, changes = s.whole("/feed", next)
			require.Empty(t, changes)

			s.docs["/feed"] = strings.Replace(s.docs["/feed"], "</feed>", record("urn:new", day(11))+"</feed>", 1)
			_, _, changes = s.whole("/feed", next)
			require.Equal(t, []string{is("urn:new", 11)}, changes)
		})
	}
}

// An archive whose output ended within a record is no end, although its root is closed.
func TestTorn(t *testing.T) {
	b, a := record("urn:b", day(2)), record("urn:a", day(1))
	for name, torn := range map[string]string{
		"in the title":     strings.Replace(feed(day(2), "", b), "</feed>", "<entry><id>urn:a</id><title>a</feed>", 1),
		"before the link":  strings.Replace(feed(day(2), "", b), "</feed>", "<entry><id>urn:a</id><updated>"+day(1)+"</updated></feed>", 1),
		"in the beginning": strings.Replace(feed(day(2), "", b), "</feed>", "<entry></feed>", 1),
		"its beginning":    strings.Replace(feed(day(2), "", b), "</feed>", "<id>urn:a</id></entry></feed>", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := serveSite(t, map[string]string{"/feed": feed(day(3), "/1", record("urn:c", day(3))), "/1": torn})
			h, changes, err := s.harvest("/feed", Mark{})
			feedtest.ErrorAs[*feedhistory.Gap](t, err)
			require.Contains(t, changes, is("urn:c", 3))
			next, whole := h.Mark()
			require.False(t, whole)
			m := &mirror.Mirror{Store: mirror.NewMemory()}
			report, err := s.Keep(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)

			s.docs["/1"] = feed(day(2), "", b, a)
			_, _, changes = s.whole("/feed", next)
			require.Equal(t, []string{is("urn:a", 1), is("urn:b", 2), is("urn:c", 3)}, changes)
			report, err = s.Keep(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict)
			require.Equal(t, []string{"urn:a", "urn:b", "urn:c"}, live(t, m.Store, s.URL))
		})
	}
}

// A record that comes back within the second of its deletion is reported once the deletion is
// no longer there (atom-pmh consumer#4).
func TestBackAtOnce(t *testing.T) {
	for _, older := range []string{"", "complete"} {
		s := serveSite(t, map[string]string{"/feed": feed(day(1), older, record("urn:a", day(1)))})
		_, mark, _ := s.whole("/feed", Mark{})
		s.docs["/feed"] = feed(day(2), older, deletion("urn:a", day(2)), record("urn:a", day(2)))
		_, mark, changes := s.whole("/feed", mark)
		require.Equal(t, []string{isDeleted("urn:a", 2)}, changes)
		s.docs["/feed"] = feed(day(3), older, deletion("urn:a", day(2)), record("urn:a", day(2)), record("urn:b", day(3)))
		_, _, changes = s.whole("/feed", mark)
		require.Equal(t, []string{is("urn:b", 3)}, changes)
		s.docs["/feed"] = feed(day(2), older, record("urn:a", day(2)))
		_, mark, changes = s.whole("/feed", mark)
		require.Equal(t, []string{is("urn:a", 2)}, changes)
		s.docs["/feed"] = feed(day(2), older, deletion("urn:a", day(2)), record("urn:a", day(2)))
		_, _, changes = s.whole("/feed", mark)
		require.Equal(t, []string{isDeleted("urn:a", 2)}, changes)
	}
}

// A complete archive deletes in a mirror, too, as a complete subscription document does.
func TestKeepCompleteArchive(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(3), "", record("urn:a", day(1)), record("urn:b", day(2)), record("urn:c", day(3)))})
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	s.URL = s.url + "/feed"
	keep := func(verdict feedhistory.Verdict, want ...string) {
		report, err := s.Keep(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, verdict, report.Feed.Verdict)
		require.Equal(t, want, live(t, m.Store, s.URL))
	}
	keep(feedhistory.VerdictWhole, "urn:a", "urn:b", "urn:c")
	s.docs["/feed"] = feed(day(6), "/2", record("urn:e", day(6)))
	s.docs["/2"] = feed(day(5), "/1", record("urn:d", day(5)))
	keep(feedhistory.VerdictPartial, "urn:a", "urn:b", "urn:c", "urn:d", "urn:e") // /1 is missing
	s.docs["/1"] = feed(day(4), "complete", record("urn:c", day(3)))
	keep(feedhistory.VerdictWhole, "urn:c", "urn:d", "urn:e")
	s.docs["/feed"] = feed(day(7), "/1", record("urn:e", day(7)))
	keep(feedhistory.VerdictWhole, "urn:c", "urn:e")
}
