package mirror_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A post that comes under IDs of several schemes or campaigns is one entry, under the ID
// that came first; and no window is missed when all IDs change at once.
func TestOnePost(t *testing.T) {
	const item = `<item><title>%[1]d</title><link>%[2]s</link>%[3]s<pubDate>Wed, 03 Dec 2003 00:00:%02[1]d GMT</pubDate></item>`
	for name, ids := range map[string]struct {
		first, second string
		same          bool
	}{
		"schemes":       {"http://e.org/%d", "https://e.org/%d", true},
		"campaigns":     {"http://e.org/%d?utm_source=a", "http://e.org/%d?utm_source=b", true},
		"a new one":     {"http://e.org/%d", "https://e.org/%d?utm_source=b", true},
		"not permanent": {"http://e.org/%d", "https://e.org/%d", false},
	} {
		t.Run(name, func(t *testing.T) {
			documents := map[string]string{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, documents[r.URL.Path])
			}))
			t.Cleanup(server.Close)
			page := func(path, older, id string, entries ...int) {
				var b strings.Builder
				b.WriteString(`<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>F</title>`)
				if older != "" {
					fmt.Fprintf(&b, `<a:link rel="next" href="%s"/>`, older)
				}
				for _, n := range entries {
					guid, link := "", fmt.Sprintf(id, n)
					if !ids.same {
						guid = `<guid isPermaLink="false">` + link + `</guid>`
					}
					fmt.Fprintf(&b, item, n, link, guid)
				}
				documents[path] = b.String() + "</channel></rss>"
			}
			client := &feedhistory.Client{AllowPrivate: true, NoGuess: true}
			t.Cleanup(client.CloseIdle)
			m := &mirror.Mirror{Store: mirror.NewMemory(), Client: client}
			want := 6
			if !ids.same {
				want = 8
			}
			page("/f", "/2", ids.first, 6, 5, 4, 3)
			page("/2", "", ids.second, 4, 3, 2, 1)
			h, err := client.Fetch(t.Context(), server.URL+"/f")
			require.NoError(t, err)
			require.Len(t, h.Entries, want)
			_, err = m.Update(t.Context(), server.URL+"/f")
			require.NoError(t, err)
			var held, fetched []string
			for _, r := range feedtest.All(t, m.Store.Entries(t.Context(), mirror.Query{Feed: server.URL + "/f"})) {
				held = append(held, r.ID)
			}
			for _, e := range h.Entries {
				fetched = append(fetched, e.ID)
			}
			require.ElementsMatch(t, fetched, held)
			own := newRows()
			for range 2 {
				require.NoError(t, own.walk(t.Context(), t, m, server.URL+"/f", 1000))
			}
			require.ElementsMatch(t, fetched, slices.Collect(maps.Keys(own.titles())))

			page("/f", "", ids.first, 6, 5, 4, 3)
			_, err = m.Update(t.Context(), server.URL+"/g")
			require.NoError(t, err)
			page("/g", "", ids.first, 6, 5, 4, 3)
			_, err = m.Update(t.Context(), server.URL+"/g")
			require.NoError(t, err)
			page("/g", "", ids.second, 7, 6, 5, 4)
			report, err := m.Update(t.Context(), server.URL+"/g")
			require.NoError(t, err)
			if ids.same {
				require.Equal(t, feedhistory.VerdictWindow, report.Feed.Verdict, "%v", report.Feed.Ledger.Gaps())
				require.Equal(t, 1, report.Added)
			} else {
				require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
			}
		})
	}
}

// An entry that has come under another ID is edited later: it is changed, and nothing is missed.
// Two entries whose IDs are their own stay two.
func TestEditedUnderAnotherID(t *testing.T) {
	const (
		guid      = `<guid>%s</guid>`
		own       = `<guid isPermaLink="false">plot-%d</guid>`
		link      = `<link>http://e.org/%d</link>`
		enclosure = `<enclosure url="http://e.org/%[1]d.mp3?updated=%[2]d" type="audio/mpeg" length="1"/>`
	)
	for name, identity := range map[string]func(n, poll int) string{
		"schemes": func(n, poll int) string {
			return fmt.Sprintf(guid, fmt.Sprint([]string{"http", "https"}[min(poll, 1)], "://e.org/", n))
		},
		"campaigns": func(n, poll int) string {
			return fmt.Sprintf(`<link>http://e.org/%d?utm_source=%d</link>`, n, min(poll, 1))
		},
		"guids added": func(n, poll int) string {
			return fmt.Sprintf(link, n) + strings.Repeat(fmt.Sprintf(own, n), min(poll, 1))
		},
		"guids withdrawn": func(n, poll int) string {
			return fmt.Sprintf(link, n) + strings.Repeat(fmt.Sprintf(own, n), 1-min(poll, 1))
		},
		"enclosures":             func(n, poll int) string { return fmt.Sprintf(enclosure, n, poll) },
		"a shared enclosure":     func(_, poll int) string { return fmt.Sprintf(enclosure, 0, poll) },
		"neither link nor files": func(int, int) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{answer: map[string]http.HandlerFunc{}}
			store := mirror.NewMemory()
			for poll, test := range []struct {
				newest, changed int
				text            string // of entry 3
			}{{5, 0, "as it was"}, {5, 0, "as it was"}, {5, 1, "edited"}, {6, 0, "edited"}, {7, 1, "edited again"}} {
				h.answer[aURL] = func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title>`)
					for n := test.newest; n > test.newest-5; n-- {
						text := "text"
						if n == 3 {
							text = test.text
						}
						fmt.Fprintf(w, `<item><title>Entry %d</title>%s<pubDate>Wed, 03 Dec 2003 00:00:%02d GMT</pubDate><description>%s</description></item>`, n, identity(n, poll), n, text)
					}
					_, _ = io.WriteString(w, `</channel></rss>`)
				}
				report := polled(t, newMirror(store, h), aURL)
				require.Equal(t, feedhistory.VerdictWindow, report.Feed.Verdict, "poll %d: %v", poll, report.Feed.Ledger.Gaps())
				require.Equal(t, test.changed, report.Changed, "poll %d", poll)
				require.Len(t, held(t, store, aURL), test.newest)
			}
		})
	}
}

// Permalinks change from http to https, in archives, too. One that is read again has an earlier
// version of an entry than is stored: it is that entry's, and no other one.
func TestOnePostInVersions(t *testing.T) {
	scheme := ""
	item := func(n int, title string) string {
		return fmt.Sprintf(`<item><title>%s</title><link>%s://e.org/%d</link><guid>%[2]s://e.org/%[3]d</guid><a:updated>2003-12-0%[3]dT00:00:0%dZ</a:updated></item>`, title, scheme, n, len(title))
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := map[string]string{
			"/":  prev("/2") + item(3, "new"),
			"/2": prev("/1") + `<fh:archive/>` + item(1, "edited"),
			"/1": `<fh:archive/>` + item(2, "old") + item(1, "old"),
		}[r.URL.Path]
		fmt.Fprintf(w, `<rss xmlns:a="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel><title>F</title>%s</channel></rss>`,
			strings.ReplaceAll(text, "<link rel", "<a:link rel"))
	})
	m := newMirror(mirror.NewMemory(), h)
	m.Revalidate = true
	for _, scheme = range []string{"http", "https"} {
		polled(t, m, "http://e.org/")
		require.Equal(t, map[string]string{"http://e.org/1": "edited", "http://e.org/2": "old", "http://e.org/3": "new"}, held(t, m.Store, "http://e.org/"))
	}
}
