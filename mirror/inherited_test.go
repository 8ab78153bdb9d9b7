package mirror_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// An oldMirror is one whose feed was last read before there were ledgers.
type oldMirror struct {
	*mirror.Mirror
	url   string
	now   time.Time
	pages map[string]string // the site: Atom, by path; none is a failure
	asked map[string]int    // the requests without conditions, by path
}

func newOldMirror(t *testing.T) *oldMirror {
	m := &oldMirror{pages: map[string]string{}, asked: map[string]int{}, now: time.Now()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := m.pages[r.URL.Path]
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(page)))
		if !ok {
			http.Error(w, "", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		m.asked[r.URL.Path]++
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	client := &feedhistory.Client{AllowPrivate: true, NoGuess: true, Tries: 1}
	t.Cleanup(client.CloseIdle)
	m.url = server.URL + "/f"
	m.Mirror = &mirror.Mirror{Store: mirror.NewMemory(), Client: client, Now: func() time.Time { return m.now }}
	return m
}

// page sets a document with the entries of the given numbers.
func (m *oldMirror) page(path, links string, entries ...int) {
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2020-01-01T00:00:00Z</updated>%s`, links)
	for _, n := range entries {
		fmt.Fprintf(&b, `<entry><id>urn:%d</id><title>%d</title><updated>%s</updated></entry>`, n, n, time.Date(2019, 1, 1, 0, n, 0, 0, time.UTC).Format(time.RFC3339))
	}
	m.pages[path] = b.String() + "</feed>"
}

func (m *oldMirror) poll(t *testing.T) *mirror.Feed {
	_, err := m.Update(t.Context(), m.url)
	require.NoError(t, err)
	f, err := m.Store.Feed(t.Context(), m.url)
	require.NoError(t, err)
	require.Empty(t, f.Error)
	return f
}

// age takes the ledger away, and lets a day pass.
func (m *oldMirror) age(t *testing.T) {
	f, err := m.Store.Feed(t.Context(), m.url)
	require.NoError(t, err)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	var old map[string]any // as it was stored then
	require.NoError(t, json.Unmarshal(text, &old))
	ledger := old["ledger"].(map[string]any)
	delete(old, "ledger")
	for _, name := range []string{"known", "further", "looked", "checked"} {
		if value, ok := ledger[name]; ok {
			old[name] = value
		}
	}
	require.NotContains(t, ledger, "debts")
	text, err = json.Marshal(old)
	require.NoError(t, err)
	commits := f.Commits
	f = &mirror.Feed{}
	require.NoError(t, json.Unmarshal(text, f))
	f.Commits = commits
	require.NoError(t, m.Store.Commit(t.Context(), &mirror.Commit{Feed: f}))
	m.now = m.now.Add(24 * time.Hour)
}

// At the first poll with a ledger, an entry that had left the document before proves
// nothing: what the last reading showed is found in the store.
func TestInheritedWindow(t *testing.T) {
	for name, test := range map[string]struct {
		now  []int
		want feedhistory.Verdict
	}{
		"a returning entry":        {[]int{10, 9, 8, 2}, feedhistory.VerdictPartial},
		"none in common":           {[]int{12, 11, 10}, feedhistory.VerdictPartial},
		"joins":                    {[]int{8, 7, 6}, feedhistory.VerdictWindow},
		"the same":                 {[]int{6, 5, 4}, feedhistory.VerdictWindow},
		"the whole reading before": {[]int{7, 6, 5, 4}, feedhistory.VerdictWindow},
	} {
		t.Run(name, func(t *testing.T) {
			m := newOldMirror(t)
			m.page("/f", "", 3, 2, 1)
			m.poll(t)
			m.page("/f", "", 5, 4, 3, 2)
			m.poll(t)
			m.page("/f", "", 6, 5, 4)
			require.Equal(t, feedhistory.VerdictWindow, m.poll(t).Verdict)
			m.age(t)
			m.page("/f", "", test.now...)
			f := m.poll(t)
			require.Equal(t, test.want, f.Verdict)
			require.False(t, f.Ledger.Unverified(), "it has no archives")
		})
	}
}

// Of the last reading before there were ledgers, 10,000 entries are compared, as of others: one
// beyond them is not the end of it, which would prove nothing if it stayed.
func TestInheritedLargeWindow(t *testing.T) {
	const most = 10_000
	m := newOldMirror(t)
	var shown []int
	for n := most + 1; n > 0; n-- {
		shown = append(shown, n)
	}
	m.page("/f", "", shown...)
	require.Equal(t, most, m.poll(t).Ledger.Shown())
	m.age(t)
	m.page("/f", "", most+2, 2, 1)
	require.Equal(t, feedhistory.VerdictWindow, m.poll(t).Verdict)
}

// A verdict from before there were ledgers stands, unverified, until all archives have been
// read again, within thirty days; a link that was not kept then is owed.
func TestInheritedVerdict(t *testing.T) {
	for _, archives := range []int{1, 4, 70} {
		t.Run(fmt.Sprint(archives), func(t *testing.T) {
			m := newOldMirror(t)
			for n := archives; n >= 0; n-- {
				path, older := fmt.Sprintf("/%d", n), fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, n-1)
				if n == 0 {
					older = ""
				}
				m.page(path, `<archive xmlns="http://purl.org/syndication/history/1.0"/>`+older, n)
			}
			m.page("/f", fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, archives), archives+1)
			f := m.poll(t)
			require.Equal(t, feedhistory.VerdictWhole, f.Verdict, "%v", f.Ledger.Gaps())
			require.False(t, f.Ledger.Unverified(), "it was read with a ledger")
			m.age(t)
			clear(m.asked)
			f, err := m.Store.Feed(t.Context(), m.url)
			require.NoError(t, err)
			require.True(t, f.Ledger.Unverified())
			m.pages["/0"] = strings.Replace(m.pages["/0"], "<entry>", `<link rel="next" href="/gone"/><entry>`, 1)
			most, days := 0, 0
			for before := 0; f.Ledger.Unverified(); days++ {
				require.Less(t, days, 31)
				f = m.poll(t)
				require.Equal(t, m.asked["/0"] == 0, f.Verdict == feedhistory.VerdictWhole, "day %d: %v", days, f.Ledger.Gaps())
				m.now = m.now.Add(24 * time.Hour)
				now := 0
				for _, n := range m.asked {
					now += n
				}
				most, before = max(most, now-before), now
			}
			require.LessOrEqual(t, most, 2+archives/10)
			delete(m.asked, "/f") // without conditions once a week
			require.Len(t, m.asked, archives+1, "each archive was read, not only asked for")
			require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
		})
	}
}

// A word of a later version, or a damaged one, promises nothing: the verdict is partial
// until the feed has been read again.
func TestUnknownWords(t *testing.T) {
	m := newOldMirror(t)
	m.page("/f", "", 1)
	_, err := m.Update(t.Context(), m.url)
	require.NoError(t, err)
	feed, err := m.Store.Feed(t.Context(), m.url)
	require.NoError(t, err)
	text, err := json.Marshal(feed)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(strings.ToLower(string(text)), `"kind":"plain"`), "%s", text) // of the feed, its ledger, and the document known
	feed = &mirror.Feed{Commits: feed.Commits}
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(`"kind":"plain"`, `"kind":"of-tomorrow"`, `"Kind":"plain"`, `"Kind":"of-tomorrow"`).Replace(string(text))), feed))
	require.NoError(t, m.Store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	report, err := m.Update(t.Context(), m.url)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
	require.Equal(t, feedhistory.Kind("of-tomorrow"), report.Feed.Kind)
	m.page("/f", "", 1, 2)
	report, err = m.Update(t.Context(), m.url)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWindow, report.Feed.Verdict)
	require.Equal(t, feedhistory.KindPlain, report.Feed.Kind)

	text, err = json.Marshal(mirror.NewFeed(m.url))
	require.NoError(t, err)
	require.Contains(t, string(text), `"kind":"unknown"`)
	record := &mirror.Record{ID: "x", Content: mirror.Content{Format: "of-tomorrow", Data: "<entry/>"}}
	_, err = record.Entry()
	require.ErrorContains(t, err, "its format is unknown: of-tomorrow")
}
