package mirror_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

const recallURL = "http://recall.example/feed"

// A site is a website with one feed, whose document a test writes.
type site struct{ text string }

func (s *site) mirror(store mirror.Store) *mirror.Mirror {
	return newMirror(store, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/atom+xml")
		_, _ = io.WriteString(w, s.text)
	}))
}

// show makes the feed show entries.
func (s *site) show(head string, entries ...string) {
	s.text = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"
		xmlns:at="http://purl.org/atompub/tombstones/1.0"><id>f</id>` + head + strings.Join(entries, "") + "</feed>"
}

func day(n int) time.Time { return time.Date(2020, 1, n, 0, 0, 0, 0, time.UTC) }

func shown(id, title string, n int) string {
	return fmt.Sprintf(`<entry><id>%s</id><title>%s</title><link href="http://recall.example/%s"/><updated>%s</updated></entry>`,
		id, title, id, day(n).Format(time.RFC3339))
}

// keep returns an entry as a reader keeps it; without an id if anonymous.
func keep(id, title string, n int, anonymous bool) mirror.KeptEntry {
	k := mirror.KeptEntry{Draft: compose.Draft{
		ID: id, Title: feedhistory.Text{Body: title}, Updated: day(n),
		Links: feedhistory.Links{{Rel: "alternate", Href: "http://recall.example/" + id}},
	}}
	if anonymous {
		k.ID = ""
	}
	return k
}

// A tally has the numbers of a recall.
type tally struct{ added, changed, deleted, refused, closed int }

func (n *tally) add(r *mirror.Report) {
	n.added, n.changed, n.deleted = n.added+r.Added, n.changed+r.Changed, n.deleted+r.Deleted
	n.refused, n.closed = n.refused+r.Refused, n.closed+r.Closed
}

func tallyOf(r *mirror.Report) (n tally) {
	n.add(r)
	return n
}

// recall adds entries, twice: the second time must change nothing.
func recall(t *testing.T, m *mirror.Mirror, name string, kept ...mirror.KeptEntry) tally {
	t.Helper()
	first, err := (&mirror.Recall{Mirror: m, Name: name}).Entries(t.Context(), recallURL, "Recalled", append([]mirror.KeptEntry(nil), kept...))
	require.NoError(t, err)
	before, err := m.Store.Feed(t.Context(), recallURL)
	require.NoError(t, err)
	again, err := (&mirror.Recall{Mirror: m, Name: name}).Entries(t.Context(), recallURL, "Recalled", append([]mirror.KeptEntry(nil), kept...))
	require.NoError(t, err)
	require.Zero(t, tallyOf(again))
	require.NoError(t, again.Failure)
	after, err := m.Store.Feed(t.Context(), recallURL)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, after, again.Feed)
	return tallyOf(first)
}

// The publisher's copy counts, whichever comes first, and whatever the reader says of its
// time. The reader's is an earlier version.
func TestRecallPrecedence(t *testing.T) {
	for _, test := range []struct {
		name      string
		first     bool
		anonymous bool
	}{{"reader first", true, false}, {"feed first", false, false}, {"reader first, without an id", true, true}, {"feed first, without an id", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			s := &site{}
			m := s.mirror(mirror.NewMemory())
			s.show("", shown("a", "Published", 2))
			altered := keep("a", "<i>Published!</i>", 2, test.anonymous)
			if !test.anonymous {
				altered = keep("a", "Altered", 9, false)
			}
			if test.first {
				require.Equal(t, tally{added: 2}, recall(t, m, "reader", altered, keep("b", "Old", 1, test.anonymous)))
				f, err := m.Store.Feed(t.Context(), recallURL)
				require.NoError(t, err)
				require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
				require.True(t, f.Due(time.Now()))
				require.Zero(t, f.Polls)
				polled(t, m, recallURL)
			} else {
				polled(t, m, recallURL)
				require.Equal(t, 1, recall(t, m, "reader", altered, keep("b", "Old", 1, test.anonymous)).added)
			}
			b := "b"
			if test.anonymous {
				b = "http://recall.example/b"
			}
			entries := map[string]string{}
			for r, err := range m.Store.Entries(t.Context(), mirror.Query{Feed: recallURL}) {
				require.NoError(t, err)
				entries[r.ID] = r.Content.Title + " " + r.Copy.Source
				e, err := r.Entry()
				require.NoError(t, err)
				require.Equal(t, r.Copy.Source, e.KeptBy)
			}
			require.Equal(t, map[string]string{"a": "Published ", b: "Old reader"}, entries)
			f, err := m.Store.Feed(t.Context(), recallURL)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWindow, f.Verdict)
			require.EqualValues(t, 2, f.Entries)
			if !test.anonymous {
				var versions []string
				for v, err := range m.Store.Versions(t.Context(), recallURL, "a") {
					require.NoError(t, err)
					versions = append(versions, v.Content.Title+" "+v.Copy.Source)
				}
				require.Equal(t, []string{"Altered reader"}, versions)
			}
		})
	}
}

// Without ids, entries that differ stay apart, and those that are the same do not.
func TestRecallRecognises(t *testing.T) {
	with := func(link, title string, n int) mirror.KeptEntry {
		k := keep("", title, n, true)
		if k.Links[0].Href = link; link == "" {
			k.Links = nil
		}
		if n == 0 {
			k.Updated = time.Time{}
		}
		return k
	}
	const one = "http://recall.example/one"
	for name, test := range map[string]struct {
		a, b mirror.KeptEntry
		same bool
	}{
		"another title, same link and time":  {with(one, "A", 1), with(one, "B", 1), true},
		"another time, same link and title":  {with(one, "A", 1), with(one, "A", 5), false},
		"no time":                            {with(one, "A", 1), with(one, "A", 0), true},
		"title and time differ":              {with(one, "A", 1), with(one, "B", 5), false},
		"tracking, scheme and slash":         {with(one, "A", 1), with("https://recall.example/one/?utm_source=x", "A", 1), true},
		"another link":                       {with(one, "A", 1), with("http://recall.example/two", "A", 1), false},
		"the site's link, another title":     {with("http://recall.example/", "A", 1), with("http://recall.example/", "B", 1), false},
		"the site's link, title and time":    {with("http://recall.example/", "A", 1), with("http://recall.example/", "A", 1), true},
		"no link, title and time":            {with("", "A", 1), with("", "A", 1), true},
		"no link, another time":              {with("", "A", 1), with("", "A", 2), false},
		"one link for several, at one time":  {with(one+"#a", "A", 1), with(one+"#b", "B", 1), false},
		"nothing at all but different times": {with("", "", 1), with("", "", 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := (&site{}).mirror(mirror.NewMemory())
			recall(t, m, "one", test.a)
			recall(t, m, "two", test.b)
			want := 2
			if test.same {
				want = 1
			}
			require.Len(t, held(t, m.Store, recallURL), want)
		})
	}
	m := (&site{}).mirror(mirror.NewMemory())
	require.Equal(t, 2, recall(t, m, "one", with(one, "A", 1), with(one, "B", 1)).added, "one reader has both")
}

// A reader does not bring back what the publisher has deleted, in whichever order.
func TestRecallTombstones(t *testing.T) {
	tombstone := `<at:deleted-entry ref="a" when="2020-01-03T00:00:00Z"/>`
	for name, early := range map[string]bool{"deleted first": false, "recalled first": true} {
		t.Run(name, func(t *testing.T) {
			s := &site{}
			m := s.mirror(mirror.NewMemory())
			if early {
				recall(t, m, "reader", keep("a", "Deleted", 20, false))
			}
			s.show(tombstone, shown("b", "B", 4))
			polled(t, m, recallURL)
			require.Zero(t, recall(t, m, "reader", keep("a", "Deleted", 20, false)).added)
			require.Equal(t, map[string]string{"b": "B"}, held(t, m.Store, recallURL))
		})
	}
}

// An entry that a complete feed lacks is kept, but is not part of it.
func TestRecallComplete(t *testing.T) {
	s := &site{}
	m := s.mirror(mirror.NewMemory())
	s.show("<fh:complete/>", shown("a", "A", 1))
	polled(t, m, recallURL)
	recall(t, m, "reader", keep("b", "B", 2, false))
	require.Equal(t, map[string]string{"a": "A"}, held(t, m.Store, recallURL))
	r, err := mirror.Lookup(t.Context(), m.Store, recallURL, "b")
	require.NoError(t, err)
	require.Equal(t, mirror.Absent, r.State)
	s.show("<fh:complete/>", shown("a", "A", 1), shown("b", "B is back", 3))
	require.Equal(t, feedhistory.VerdictWhole, polled(t, m, recallURL).Feed.Verdict)
	require.Equal(t, map[string]string{"a": "A", "b": "B is back"}, held(t, m.Store, recallURL))
}

// A missed window closes only where the memory has both sides of it. The ledger of an earlier
// version did not name them.
func TestRecallWindow(t *testing.T) {
	for name, test := range map[string]struct {
		kept   []int
		closed bool
	}{
		"only before":       {[]int{1, 2, 3}, false},
		"only after":        {[]int{4, 5, 6}, false},
		"not up to the gap": {[]int{1, 3, 4, 5, 6}, false},
		"between":           {[]int{3, 4}, false},
		"across":            {[]int{2, 3, 4, 5}, true},
	} {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", old), func(t *testing.T) {
				s := &site{}
				m := s.mirror(mirror.NewMemory())
				s.show("", shown("2", "2", 2), shown("1", "1", 1))
				polled(t, m, recallURL)
				s.show("", shown("6", "6", 6), shown("5", "5", 5))
				require.Equal(t, feedhistory.VerdictPartial, polled(t, m, recallURL).Feed.Verdict)
				if old { // the ledger did not keep them then
					f, err := m.Store.Feed(t.Context(), recallURL)
					require.NoError(t, err)
					eachDebt(t, &f.Ledger, func(debt map[string]any) { delete(debt, "before"); delete(debt, "after") })
					require.NoError(t, m.Store.Commit(t.Context(), &mirror.Commit{Feed: f}))
				}
				r, sum := &mirror.Recall{Mirror: m, Name: "reader"}, tally{}
				for _, n := range test.kept { // in parts
					done, err := r.Entries(t.Context(), recallURL, "", []mirror.KeptEntry{keep(fmt.Sprint(n), "Kept", n, n%2 == 0)})
					require.NoError(t, err)
					sum.add(done)
				}
				f, err := m.Store.Feed(t.Context(), recallURL)
				require.NoError(t, err)
				want := feedhistory.VerdictPartial
				if test.closed {
					want = feedhistory.VerdictWindow
				}
				require.Equal(t, want, f.Verdict)
				require.Equal(t, test.closed, sum.closed == 1)
			})
		}
	}
}

// Of many missed windows, a mirror remembers the first and the latest.
func TestManyWindows(t *testing.T) {
	s := &site{}
	m := s.mirror(mirror.NewMemory())
	const polls = 130
	for n := range polls {
		s.show("", shown(fmt.Sprint(n), "Entry", n))
		polled(t, m, recallURL)
	}
	f, err := m.Store.Feed(t.Context(), recallURL)
	require.NoError(t, err)
	var found []int64
	eachDebt(t, &f.Ledger, func(debt map[string]any) {
		require.Equal(t, string(feedhistory.ReasonMissedWindow), debt["reason"])
		found = append(found, int64(debt["poll"].(float64)))
	})
	want := []int64{2}
	for n := polls - 98; n <= polls; n++ {
		want = append(want, int64(n))
	}
	require.Equal(t, want, found)
}

// Saved documents of the feed itself are the publisher's copies: the newest counts, and a
// dry run counts each entry once.
func TestRecallDocuments(t *testing.T) {
	s := &site{}
	m := s.mirror(mirror.NewMemory())
	saved := func(dry bool) (sum tally) {
		r := &mirror.Recall{Mirror: m, Name: "git", DryRun: dry}
		for n := range 5 {
			s.show("", shown("new", fmt.Sprint("Version ", n), 1), shown(fmt.Sprint("entry ", n), "Entry", 1), shown("a", "A", 1))
			doc, err := feedhistory.Parse(strings.NewReader(s.text), recallURL)
			require.NoError(t, err)
			done, err := r.Document(t.Context(), recallURL, doc, n, day(1+n))
			require.NoError(t, err)
			sum.add(done)
		}
		return sum
	}
	require.Equal(t, 7, saved(true).added)
	_, err := m.Store.Feed(t.Context(), recallURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	require.Equal(t, 7, saved(false).added)
	r, err := mirror.Lookup(t.Context(), m.Store, recallURL, "new")
	require.NoError(t, err)
	require.Equal(t, "Version 4 git", r.Content.Title+" "+r.Copy.Source)
	require.Zero(t, saved(false))
	s.show("", shown("a", "A", 1))
	polled(t, m, recallURL)
	r, err = mirror.Lookup(t.Context(), m.Store, recallURL, "a")
	require.NoError(t, err)
	require.Empty(t, r.Copy.Source, "the feed has shown this copy")
	require.Zero(t, saved(false))
}

// Entries that cannot be stored are named; the others are stored.
func TestRecallDamaged(t *testing.T) {
	m := (&site{}).mirror(mirror.NewMemory())
	bad := keep("bad", "Bad", 1, false)
	bad.Content = feedhistory.Text{Type: "xhtml", Body: "<p"}
	done, err := (&mirror.Recall{Mirror: m, Name: "reader"}).Entries(t.Context(), recallURL, "", []mirror.KeptEntry{bad, keep("good", "Good", 1, false)})
	require.NoError(t, err)
	require.Len(t, done.Failure.(interface{ Unwrap() []error }).Unwrap(), 1)
	require.ErrorContains(t, done.Failure, `entry "bad": `)
	require.Equal(t, map[string]string{"good": "Good"}, held(t, m.Store, recallURL))
}
