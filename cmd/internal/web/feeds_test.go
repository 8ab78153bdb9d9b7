package web

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var rowLink = regexp.MustCompile(`<th scope="row"><a href="/feeds/[^"]*"><bdi>([^<]*)</bdi>`)

// listed returns the titles in a page of the list of feeds, in order.
func listed(page string) (titles []string) {
	for _, m := range rowLink.FindAllStringSubmatch(page, -1) {
		titles = append(titles, m[1])
	}
	return titles
}

// The list of feeds has orders and selections, which can be combined with a
// search.
func TestFeedList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.clock = func() time.Time { return time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC) }
	w.write(2003, 2016)
	w.lose("feed/3-")
	for _, path := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/pod.rss", "/100%25", "/page.html"} {
		w.add(path)
	}
	const blog, news, tides, pod, sale = "The Lighthouse Log", "Harbour news", "Tides", "Pod", "Sale"
	failed := strings.TrimPrefix(w.feedURL("/page.html"), "http://")
	for query, want := range map[string][]string{
		"":                             {failed, news, pod, sale, blog, tides},
		"?sort=nonsense&show=nonsense": {failed, news, pod, sale, blog, tides},
		"?sort=partial":                {blog, news, pod, sale, tides, failed},
		"?sort=entries":                {blog, news, pod, tides, sale, failed},
		"?sort=newest":                 {news, tides, sale, pod, blog, failed},
		"?sort=silent":                 {blog, pod, sale, tides, news, failed},
		"?show=partial":                {blog},
		"?show=window":                 {news, pod, sale},
		"?show=whole":                  {tides},
		"?show=lossy":                  nil,
		"?show=silent":                 {pod, blog},
		"?show=failing":                {failed},
		"?show=window&sort=newest":     {news, sale, pod},
		"?show=window&q=POD":           {pod},
	} {
		page := w.page("/"+query, http.StatusOK)
		require.Equal(t, want, listed(page), query)
		require.Equal(t, want == nil, strings.Contains(page, "There is no such feed."), query)
	}
	page := w.page("/?show=window&sort=newest", http.StatusOK)
	require.Contains(t, page, `<option value="window" selected>`)
	require.Contains(t, page, `<option value="newest" selected>`)
	require.Contains(t, page, "3 feeds <a")

	// A feed that gets a new entry is no longer silent.
	w.write(2024, 2025)
	w.poll(w.feedURL("/blog/feed.atom"))
	require.Equal(t, []string{pod}, listed(w.page("/?show=silent", http.StatusOK)))
}

// However many feeds there are, the pages of an order show each once.
func TestFeedListPages(t *testing.T) {
	t.Parallel()
	store := mirror.NewMemory()
	s := &Server{Store: store}
	const feeds = 2*feedsPerPage + 50
	for n := range feeds {
		feed := &mirror.Feed{URL: fmt.Sprintf("https://feed%03d.example/", n*37%feeds), Title: fmt.Sprintf("T%03d", n), Verdict: feedhistory.VerdictWhole - feedhistory.Verdict(n%4), Entries: 0}
		feed.Ledger = readAt(feed.URL)
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	}
	for query, want := range map[string]int{"": feeds, "?sort=partial": feeds, "?show=whole": (feeds + 3) / 4, "?q=T1": 100} {
		seen := map[string]bool{}
		pages := 0
		for path := "/" + query; path != ""; pages++ {
			status, body, _ := answer(t, s, httptestRequest(t.Context(), http.MethodGet, path, nil))
			require.Equal(t, http.StatusOK, status)
			for _, title := range listed(body) {
				require.False(t, seen[title], title)
				seen[title] = true
			}
			_, next, ok := strings.Cut(body, `class="on" rel="next" href="`)
			if next, _, _ = strings.Cut(next, `"`); !ok {
				break
			}
			path = "/" + strings.ReplaceAll(next, "&amp;", "&")
		}
		require.Len(t, seen, want, query)
		require.Equal(t, (want-1)/feedsPerPage, pages, query)
	}
}

// The overview shows the right numbers.
func TestOverview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.Contains(t, w.page("/overview", http.StatusOK), "No feeds yet.")
	w.write(2003, 2016)
	w.lose("feed/3-")
	for _, path := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/page.html"} {
		w.add(path)
	}
	w.poll(w.feedURL("/tides.atom"))
	page := w.page("/overview", http.StatusOK)
	years, entries := map[string]int{}, 0
	for r, err := range w.Store.Entries(t.Context(), mirror.Query{}) {
		require.NoError(t, err)
		years[r.Time().Format("2006")]++
		entries++
	}
	for year, n := range years {
		require.Contains(t, page, fmt.Sprintf(`<a href="/entries?month=%s-01&amp;span=12"><title>%s: %s</title>`, year, year, plural(n, "entry", "entries")))
	}
	require.Equal(t, len(years), strings.Count(page, "<title>2"), "no other year has a bar")
	for _, part := range []string{
		fmt.Sprintf(`<dt>Entries</dt><dd><a href="/entries">%s</a>`, count(entries)), `<dt>Feeds</dt><dd><a href="/">4</a>`, `<dt>Deleted</dt><dd><a href="/entries?deleted=1">1</a>`,
		`1, in <a href="/?show=partial">1 feed</a>`, "By kind: 1 complete, 1 archived, 1 plain. 1 feed has not been read yet.", ">33 %</span>",
	} {
		require.Contains(t, page, part)
	}
	var bytes int64
	for feed, err := range w.Store.Feeds(t.Context(), mirror.FeedQuery{}) {
		require.NoError(t, err)
		bytes += feed.Size()
	}
	require.Contains(t, page, "<dt>Stored</dt><dd>"+sizeText(fmt.Sprint(bytes)))
	require.NotContains(t, page, "the size is not known")
	require.Contains(t, w.page("/entries?month=2004-01&span=12", http.StatusOK), "From 2004")
	require.Contains(t, w.page("/entries?deleted=1", http.StatusOK), "Spring")
}

// If a feed is removed and added again, nothing old is shown, though its
// versions have the same numbers.
func TestAddedAgain(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	require.Contains(t, w.page("/overview", http.StatusOK), "2024: 2 entries")
	require.Contains(t, w.page(page, http.StatusOK), "Low water at noon.")
	before, err := w.Store.Feed(t.Context(), w.feedURL("/tides.atom"))
	require.NoError(t, err)
	_, _, header := w.get(page + "/complete.atom")
	status, _, _ := w.do(http.MethodPost, page+"/remove", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Equal(t, page, w.add("/tides.atom"))
	after, err := w.Store.Feed(t.Context(), w.feedURL("/tides.atom"))
	require.NoError(t, err)
	require.Equal(t, before.Commits, after.Commits)
	require.Contains(t, w.page("/overview", http.StatusOK), "2024: 1 entry")
	require.Contains(t, w.page(page, http.StatusOK), "Low water at one.")
	require.Contains(t, w.page(page, http.StatusOK), "March 2024: 1 entry")
	_, _, now := w.get(page + "/complete.atom")
	require.NotEqual(t, header.Get("Etag"), now.Get("Etag"))
}

// Whatever the years are, each is drawn in its place and with its height.
func TestYearChart(t *testing.T) {
	t.Parallel()
	require.Empty(t, newYearChart(nil, 2026).Bars)
	rapid.Check(t, func(t *rapid.T) {
		years := rapid.MapOf(rapid.OneOf(rapid.IntRange(1995, 2026), rapid.IntRange(1, 9999)), rapid.Int64Range(1, 1_000_000)).Draw(t, "years")
		c := newYearChart(years, 2026)
		require.Equal(t, len(years) > 0, len(c.Bars) > 0)
		last, labels := 0.0, 0
		for _, b := range c.Bars {
			require.Greater(t, b.X, last)
			require.Greater(t, b.Width, 0.0)
			require.LessOrEqual(t, b.X+b.Width, 100.1)
			require.GreaterOrEqual(t, b.Y, c.Top)
			require.InDelta(t, c.Base, b.Y+b.Height, 0.1)
			last = b.X
		}
		for _, k := range c.Ticks {
			if k.Label != "" {
				labels++
			}
		}
		require.LessOrEqual(t, labels, mostYearLabels)
	})
}

// upload adds the feeds of a list. It returns the page that follows, with its status or
// that of the redirect there.
func (w *world) upload(list string) (status int, body string) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	file, err := form.CreateFormFile("opml", "feeds.opml")
	require.NoError(w.t, err)
	_, err = io.WriteString(file, list)
	require.NoError(w.t, err)
	require.NoError(w.t, form.Close())
	r := httptestRequest(w.t.Context(), http.MethodPost, "/feeds", &b)
	r.Header.Set("Content-Type", form.FormDataContentType())
	status, body, header := answer(w.t, w.Server, r)
	if status == http.StatusSeeOther {
		body = w.page(header.Get("Location"), http.StatusOK)
	}
	return status, body
}

// Folders and own titles come in and go out again, also of a feed that is here already.
func TestOPMLFolders(t *testing.T) {
	w := newWorld(t, nil)
	w.add("/news.rss")
	_, body := w.upload(`<opml version="2.0"><body>
		<outline text="Sea"><outline text="Tide &amp; time">
			<outline text="My tides" xmlUrl="` + w.feedURL("/tides.atom") + `"/></outline>
			<outline text="My news" xmlUrl="` + w.feedURL("/news.rss") + `"/></outline>
		<outline text="News"><outline text="My news" xmlUrl="` + w.feedURL("/news.rss") + `"/></outline>
		<outline text="Bad" xmlUrl="ftp://example.org/"/></body></opml>`)
	require.Contains(t, body, "1 added, 1 here already, 1 cannot be read: ftp://example.org/")
	w.settle(w.feedURL("/tides.atom"), 0)
	body = w.page("/", http.StatusOK)
	for _, part := range []string{"<bdi>My tides</bdi>", "<bdi>My news</bdi>", `<bdi>Sea › Tide &amp; time</bdi>`, `href="?folder=Sea%2FTide`} {
		require.Contains(t, body, part)
	}
	requireSound(t, body)
	body = w.page("/?folder=Sea%2FTide+%26+time", http.StatusOK)
	require.Contains(t, body, "My tides")
	require.NotContains(t, body, "My news")
	require.Contains(t, w.page("/?folder=Sea", http.StatusOK), "My news", "a folder has the feeds of those in it")
	require.NotContains(t, w.page("/?folder=Se", http.StatusOK), "My news")
	require.Contains(t, w.page("/?q=tide", http.StatusOK), "My tides")

	_, text, _ := w.get("/feeds.opml")
	feeds, err := readers.ReadOPML(strings.NewReader(text))
	require.NoError(t, err)
	for i := range feeds {
		feeds[i].Site = ""
	}
	require.ElementsMatch(t, []readers.Outline{
		{Text: "My tides", URL: w.feedURL("/tides.atom"), Folders: [][]string{{"Sea", "Tide & time"}}},
		{Text: "My news", URL: w.feedURL("/news.rss"), Folders: [][]string{{"Sea"}, {"News"}}},
	}, feeds)
}
