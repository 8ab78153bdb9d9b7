package republish

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestDivided checks that the directory of a feed is an Output.
func TestDivided(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(testing.TB) (out, other publish.Output) {
		d := newDivided()
		return subOutput{d, "private/b"}, subOutput{subOutput{d, "private"}, "b"}
	})
}

func newDivided() *dividedOutput {
	return &dividedOutput{
		Output: &publish.MemoryOutput{}, private: &publish.MemoryOutput{},
		isPrivate: func(name string, _ bool) (bool, error) { return name == "private", nil },
	}
}

// TestDividedParts checks that each feed's documents are in their part alone, and that a writer has
// the locks of both, or none.
func TestDividedParts(t *testing.T) {
	t.Parallel()
	d := newDivided()
	parts := map[string]publish.Output{"public": d.Output, "private": d.private}
	for name, part := range parts {
		require.NoError(t, d.Put(t.Context(), name+"/file", []byte(name)))
		require.Equal(t, []string{name + "/file"}, part.(*publish.MemoryOutput).Names())
		text, err := fs.ReadFile(d, name+"/file")
		require.NoError(t, err)
		require.Equal(t, name, string(text))
	}
	for name, part := range parts {
		require.NoError(t, d.Remove(t.Context(), name+"/file"))
		require.Empty(t, part.(*publish.MemoryOutput).Names())

		unlockPart, err := part.Lock(t.Context())
		require.NoError(t, err)
		_, err = d.Lock(t.Context())
		require.ErrorIs(t, err, publish.ErrLocked, name)
		require.NoError(t, unlockPart())
		unlock, err := d.Lock(t.Context())
		require.NoError(t, err)
		_, err = part.Lock(t.Context())
		require.ErrorIs(t, err, publish.ErrLocked, name)
		require.NoError(t, unlock())
	}
}

// TestDividedStranger checks that a file of an unknown feed, which may be a private one,
// is neither read nor written.
func TestDividedStranger(t *testing.T) {
	t.Parallel()
	m := &publish.MemoryOutput{}
	name := Name("https://example.org/feed")
	require.NoError(t, m.Put(t.Context(), name+"/file", nil))
	store := mirror.NewMemory()
	all := &directory{store: store}
	d := &dividedOutput{Output: m, private: &publish.MemoryOutput{}, isPrivate: all.isPrivate}
	_, err := d.Open(name + "/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, d.Put(t.Context(), name+"/file", nil), mirror.ErrNotFound)
	require.ErrorIs(t, d.Remove(t.Context(), name+"/file"), mirror.ErrNotFound)

	withNames(t, store, "https://example.org/feed")
	all.add("https://example.org/feed")
	f, err := d.Open(name + "/file")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestDividedUnknown checks that nothing is read or written if it is not known whose
// it is.
func TestDividedUnknown(t *testing.T) {
	t.Parallel()
	m := &publish.MemoryOutput{}
	require.NoError(t, m.Put(t.Context(), "name/file", nil))
	d := &dividedOutput{Output: m, private: m, isPrivate: func(string, bool) (bool, error) { return false, io.ErrUnexpectedEOF }}
	_, err := d.Open("name/file")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, d.Put(t.Context(), "name/file", nil), io.ErrUnexpectedEOF)
	require.ErrorIs(t, d.Remove(t.Context(), "name/file"), io.ErrUnexpectedEOF)
}

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
		if s.kind == feedhistory.KindArchived {
			e, err := feedhistory.ReadEntry(feedhistory.FormatAtom, s.entry(id), "")
			require.NoError(s.t, err)
			require.NoError(s.t, s.out.Append(context.Background(), e))
		}
		s.ids = append(s.ids, fmt.Sprint("urn:e", id))
	}
}

func (s *burstSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.kind == feedhistory.KindArchived {
		(&publish.Handler{FS: &s.files, MaxAge: time.Nanosecond}).ServeHTTP(w, r)
		return
	}
	complete, from := "", max(0, len(s.ids)-s.shows)
	if s.kind == feedhistory.KindComplete {
		complete, from = `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`, 0
	}
	fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>F</title><updated>2020-01-01T00:00:00Z</updated>`+complete)
	for n := len(s.ids) - 1; n >= from; n-- {
		fmt.Fprint(w, s.entry(n))
	}
	fmt.Fprint(w, `</feed>`)
}

// idsAt returns the ids in the one document at a URL.
func idsAt(t require.TestingT, h http.Handler, url string) map[string]bool {
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
		s := &burstSource{t: t, kind: rapid.SampledFrom([]feedhistory.Kind{feedhistory.KindPlain, feedhistory.KindComplete, feedhistory.KindArchived}).Draw(t, "kind"), shows: rapid.IntRange(1, 150).Draw(t, "shows")}
		s.out = &publish.Publisher{
			Output: &s.files, Base: "http://site.test", Recent: s.shows, Split: compose.Split{Size: rapid.IntRange(3, 60).Draw(t, "archive")},
			Head: &feedhistory.Document{ID: "urn:feed", Title: "F", Authors: []feedhistory.Person{{Name: "A"}}},
		}
		s.burst(rapid.IntRange(1, 200).Draw(t, "before"))
		const url = "http://site.test/feed.atom"
		store, out := mirror.NewMemory(), &publish.MemoryOutput{}
		m := &mirror.Mirror{Store: store, Client: direct(s)}
		h := &Handler{Store: store, Output: out, Size: rapid.SampledFrom([]int{0, 7, 100}).Draw(t, "size")}
		document := rapid.SampledFrom([]string{"index.atom", "index.rss"}).Draw(t, "document")
		had, asleep := map[string]bool(nil), 0
		for range rapid.IntRange(1, 12).Draw(t, "polls") {
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

// The subscription document shows what the publisher's own does, however large it is, whether
// its size is known or found out later.
func TestShownWhole(t *testing.T) {
	const items = 1100
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2020-01-01T00:00:00Z</updated>`)
	for i := range items {
		fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>%d</title><updated>2019-01-01T00:00:00Z</updated><summary>%s</summary></entry>", i, i, strings.Repeat("long ", 600))
	}
	document := b.String() + "</feed>"
	newer := strings.Replace(document, "<entry>", "<entry><id>urn:new</id><title>new</title><updated>2019-02-01T00:00:00Z</updated></entry><entry>", 1)
	const url = "https://site.test/feed"
	var text atomic.Value
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text.Load().(string)) })
	for _, polls := range [][]string{{document}, {document, newer}} {
		store := mirror.NewMemory()
		m := &mirror.Mirror{Store: store, Client: direct(site)}
		for _, poll := range polls {
			text.Store(poll)
			_, err := m.Update(t.Context(), url)
			require.NoError(t, err)
		}
		h := &Handler{Store: store}
		for _, format := range []string{"atom", "rss"} {
			require.GreaterOrEqual(t, len(idsAt(t, h, "http://127.0.0.1:8005/feeds/"+Name(url)+"/index."+format)), items, format)
		}
	}
}

// What could be read of a document cut short is served, with its gap.
func TestReadInPart(t *testing.T) {
	const url = "https://site.test/feed"
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/atom+xml")
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title><updated>2020-01-01T00:00:00Z</updated>
<entry><id>urn:1</id><title>One</title><updated>2020-01-01T00:00:00Z</updated></entry><entry><id>urn:2</id><tit`)
	})
	store := mirror.NewMemory()
	_, _ = (&mirror.Mirror{Store: store, Client: direct(site)}).Update(t.Context(), url)
	feed, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.NotEmpty(t, feed.Ledger.Gaps())
	h := &Handler{Store: store}
	for _, document := range []string{"index.atom", "index.rss", "complete.atom"} {
		text := asked(t, h, "/feeds/"+Name(url)+"/"+document)
		require.Contains(t, text, "urn:1", document)
		require.Contains(t, text, `verdict="partial"`, document)
		require.NotContains(t, text, "fh:complete", document)
	}
}

// A new chain is not made because an entry that is dated in the future leaves
// the subscription document: over many rounds, archives stay what they were,
// and each entry is in one of them.
func TestRepublishedFuture(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"for ever": 50 * 365 * 24 * time.Hour, "for an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *Handler) { s.Size = 10 })
			start := time.Now().UTC().Truncate(time.Second)
			count := 0
			publish := func(at time.Time) {
				count++
				e, err := compose.Draft{
					ID: fmt.Sprintf("tag:lighthouse.example,2026:%d", count), Updated: at,
					Title: feedhistory.Text{Body: fmt.Sprint("Entry ", count)},
					Links: feedhistory.Links{{Rel: "alternate", Href: fmt.Sprint("https://lighthouse.example/", count)}},
				}.Entry()
				require.NoError(t, err)
				require.NoError(t, w.blog.Append(t.Context(), e))
			}
			for i := range 30 {
				publish(start.Add(time.Duration(i-1000) * time.Minute))
			}
			page := w.add("/blog/feed.atom")
			feed := w.feedURL("/blog/feed.atom")
			w.fetched(page + "/index.atom")
			publish(start.Add(ahead))
			for round := range 8 {
				w.poll(feed)
				_, h := w.fetched(page + "/index.atom")
				require.Len(t, h.Entries, count, "round %d", round)
				before := archivesIn(t, w.Handler, feed)
				for i := range 9 {
					publish(start.Add(time.Duration(9*round+i-900) * time.Minute))
				}
				w.poll(feed)
				_, h = w.fetched(page + "/index.atom")
				require.Len(t, h.Entries, count, "round %d", round)
				after := archivesIn(t, w.Handler, feed)
				most := len(before) + 1
				require.LessOrEqual(t, len(after), most, "round %d: a new chain was made", round)
			}
			w.requireSame(page, feed)
		})
	}
}

const damagedURL = "https://site.test/feed"

// A damagedStore has a feed of entries with the given ids, one of which cannot
// be read.
func damagedStore(t *testing.T, damaged int) (mirror.Store, func(n int, text string)) {
	store := mirror.NewMemory()
	feed := &mirror.Feed{
		URL: damagedURL, Title: "Site", Kind: feedhistory.KindArchived, Verdict: feedhistory.VerdictWhole, Ledger: readAt(damagedURL),
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:site</id><title>Site</title><updated>2026-01-01T00:00:00Z</updated><author><name>A</name></author></feed>`,
	}
	put := func(n int, text string) {
		at := time.Date(2020, 1, 1+n, 0, 0, 0, 0, time.UTC)
		id := fmt.Sprint("urn:", n)
		known, err := store.Records(t.Context(), damagedURL, []string{id})
		require.NoError(t, err)
		first := feed.Commits + 1
		if r := known[id]; r != nil {
			first = r.FirstCommit
		}
		feed.Changed = at
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
			Feed: damagedURL, ID: id, State: mirror.Live, FirstCommit: first, LastCommit: feed.Commits + 1, Added: at, Changed: at, Copy: mirror.Copy{At: at, Digest: text},
			Content: mirror.Content{Format: feedhistory.FormatAtom, Updated: at, Data: text},
		}}}))
	}
	for n := range 25 {
		put(n, soundEntry(n))
	}
	put(damaged, `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:`)
	return store, put
}

func soundEntry(n int) string {
	return fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:%d</id><title>%[1]d</title><updated>2020-01-%02dT00:00:00Z</updated></entry>`, n, n+1)
}

// An entry the mirror cannot read is missing from every document, and every
// document says that something is missing, until the entry can be read again.
func TestLoss(t *testing.T) {
	for _, damaged := range []int{0, 3, 24} {
		store, put := damagedStore(t, damaged)
		h := &Handler{Store: store, Size: 10}
		server := httptest.NewServer(h)
		defer server.Close()
		site := server.URL + "/feeds/" + Name(damagedURL)
		requirePartial := func(document string) {
			t.Helper()
			history, err := direct(h).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(damagedURL)+document)
			require.NoError(t, err, document)
			require.Equal(t, feedhistory.VerdictPartial, history.Verdict(), document)
			text := asked(t, h, "/feeds/"+Name(damagedURL)+document)
			require.NotContains(t, text, "fh:complete", document)
			require.Contains(t, text, "Entries may be missing", document)
			require.Contains(t, text, `verdict="partial"`, document)
		}
		for _, document := range []string{"/complete.atom", "/slice.atom?since=2019-01-01", "/slice.rss"} {
			resp, err := http.Get(site + document)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			if document == "/complete.atom" {
				require.Error(t, err, "the first document breaks off")
			}
			requirePartial(document)
		}
		requirePartial("/index.atom")
		requirePartial("/index.rss")
		if damaged < 24 {
			requirePartial("/replay.atom?start=2021-01-01&every=1d")
		}

		put(damaged, soundEntry(damaged))
		for _, document := range []string{"/complete.atom", "/index.atom", "/index.rss"} {
			text := asked(t, h, "/feeds/"+Name(damagedURL)+document)
			require.NotContains(t, text, "Entries may be missing", document)
			require.Contains(t, text, `verdict="whole"`, document)
			history, err := direct(h).Fetch(t.Context(), "http://127.0.0.1:8005/feeds/"+Name(damagedURL)+document)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWhole, history.Verdict(), document)
			require.Len(t, history.Entries, 25, document)
		}
	}
}

// Readers of the history get the newest addresses of an episode, which has not changed:
// its id and time stay, and it does not move to the top.
func TestResigned(t *testing.T) {
	var day atomic.Int64
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Pod</title>`)
		for n := 3; n > 0; n-- {
			_, _ = fmt.Fprintf(w, `<item><guid isPermaLink="false">e%d</guid><title>%d</title><link>https://e.org/%d</link><enclosure url="https://e.org/%d.mp3?token-time=170000%d000&amp;token-hash=hash%d" length="9" type="audio/mpeg"/></item>`, n, n, n, n, day.Load(), day.Load())
		}
		_, _ = io.WriteString(w, `</channel></rss>`)
	}))
	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store, Client: reader()}
	h := &Handler{Store: store, Base: "https://history.example/"}
	first := map[string]string{}
	for range 3 {
		today := day.Add(1)
		report, err := m.Update(t.Context(), server.URL)
		require.NoError(t, err)
		require.Zero(t, report.Changed)
		for _, document := range []string{"index.atom", "index.rss", "complete.atom"} {
			status, body, _ := answer(h, getRequest(t.Context(), "/feeds/"+Name(server.URL)+"/"+document))
			require.Equal(t, http.StatusOK, status, body)
			require.Equal(t, 3, strings.Count(body, fmt.Sprintf("hash%d", today)), body)
			doc, err := feedhistory.Parse(strings.NewReader(body), "")
			require.NoError(t, err)
			var entries strings.Builder
			for _, e := range doc.Entries {
				_, _ = fmt.Fprintln(&entries, e.ID, e.Updated, e.Published, e.Digest())
			}
			require.Equal(t, cmp.Or(first[document], entries.String()), entries.String(), document)
			first[document] = entries.String()
		}
	}
}
