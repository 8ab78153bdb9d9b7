package web

import (
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

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

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

// fill makes one feed, in commits of a thousand entries.
func fill(t testing.TB, store mirror.Store, n, entries int) {
	feed := &mirror.Feed{
		URL: figureURL(n), Title: fmt.Sprintf("Feed %04d", n), Kind: feedhistory.Archived, Verdict: feedhistory.Whole,
		Polls: 1, Polled: time.Now(), Next: time.Now().Add(1000 * time.Hour), Changed: time.Now(),
	}
	feed.Known = feedhistory.Known{URL: feed.URL, Kind: feedhistory.Archived}
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
					Format: feedhistory.Atom, Title: title, Link: "https://feed.example/" + id, Updated: when, Published: when,
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
	for _, path := range []string{"/", "/?sort=entries", "/overview", "/entries", feed, large, large + "?month=2010-07", feed + "/entry?id=urn:feed:1:450", feed + "/subscribe", "/" + assets.path("style.css"), "/" + assets.path("app.js")} {
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
