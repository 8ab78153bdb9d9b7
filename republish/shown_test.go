package republish

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A burstSource publishes entries in documents that show the latest ones.
type burstSource struct {
	t     *rapid.T
	kind  feedhistory.Kind
	shows int
	ids   []string // oldest first
	files publish.MemoryOutput
	out   *publish.Publisher
}

func (s *burstSource) entry(n int) string {
	at := time.Date(2020, 1, 1, 0, n, 0, 0, time.UTC).Format(time.RFC3339)
	return fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:e%d</id><title>E%[1]d</title><updated>%s</updated></entry>`, n, at)
}

func (s *burstSource) burst(n int) {
	for range n {
		id := len(s.ids)
		if s.kind == feedhistory.Archived {
			e, err := feedhistory.ReadEntry(feedhistory.Atom, s.entry(id), "")
			require.NoError(s.t, err)
			require.NoError(s.t, s.out.Append(context.Background(), e))
		}
		s.ids = append(s.ids, fmt.Sprint("urn:e", id))
	}
}

func (s *burstSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.kind == feedhistory.Archived {
		(&publish.Handler{FS: &s.files, MaxAge: time.Nanosecond}).ServeHTTP(w, r)
		return
	}
	complete, from := "", max(0, len(s.ids)-s.shows)
	if s.kind == feedhistory.Complete {
		complete, from = `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`, 0
	}
	fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>F</title><updated>2020-01-01T00:00:00Z</updated>`+complete)
	for n := len(s.ids) - 1; n >= from; n-- {
		fmt.Fprint(w, s.entry(n))
	}
	fmt.Fprint(w, `</feed>`)
}

// idsAt returns the ids in the one document at a URL.
func idsAt(t *rapid.T, h http.Handler, url string) map[string]bool {
	resp, err := (&http.Client{Transport: direct(h).Transport}).Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	doc, err := feedhistory.Parse(resp.Body, url)
	require.NoError(t, err, url)
	ids := map[string]bool{}
	for _, e := range doc.Entries {
		ids[e.ID] = true
	}
	return ids
}

// A reader that follows no archives finds in index.atom all that a reader of the
// publisher's own document finds there, whatever bursts come; and if it sleeps
// for some polls, also all that came meanwhile. It does not notice restarts.
func TestShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &burstSource{t: t, kind: rapid.SampledFrom([]feedhistory.Kind{feedhistory.Plain, feedhistory.Complete, feedhistory.Archived}).Draw(t, "kind"), shows: rapid.IntRange(1, 150).Draw(t, "shows")}
		s.out = &publish.Publisher{
			Output: &s.files, Base: "http://site.test", Recent: s.shows, Split: feedhistory.Split{Size: rapid.IntRange(3, 60).Draw(t, "archive")},
			Head: &feedhistory.Document{ID: "urn:feed", Title: "F", Authors: []feedhistory.Person{{Name: "A"}}},
		}
		s.burst(rapid.IntRange(1, 200).Draw(t, "before"))
		const url = "http://site.test/feed.atom"
		store, out := &mirror.Memory{}, &publish.MemoryOutput{}
		m := &mirror.Mirror{Store: store, Client: direct(s)}
		h := &Handler{Store: store, Output: out, Size: rapid.SampledFrom([]int{0, 7, 100}).Draw(t, "size")}
		document := rapid.SampledFrom([]string{"index.atom", "index.rss"}).Draw(t, "document")
		had, asleep := map[string]bool(nil), 0
		for range rapid.IntRange(1, 25).Draw(t, "polls") {
			_, err := m.Update(t.Context(), url)
			require.NoError(t, err)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				h = &Handler{Store: store, Output: out, Size: h.Size}
			}
			if asleep++; had == nil || asleep == feedtime.RecentUpdates-1 || rapid.Bool().Draw(t, "awake") {
				ours := idsAt(t, h, "http://127.0.0.1:8005/feeds/"+Name(url)+"/"+document)
				for id := range idsAt(t, s, url) {
					require.Contains(t, ours, id, "the publisher's own document shows it")
				}
				if had == nil {
					had = map[string]bool{}
				} else {
					for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
						require.NoError(t, err)
						require.True(t, had[r.ID] || ours[r.ID], "%s came while the reader slept for %d polls", r.ID, asleep)
					}
				}
				for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
					require.NoError(t, err)
					had[r.ID] = true
				}
				asleep = 0
			}
			s.burst(rapid.SampledFrom([]int{0, 1, 3, 45, 130}).Draw(t, "burst"))
		}
	})
}

// However many entries are to be shown, the document stays small.
func TestShownBounded(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	for n := range 24 {
		put(n, strings.Replace(soundEntry(n), "</entry>", "<summary>"+strings.Repeat("long ", 80_000)+"</summary></entry>", 1))
	}
	h := &Handler{Store: store, Size: 5}
	text := asked(t, h, "/feeds/"+Name(damagedURL)+"/index.atom")
	require.Equal(t, feedtime.LeastShown, strings.Count(text, "<entry"))
}
