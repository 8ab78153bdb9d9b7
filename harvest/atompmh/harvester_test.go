package atompmh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
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

func serve(t *testing.T, docs map[string]string) *site {
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
	s.url, s.HTTP, s.Shelf = server.URL, loopback(), newShelf()
	s.HTTP.Policy.PerHost = 1 // so that no document is requested ahead
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
	return Mark{Time: t, Seen: map[string]SeenRecord{}}
}

// A harvest ends after the first document that is strictly older than the mark,
// and no sooner (atom-pmh consumer#2).
func TestStopRule(t *testing.T) {
	s := serve(t, map[string]string{
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
		require.Equal(t, test.want, changes, test.from.Time)
		require.Equal(t, test.asked, strings.Join(s.asked.All(), " "), test.from.Time)
		require.Equal(t, test.from.IsZero(), h.All())
		require.Equal(t, markAt(9).Time, next.Time)
		require.Len(t, next.Seen, 1)
	}
}

// What is read again is not reported again, except entries that came later with
// the same time, or that have changed without a later time.
func TestEqualTimes(t *testing.T) {
	s := serve(t, map[string]string{"/feed": feed(day(2), "/1", record("urn:b", day(2))), "/1": feed(day(2), "", record("urn:a", day(2)))})
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
	s := serve(t, map[string]string{"/feed": feed(at("5"), "", record("urn:a", at("5")))})
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
			s := serve(t, map[string]string{"/feed": feed(day(9), "/1", test.first), "/1": feed(day(2), "", test.second)})
			_, _, changes := s.whole("/feed", Mark{})
			require.Equal(t, test.want, changes)
		})
	}
}

// A complete feed deletes what it leaves out, and only a complete feed does
// (atom-pmh consumer#1), whatever it was before or becomes.
func TestComplete(t *testing.T) {
	s := serve(t, map[string]string{
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
	require.Len(t, mark.Seen, 1)

	// Complete again: the other records are gone, and cannot be named.
	s.docs["/feed"] = feed(day(6), "complete", record("urn:a", day(1)), record("urn:d", day(6)))
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:a", 1), is("urn:d", 6)}, changes)
	require.True(t, h.All())

	// The complete document may be an archive.
	s.docs["/feed"] = feed(day(8), "/2", record("urn:e", day(8)))
	s.docs["/2"] = strings.Replace(feed(day(7), "/1", record("urn:d", day(6))), "<link", "<fh:complete/><link", 1)
	h, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:a", 1), is("urn:e", 8)}, changes)
	require.Equal(t, []string{"/feed", "/2"}, s.asked.All())
	require.False(t, h.All())
	require.True(t, mark.Complete)
	s.docs["/feed"] = feed(day(9), "complete", record("urn:e", day(8)))
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{isDeleted("urn:d", 6)}, changes)
}

// A feed that was set back to an earlier state is read to its end, because the
// mark says nothing about it.
func TestSetBack(t *testing.T) {
	s := serve(t, map[string]string{"/feed": feed(day(3), "/1", record("urn:b", day(3))), "/1": feed(day(1), "", record("urn:a", day(1)))})
	h, mark, changes := s.whole("/feed", markAt(5))
	require.Equal(t, []string{is("urn:a", 1), is("urn:b", 3)}, changes)
	require.True(t, h.All())
	require.Equal(t, markAt(3).Time, mark.Time)
}

// Changes that are published late are found within the overlap.
func TestOverlap(t *testing.T) {
	s := serve(t, map[string]string{"/feed": feed(day(5), "/1", record("urn:c", day(5))), "/1": feed(day(1), "", record("urn:a", day(1)))})
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
	s := serve(t, map[string]string{
		"/feed": feed(day(9), "/2", record("urn:c", day(9))),
		"/1":    feed(day(1), "", record("urn:a", day(1))),
	})
	h, changes, err := s.harvest("/feed", markAt(3))
	gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.Equal(t, s.url+"/2", gap.URL)
	require.Equal(t, []string{is("urn:c", 9)}, changes)
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
	s := serve(t, map[string]string{"/rss": rss, "/feed": feed(day(1), "/rss", record("urn:a", day(1)))})
	_, changes, err := s.harvest("/rss", Mark{})
	format := feedtest.ErrorAs[*FormatError](t, err)
	require.Equal(t, feedhistory.RSS, format.Format)
	require.EqualError(t, err, s.url+"/rss: this is rss, not Atom (atom-pmh#3)")
	require.Empty(t, changes)

	_, changes, err = s.harvest("/feed", Mark{})
	gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.Equal(t, feedhistory.ReasonNotFeed, gap.Reason)
	require.ErrorAs(t, gap, &format)
	require.Equal(t, []string{is("urn:a", 1)}, changes)
}

// What can be read of a damaged document is reported, but nothing is concluded
// from it.
func TestDamaged(t *testing.T) {
	s := serve(t, map[string]string{
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
	s := serve(t, map[string]string{
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
	require.Equal(t, s.url+"/new", mark.Subscription.Older)
}
