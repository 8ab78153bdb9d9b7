package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
)

func TestLikeness(t *testing.T) {
	same := []string{"https://Example.org/feed", "http://example.org/feed/", "http://example.org:80/feed", "https://example.org:443/feed/"}
	for _, address := range same {
		require.Equal(t, likeness(same[0]), likeness(address))
	}
	for _, address := range []string{"https://example.org/Feed", "https://example.org/feed?x=1", "https://example.org:8080/feed", "https://www.example.org/feed", "https://example.org/feed//x"} {
		require.NotEqual(t, likeness(same[0]), likeness(address))
	}
	require.Equal(t, likeness("http://example.org"), likeness("https://example.org/"))
	require.Equal(t, likeness("http://example.org/100%?q=5%"), likeness("https://example.org/100%25/?q=5%25"))
}

// feeds returns the URLs of all feeds.
func (w *world) feeds() (urls []string) {
	for feed, err := range w.Store.Feeds(w.t.Context(), mirror.FeedQuery{}) {
		require.NoError(w.t, err)
		urls = append(urls, strings.TrimPrefix(feed.URL, w.site.URL))
	}
	return urls
}

func (w *world) post(form url.Values) (status int, body, location string) {
	status, body, header := w.do(http.MethodPost, "/feeds", form)
	return status, body, header.Get("Location")
}

// An address that probably leads to a feed that is here is not added unless
// somebody insists.
func TestAddKnown(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	for _, typed := range []string{w.feedURL("/tides.atom/"), strings.Replace(w.feedURL("/tides.atom"), "http:", "https:", 1)} {
		status, body, _ := w.post(url.Values{"url": {typed}})
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, body, "This seems to be <strong><bdi>Tides</bdi></strong>, which is here already")
		require.Contains(t, body, `href="`+page+`">Go to that feed`)
		require.Contains(t, body, `name="url" value="`+typed+`"`)
		requireSound(t, body)
	}
	require.Equal(t, []string{"/tides.atom"}, w.feeds())
	status, _, location := w.post(url.Values{"url": {w.feedURL("/tides.atom")}})
	require.Equal(t, http.StatusSeeOther, status)
	require.Equal(t, page, location)

	status, _, location = w.post(url.Values{"url": {w.feedURL("/tides.atom/")}, "all-the-same": {"1"}})
	require.Equal(t, http.StatusSeeOther, status)
	require.NotEqual(t, page, location)
	w.settle(w.feedURL("/tides.atom/"), 0)
	for path, want := range map[string]string{"/tides.atom": page, "/tides.atom/": location} { // both are here now, as two feeds
		_, _, location := w.post(url.Values{"url": {w.feedURL(path)}})
		require.Equal(t, want, location)
	}
	require.NoError(t, w.Store.Remove(t.Context(), w.feedURL("/tides.atom")))
	status, _, _ = w.post(url.Values{"url": {w.feedURL("/tides.atom")}})
	require.Equal(t, http.StatusSeeOther, status, "what is gone is not known")
}

// ends waits until a page redirects, and returns where to.
func (w *world) ends(page string) (location string) {
	require.Eventually(w.t, func() bool {
		status, _, header := w.get(page)
		location = header.Get("Location")
		return status == http.StatusTemporaryRedirect
	}, patience, 10*time.Millisecond)
	return location
}

// A feed that permanently redirects to one that is here is the same feed.
func TestAddRedirecting(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	_, _, location := w.post(url.Values{"url": {w.feedURL("/old-tides")}})
	require.Equal(t, page+"?said=leads", w.ends(location))
	require.Contains(t, w.page(page+"?said=leads", http.StatusOK), "The address that you added leads to this feed.")
	require.Equal(t, []string{"/tides.atom"}, w.feeds())

	// A feed that has moved is known by both its addresses.
	w = newWorld(t, nil)
	page = w.add("/old-tides")
	status, body, _ := w.post(url.Values{"url": {w.feedURL("/tides.atom/")}})
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, `href="`+page+`">Go to that feed`)
	s := &Server{Store: w.Store}
	known, err := s.feedsOf().like(t.Context(), w.feedURL("/tides.atom"))
	require.NoError(t, err)
	require.Equal(t, w.feedURL("/old-tides"), known.URL)
}

func (s *Server) feedsOf() *directory {
	s.once.Do(s.setUp)
	return s.feeds
}

// The address of a page finds its feed; of several, a person chooses.
func TestAddPage(t *testing.T) {
	w := newWorld(t, nil)
	_, _, location := w.post(url.Values{"url": {w.feedURL("/home.html")}})
	tides := "/feeds/" + republish.Name(w.feedURL("/tides.atom"))
	require.Equal(t, tides+"?said=leads", w.ends(location))
	w.settle(w.feedURL("/tides.atom"), 0)
	require.Equal(t, []string{"/tides.atom"}, w.feeds())

	page := w.add("/blog.html")
	body := w.page(page, http.StatusOK)
	require.Contains(t, body, "This is a page with 2 feeds")
	require.Contains(t, body, "Tides &lt;b&gt;")
	require.NotContains(t, body, "The last poll failed")
	status, _, news := w.post(url.Values{"url": {w.feedURL("/news.rss")}, "instead": {strings.TrimPrefix(page, "/feeds/")}})
	require.Equal(t, http.StatusSeeOther, status)
	require.Equal(t, news+"?said=leads", w.ends(page))
	w.settle(w.feedURL("/news.rss"), 0)
	require.Equal(t, []string{"/news.rss", "/tides.atom"}, w.feeds())

	// Comments are not what the user means.
	_, _, location = w.post(url.Values{"url": {w.feedURL("/commented.html")}})
	require.Equal(t, news+"?said=leads", w.ends(location))

	// Only a page that never was a feed is replaced by another.
	_, _, _ = w.post(url.Values{"url": {w.feedURL("/news.rss")}, "instead": {strings.TrimPrefix(tides, "/feeds/")}})
	require.Equal(t, []string{"/news.rss", "/tides.atom"}, w.feeds())

	// Pages that link to each other come to an end.
	_, _, location = w.post(url.Values{"url": {w.feedURL("/circle.html")}})
	require.Equal(t, "/feeds/"+republish.Name(w.feedURL("/circle2.html"))+"?said=leads", w.ends(location))
	w.settle(w.feedURL("/circle2.html"), 0)
	require.Contains(t, w.feeds(), "/circle2.html")
	require.NotContains(t, w.feeds(), "/circle.html")
}

var (
	figuresIn   = flag.String("figures", "", "a directory: measure with a database there, which is made if it is not there")
	figureFeeds = flag.Int("feeds", 1000, "how many it has")
	figureTotal = flag.Int("entries", 1_000_000, "how many it has, a tenth of them of one feed")
)

// vocabulary is as uneven as that of a language.
func sentence(r *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%d ", int(20_000*r.Float64()*r.Float64()*r.Float64()))
	}
	return strings.TrimSpace(b.String())
}

func figureURL(n int) string { return fmt.Sprintf("https://feed%04d.example/feed.atom", n) }

// readAt returns the ledger of a feed read at a URL.
func readAt(url string) (l mirror.Ledger) {
	if err := json.Unmarshal(fmt.Appendf(nil, `{"known":{"URL":%q}}`, url), &l); err != nil {
		panic(err)
	}
	return l
}

// fill makes one feed, in commits of a thousand entries.
func fill(t testing.TB, store mirror.Store, n, entries int) {
	feed := &mirror.Feed{
		URL: figureURL(n), Title: fmt.Sprintf("Feed %04d", n), Kind: feedhistory.KindArchived, Verdict: feedhistory.VerdictWhole,
		Polls: 1, Polled: time.Now(), Next: time.Now().Add(1000 * time.Hour), Changed: time.Now(),
	}
	feed.Ledger = readAt(feed.URL)
	feed.Head = fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed:%d</id><title>%s</title><updated>2026-01-01T00:00:00Z</updated>`+
		`<author><name>Ann</name></author></feed>`, n, feed.Title)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	start := time.Date(2006, 1, 1, 0, 0, 0, 0, time.UTC)
	step := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Sub(start) / time.Duration(entries)
	for at := 0; at < entries; at += 1000 {
		size := min(1000, entries-at)
		change := &mirror.Commit{Feed: feed}
		for i := at; i < at+size; i++ {
			when, id, title := start.Add(time.Duration(i)*step), fmt.Sprintf("urn:feed:%d:%d", n, i), sentence(r, 6)
			change.Put = append(change.Put, &mirror.Record{
				Feed: feed.URL, ID: id, State: mirror.Live, Archived: true, FirstCommit: feed.Commits + 1, LastCommit: feed.Commits + 1,
				Added: feed.Polled, Changed: feed.Polled, Copy: mirror.Copy{At: when, Rank: mirror.Rank{Time: when, Seq: int64(i)}, Digest: id},
				Content: mirror.Content{
					Format: feedhistory.FormatAtom, Title: title, Link: "https://feed.example/" + id, Updated: when, Published: when,
					Data: fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>%s</id><title>%s</title><updated>%s</updated>`+
						`<link href="https://feed.example/%s"/><content type="html">&lt;p&gt;%s&lt;/p&gt;</content></entry>`,
						id, title, when.Format(time.RFC3339Nano), id, sentence(r, 60)),
				},
			})
		}
		for i := at; i < at+size; i += 100 {
			name := fmt.Sprintf("https://feed%04d.example/archive/%d.atom", n, i/100)
			change.Documents = append(change.Documents, &mirror.DocumentRecord{
				URL: name, Names: []string{name}, Rank: mirror.Rank{Time: start, Seq: int64(i)}, First: 1, Last: 1, Read: feed.Polled, Entries: 100,
				Oldest: start.Add(time.Duration(i) * step), Newest: start.Add(time.Duration(i+99) * step), Digest: name,
			})
			feed.Documents++
		}
		feed.Entries += int64(size)
		require.NoError(t, store.Commit(t.Context(), change))
	}
}

// A discarding is a ResponseWriter that keeps nothing.
type discarding struct {
	header http.Header
	status int
	size   int
}

func (d *discarding) Header() http.Header { return d.header }
func (d *discarding) WriteHeader(s int)   { d.status = s }
func (d *discarding) Write(b []byte) (int, error) {
	d.size += len(b)
	return len(b), nil
}

// took measures the requests to a handler.
func took(t testing.TB, h http.Handler, times int, path func(int) string) (median, p95 time.Duration) {
	var all []time.Duration
	for i := range times {
		w := &discarding{header: http.Header{}}
		r := httptestRequest(t.Context(), http.MethodGet, path(i), nil)
		start := time.Now()
		h.ServeHTTP(w, r)
		all = append(all, time.Since(start))
		require.Contains(t, []int{0, http.StatusOK}, w.status, path(i))
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*95/100]
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}

// TestFigures measures the figures in the README:
//
//	go test -run TestFigures -v -timeout 30m . -args -figures /tmp/figures
func TestFigures(t *testing.T) {
	if *figuresIn == "" {
		t.Skip("it takes minutes; see -figures")
	}
	file := filepath.Join(*figuresIn, "feeds.db")
	_, err := os.Stat(file)
	store := openSQLite(t, file)
	if err != nil {
		start := time.Now()
		fill(t, store, 0, *figureTotal/10)
		for n := 1; n < *figureFeeds; n++ {
			fill(t, store, n, *figureTotal*9/10/(*figureFeeds-1))
		}
		t.Logf("stored in %v", time.Since(start).Round(time.Second))
		start = time.Now()
		require.NoError(t, store.Index(t.Context()))
		t.Logf("indexed in %v", time.Since(start).Round(time.Second))
	}
	dir := publish.Dir{Path: filepath.Join(t.TempDir(), "published")}
	s := &Server{Store: store, Output: dir}
	r := rand.New(rand.NewPCG(1, 1))
	name := func(int) string { return republish.Name(figureURL(1 + r.IntN(*figureFeeds-1))) }
	large := republish.Name(figureURL(0))
	for _, test := range []struct {
		what string
		path func(int) string
	}{
		{"feeds, first page, the first time", func(i int) string { return "/?first" }},
		{"feeds, any page", func(int) string { return "/?after=" + url.QueryEscape(figureURL(r.IntN(*figureFeeds)-1)) }},
		{"feeds, found by title", func(int) string { return fmt.Sprintf("/?q=feed+%d", r.IntN(*figureFeeds)) }},
		{"a feed", func(i int) string { return "/feeds/" + name(i) }},
		{"the large feed", func(int) string { return "/feeds/" + large }},
		{"the large feed, a month", func(int) string { return fmt.Sprintf("/feeds/%s?month=20%02d-07", large, 6+r.IntN(20)) }},
		{"an entry", func(i int) string {
			n := 1 + r.IntN(*figureFeeds-1)
			return fmt.Sprintf("/feeds/%s/entry?id=urn:feed:%d:%d", republish.Name(figureURL(n)), n, r.IntN(*figureTotal*9/10/(*figureFeeds-1)))
		}},
		{"entries of all feeds", func(int) string { return "/entries" }},
		{"search a feed, a rare word", func(i int) string { return fmt.Sprintf("/feeds/%s?q=w%d", name(i), 15_000+r.IntN(5_000)) }},
		{"search a feed, two common words", func(i int) string { return fmt.Sprintf("/feeds/%s?q=w%d+w%d", name(i), r.IntN(9), 10+r.IntN(9)) }},
		{"search the large feed, a rare word", func(int) string { return fmt.Sprintf("/feeds/%s?q=w%d", large, 15_000+r.IntN(5_000)) }},
		{"search the large feed, a common word", func(int) string { return fmt.Sprintf("/feeds/%s?q=w%d", large, r.IntN(9)) }},
		{"search a feed, two whole words", func(i int) string { return fmt.Sprintf("/feeds/%s?q=w%d+w%d", name(i), 10+r.IntN(9), r.IntN(9)) }},
		{"search all, a rare word", func(int) string { return fmt.Sprintf("/entries?q=w%d", 15_000+r.IntN(5_000)) }},
		{"search all, two common words", func(int) string { return fmt.Sprintf("/entries?q=w%d+w%d", r.IntN(9), 10+r.IntN(9)) }},
		{"search all, a common word", func(int) string { return fmt.Sprintf("/entries?q=w%d", r.IntN(9)) }},
		{"OPML", func(int) string { return "/feeds.opml" }},
		{"overview, the first time", func(int) string { return "/overview" }},
		{"overview", func(int) string { return "/overview" }},
		{"feeds, the most entries first", func(int) string { return "/?sort=entries" }},
		{"feeds, silent for a year", func(int) string { return "/?show=silent&sort=silent" }},
	} {
		times := 40
		if strings.Contains(test.what, "first time") {
			times = 1
		}
		median, p95 := took(t, s, times, test.path)
		t.Logf("%-38s median %8v  p95 %8v  heap %d MiB", test.what, median.Round(10*time.Microsecond), p95.Round(10*time.Microsecond), heap())
	}
	measurePublished(t, s, dir, large)
}

// TestRatios measures the times of pages over HTTP as multiples of the time
// that http.FileServerFS takes for a file with the same bytes, with the
// database of TestFigures.
func TestRatios(t *testing.T) {
	if *figuresIn == "" {
		t.Skip("it needs a large database; see -figures")
	}
	s := &Server{Store: openSQLite(t, filepath.Join(*figuresIn, "feeds.db"))}
	dir := t.TempDir()
	pages, files := httptest.NewServer(s), httptest.NewServer(http.FileServerFS(os.DirFS(dir)))
	defer pages.Close()
	defer files.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	ask := func(address string, header ...string) (body []byte, tag string, took time.Duration) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		start := time.Now()
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Less(t, resp.StatusCode, 400, address)
		return body, resp.Header.Get("Etag"), time.Since(start)
	}
	median := func(address string, header ...string) time.Duration {
		var all []time.Duration
		for range 300 {
			_, _, took := ask(address, header...)
			all = append(all, took)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	feed, large := "/feeds/"+republish.Name(figureURL(1)), "/feeds/"+republish.Name(figureURL(0))
	for _, path := range []string{"/", "/?sort=entries", "/overview", "/entries", feed, large, large + "?month=2010-07", feed + "/entry?id=urn:feed:1:450", feed + "/subscribe", "/" + assets().path("style.css"), "/" + assets().path("app.js")} {
		body, tag, _ := ask(pages.URL + path)
		zipped, ztag, _ := ask(pages.URL+path, "Accept-Encoding", "gzip")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), body, 0o644))
		require.NotEqual(t, tag, ztag)
		static := median(files.URL + "/file")
		times := func(d time.Duration) float64 { return float64(d) / float64(static) }
		t.Logf("%-75s %4d kB, gzip %3d kB; a file %6v; page %5.1f × gzip %5.1f × unchanged %5.1f ×", path, len(body)/1000, len(zipped)/1000, static.Round(time.Microsecond),
			times(median(pages.URL+path)), times(median(pages.URL+path, "Accept-Encoding", "gzip")), times(median(pages.URL+path, "If-None-Match", tag)))
	}
}

// measurePublished measures what is published again.
func measurePublished(t *testing.T, s *Server, dir publish.Dir, large string) {
	once, _ := took(t, s, 1, func(int) string { return "/feeds/" + republish.Name(figureURL(1)) + "/index.atom" })
	t.Logf("index.atom of a feed, the first time: %v", once.Round(time.Millisecond))
	once, _ = took(t, s, 1, func(int) string { return "/feeds/" + large + "/index.atom" })
	t.Logf("index.atom of the large feed, the first time: %v, heap %d MiB", once.Round(time.Millisecond), heap())
	again, _ := took(t, s, 1000, func(int) string { return "/feeds/" + large + "/index.atom" })
	t.Logf("index.atom of the large feed, again: %v", again.Round(time.Microsecond))
	once, _ = took(t, s, 1, func(int) string { return "/feeds/" + large + "/complete.atom" })
	t.Logf("complete.atom of the large feed: %v, heap %d MiB", once.Round(time.Millisecond), heap())

	archives, err := filepath.Glob(filepath.Join(dir.Path, "*", large, "index", "*.atom"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	root := filepath.Dir(filepath.Dir(filepath.Dir(archives[0])))
	rate := func(what string, h http.Handler, prefix string) {
		const times = 5000
		start, size := time.Now(), 0
		for i := range times {
			w := &discarding{header: http.Header{}}
			h.ServeHTTP(w, httptestRequest(t.Context(), http.MethodGet, prefix+large+"/index/"+filepath.Base(archives[i%100]), nil))
			size += w.size
		}
		d := time.Since(start)
		t.Logf("archives by %-20s %6.0f a second, %d KiB each", what, times/d.Seconds(), size/times>>10)
	}
	for range 2 {
		rate("this server", s, "/feeds/")
		rate("publish.Handler", &publish.Handler{FS: publish.Dir{Path: root}}, "/")
		rate("http.FileServerFS", http.FileServerFS(os.DirFS(root)), "/")
	}
}
