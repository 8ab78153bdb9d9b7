package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/xml"
	"errors"
	"image"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

func httptestRequest(ctx context.Context, method, path string, body io.Reader) *http.Request {
	return httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8005"+path, body)
}

// answer returns the answer of a handler.
func answer(t testing.TB, h http.Handler, r *http.Request) (status int, body string, header http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// page returns a page after checking its markup.
func (w *world) page(path string, status int) string {
	w.t.Helper()
	got, body, header := w.get(path)
	require.Equal(w.t, status, got, body)
	require.Equal(w.t, "text/html; charset=utf-8", header.Get("Content-Type"))
	require.Equal(w.t, policy(), header.Get("Content-Security-Policy"))
	require.Equal(w.t, "nosniff", header.Get("X-Content-Type-Options"))
	requireSound(w.t, body)
	return body
}

func TestEmpty(t *testing.T) {
	w := newWorld(t, nil)
	require.Contains(t, w.page("/", http.StatusOK), "No feeds yet.")
	require.Contains(t, w.page("/entries", http.StatusOK), "There are no entries yet.")
	require.Contains(t, w.page("/nothing", http.StatusNotFound), "There is no such page")
	require.Contains(t, w.page("/static/style.css", http.StatusNotFound), "There is no such page")
	for _, path := range []string{"", "/entry?id=x", "/remove", "/index.atom", "/index.rss", "/complete.atom"} {
		require.Contains(t, w.page("/feeds/0123456789ab"+path, http.StatusNotFound), "That is not in the mirror", path)
	}
	status, _, _ := w.get("/feeds/0123456789ab/index/1-0123456789abcdef.atom")
	require.Equal(t, http.StatusNotFound, status)
	status, _, header := w.get("/" + assets().path("style.css"))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, header.Get("Cache-Control"), "immutable")
	require.Equal(t, "text/css; charset=utf-8", header.Get("Content-Type"))
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2016)
	w.lose("feed/3-")
	blog, news, tides := w.add("/blog/feed.atom"), w.add("/news.rss"), w.add("/tides.atom")
	w.poll(w.feedURL("/news.rss"))
	w.poll(w.feedURL("/tides.atom"))

	feeds := w.page("/", http.StatusOK)
	for _, word := range []string{">whole</span>", ">window</span>", ">partial</span>", ">1 gap</a>", "The Lighthouse Log"} {
		require.Contains(t, feeds, word)
	}
	require.NotContains(t, w.page("/?q=HARBOUR", http.StatusOK), "Lighthouse")
	require.Contains(t, w.page("/?q=nothing", http.StatusOK), "No feed has “nothing”")

	page := w.page(blog, http.StatusOK)
	for _, word := range []string{
		`<svg viewBox="0 0 960`, `class="block gap open"`, `class="block archive"`, `class="block subscription"`, `id="gap-1"`,
		"What to do: try again later", "404 Not Found", `rel="next"`, " 2015: ", "archived, ",
	} {
		require.Contains(t, page, word)
	}
	require.Contains(t, w.page(tides, http.StatusOK), `class="block complete"`)
	require.Contains(t, w.page(news, http.StatusOK), `class="block window"`)
	require.Contains(t, w.page(news, http.StatusOK), "The feed may have older entries; to look for them (sitemap): feedhistory sync --backfill "+w.feedURL("/news.rss"))
	require.NotContains(t, page, "--backfill", "it declares its history")

	require.Regexp(t, `force \d\. Nothing is so calm`, page)

	// Pages of entries.
	seen := map[string]bool{}
	pages := 0
	for path := blog; path != ""; pages++ {
		body := w.page(path, http.StatusOK)
		for rest := range strings.SplitSeq(body, `/entry?id=`) {
			id, _, _ := strings.Cut(rest, `"`)
			seen[id] = true
		}
		_, next, ok := strings.Cut(body, `rel="next" href="`)
		if next, _, _ = strings.Cut(next, `"`); !ok {
			break
		}
		path = blog + strings.ReplaceAll(next, "&amp;", "&")
	}
	require.Greater(t, pages, 2)
	require.Len(t, seen, len(w.mirrored(w.feedURL("/blog/feed.atom")))+1)

	found := w.page(blog+"?q=STORM+petrels", http.StatusOK)
	require.Contains(t, found, "<mark>Storm</mark> <mark>petrels</mark>")
	require.NotContains(t, found, "Ice on the rail")
	require.Contains(t, w.page(blog+"?q=petroleum", http.StatusOK), "No entries match.")
	require.Contains(t, w.page(blog+"?q=%2B%2B", http.StatusOK), "There is no word to search for")
	require.Contains(t, w.page(blog+"?month=2015-11", http.StatusOK), "From November 2015")
	require.Contains(t, w.page(blog+"?month=2015-10&span=3", http.StatusOK), "From October 2015 to December 2015")
	requireFilters(t, w, blog, tides)
	require.Contains(t, w.page(blog+"?before=rubbish&month=x&span=-1", http.StatusOK), "Older entries")
	first, _, _ := strings.Cut(page[strings.Index(page, `/entry?id=`):], `"`)
	require.Contains(t, w.page("/entries?q=crane", http.StatusOK), "Harbour news")

	// Entries, their versions, deleted ones.
	entry := w.page(news+"/entry?id=harbour-3", http.StatusOK)
	for _, word := range []string{"<b>three times</b>", "Earlier versions", "<b>twice</b>", `href="https://harbour.example/3"`, "11 April 2024, 18:00 UTC"} {
		require.Contains(t, entry, word)
	}
	require.Contains(t, w.page(tides+"/entry?id=urn:tides:1", http.StatusOK), "This entry is no longer in the feed")
	require.Contains(t, w.page(tides+"?deleted=1", http.StatusOK), "no longer in the feed")
	require.NotContains(t, w.page(tides, http.StatusOK), "Spring")
	w.page(tides+"/entry?id=urn:tides:9", http.StatusNotFound)
	log := w.page(blog+first, http.StatusOK)
	require.Regexp(t, `<img src="/pictures/[\w-]{22}\?of=http%3A%2F%2Flighthouse.example%2Fchart.png" alt="The day’s chart" title="" loading="lazy"`, log)

	remove := w.page(blog+"/remove", http.StatusOK)
	require.Contains(t, remove, "come back only from a backup")
	_, opml, header := w.get("/feeds.opml")
	require.Contains(t, header.Get("Content-Disposition"), "feeds.opml")
	require.Contains(t, opml, `xmlUrl="`+w.feedURL("/news.rss")+`"`)
	_, opml, _ = w.get("/feeds.opml?mirrored")
	require.Contains(t, opml, w.url+strings.TrimPrefix(news, "/")+"/index.atom")
}

func TestAdd(t *testing.T) {
	w := newWorld(t, nil)
	for typed, want := range map[string]string{
		"":                           "Type the address of a feed",
		"https://":                   "That is not the address of a feed",
		"ftp://example.org/feed":     "Only addresses that begin with http",
		"https://me:pw@example.org/": "An address with a password",
		"example.org/?token=s3cret":  "This address seems to have a secret in it",
		"http://[::1":                "That is not the address of a feed",
		"https://example.org/" + strings.Repeat("x", 2000): "The address is too long",
	} {
		status, body, _ := w.do(http.MethodPost, "/feeds", url.Values{"url": {typed}})
		require.Equal(t, http.StatusUnprocessableEntity, status, typed)
		require.Contains(t, body, want)
		requireSound(t, body)
	}
	for typed, want := range map[string]string{
		" example.org/feed#top ":     "https://example.org/feed",
		"feed:https://example.org/x": "https://example.org/x",
		"feed://example.org/x":       "https://example.org/x",
		"pcast://example.org/x":      "https://example.org/x", "itpc:example.org/x": "https://example.org/x",
		"example.org/100%":                   "https://example.org/100%25",
		"https://example.org/%zz?q=5%&x=a|b": "https://example.org/%25zz?q=5%25&x=a%7Cb",
		"https://example.org/a%2Fb c/ü":      "https://example.org/a%2Fb%20c/%C3%BC",
	} {
		address, wrong := feedAddress(typed)
		require.Empty(t, wrong)
		require.Equal(t, want, address)
	}

	// The file's name is requested as it is typed (RFC 3986 §2.4 would have it
	// escaped).
	status, body, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/100%")}})
	require.Equal(t, http.StatusSeeOther, status, body)
	odd := header.Get("Location")
	w.settle(w.feedURL("/100%25"), 0)
	require.Contains(t, w.page(odd, http.StatusOK), `href="`+w.feedURL("/100%25")+`"`)
	require.Contains(t, w.page(odd, http.StatusOK), "Sale")
	require.Contains(t, w.page(odd+"/entry?id=urn:sale:1", http.StatusOK), `href="https://shop.example/50%25off#a%25"`)

	// A page that is not a feed says so, and what to do.
	status, body, _ = w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/page.html")}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "There is no feed at this address")
	require.Contains(t, body, "Add this address anyway")
	requireSound(t, body)
	_, err := w.Store.Feed(t.Context(), w.feedURL("/page.html"))
	require.ErrorIs(t, err, mirror.ErrNotFound)
	status, body, _ = w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/nothing")}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "the answer was 404")
	status, body, header = w.do(http.MethodPost, "/feeds", url.Values{"url": {strings.TrimPrefix(w.feedURL("/odd.atom"), "http://")}})
	require.Equal(t, http.StatusSeeOther, status, body)
	require.Equal(t, "/feeds/"+republish.Name(w.feedURL("/odd.atom")), header.Get("Location"), "http, because https fails")

	// Somebody who insists can add it.
	status, _, header = w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/page.html")}, "all-the-same": {"1"}})
	require.Equal(t, http.StatusSeeOther, status)
	failed := header.Get("Location")
	w.settle(w.feedURL("/page.html"), 0)
	body = w.page(failed, http.StatusOK)
	require.Contains(t, body, "The last poll failed.")
	require.Contains(t, body, "If the address is wrong")
	require.Contains(t, w.page("/", http.StatusOK), "not read yet")
	require.Contains(t, w.page(failed+"/index.atom", http.StatusServiceUnavailable), "This feed has not been read yet")

	status, _, header = w.do(http.MethodPost, failed+"/remove", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Contains(t, w.page(header.Get("Location"), http.StatusOK), "The feed has been removed")
	w.page(failed, http.StatusNotFound)
}

func TestAddOPML(t *testing.T) {
	w := newWorld(t, nil)
	file := `<opml version="2.0"><body><outline text="a"><outline xmlUrl="` + w.feedURL("/news.rss") + `"/></outline>
		<outline xmlUrl="` + w.feedURL("/news.rss") + `"/><outline xmlUrl="javascript:x"/><outline xmlUrl="` + w.feedURL("/tides.atom") + `"/></body></opml>`
	for _, test := range []struct {
		file, want string
		status     int
	}{
		{file, "2 added, 0 here already, 1 cannot be read: javascript:x.", http.StatusSeeOther},
		{file, "0 added, 2 here already, 1 cannot be read", http.StatusSeeOther},
		{"<html></html>", "not OPML: its root element is html", http.StatusUnprocessableEntity},
		{"<opml><outline", "This OPML file cannot be read", http.StatusUnprocessableEntity},
		{"<opml>" + strings.Repeat(" ", mostUpload), "larger than 8 MiB", http.StatusUnprocessableEntity},
	} {
		status, body := w.upload(test.file)
		require.Equal(t, test.status, status, body)
		require.Contains(t, body, test.want)
	}
	w.settle(w.feedURL("/news.rss"), 0)
	w.settle(w.feedURL("/tides.atom"), 0)
}

func TestRefused(t *testing.T) {
	w := newWorld(t, nil)
	ask := func(edit func(*http.Request)) (int, string) {
		r := httptestRequest(t.Context(), http.MethodPost, "/feeds", strings.NewReader("url="+w.feedURL("/news.rss")))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		edit(r)
		status, body, _ := answer(t, w.Server, r)
		if status >= 400 {
			requireSound(t, body)
		}
		return status, body
	}
	for name, edit := range map[string]func(*http.Request){
		"another site":         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another origin":       func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"nobody's origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"the same site's port": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
	} {
		status, body := ask(edit)
		require.Equal(t, http.StatusForbidden, status, name)
		require.Contains(t, body, "Another site has sent this")
	}
	for _, host := range []string{"evil.example", "evil.example:8005", "127.0.0.1.evil.example", "192.0.2.1", "[2001:db8::1]:8005", ""} {
		status, body := ask(func(r *http.Request) { r.Host = host })
		require.Equal(t, http.StatusMisdirectedRequest, status, host)
		require.Contains(t, body, "This server is not known by that name")
	}
	for _, host := range []string{"localhost:8005", "[::1]:8005", "127.0.0.1", strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/")} {
		status, body := ask(func(r *http.Request) { r.Host = host })
		require.Equal(t, http.StatusSeeOther, status, body)
	}
	w.settle(w.feedURL("/news.rss"), 0)
}

func TestToken(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token = "open sesame" })
	status, body, _ := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/news.rss")}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, `<input type="hidden" name="next" value="/feeds/abc">`)
	requireSound(t, body)
	require.Contains(t, w.page("/", http.StatusOK), `href="/token?next=%2f"`)

	status, body, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open barley"}})
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "That is not the token")
	for next, want := range map[string]string{"/entries?q=x": "/entries?q=x", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/"} {
		status, _, header := w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {next}})
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, want, header.Get("Location"))
		require.Contains(t, header.Get("Set-Cookie"), "HttpOnly; SameSite=Strict")
		require.NotContains(t, header.Get("Set-Cookie"), "sesame")
	}
	w.add("/news.rss")
	require.NotContains(t, w.page("/", http.StatusOK), "/token?")

	for bearer, want := range map[string]int{"open sesame": http.StatusSeeOther, "open barley": http.StatusUnauthorized} {
		r := httptestRequest(t.Context(), http.MethodPost, "/feeds/"+republish.Name(w.feedURL("/news.rss"))+"/poll", nil)
		r.Header.Set("Authorization", "bEARER "+bearer)
		status, _, _ := answer(t, w.Server, r)
		require.Equal(t, want, status)
	}
	w.settle(w.feedURL("/news.rss"), 1)
}

// The rules of the Client apply to typed addresses.
func TestRulesStayInForce(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Mirror = &mirror.Mirror{Store: s.Store, Client: &feedhistory.Client{}} })
	require.Contains(t, w.page(w.add("/news.rss"), http.StatusOK), "private or special-purpose address")
}

func TestProgress(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2008)
	w.gate.hold()
	feed := w.feedURL("/blog/feed.atom")
	_, _, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {feed}})
	page := w.page(header.Get("Location"), http.StatusOK)
	require.Contains(t, page, "Reading this feed for the first time")
	require.Contains(t, page, `<noscript><meta http-equiv="refresh" content="2"></noscript>`)
	require.Contains(t, w.page("/", http.StatusOK), "first reading")
	told, free := map[string]bool{}, false
	require.Eventually(t, func() bool {
		_, text, watched := strings.Cut(w.page("/feeds/"+republish.Name(feed), http.StatusOK), "data-progress-text>")
		text, _, _ = strings.Cut(text, "</p>")
		if !free {
			w.gate.let()
		}
		if told[text] = true; strings.Contains(text, "documents, ") && !free {
			free = true
			w.gate.free()
		}
		return !watched
	}, patience, 10*time.Millisecond)
	require.Contains(t, told, "Asking for the feed …")
	require.True(t, free, told)
	require.NotContains(t, w.page("/feeds/"+republish.Name(feed), http.StatusOK), "http-equiv")
}

// A brokenStore can read feeds, and fails otherwise.
type brokenStore struct{ mirror.Store }

var errBroken = errors.New("the disk is on fire")

func (brokenStore) Entries(context.Context, mirror.Query) iter.Seq2[*mirror.Record, error] {
	return func(yield func(*mirror.Record, error) bool) { yield(nil, errBroken) }
}

func (brokenStore) Documents(context.Context, string) iter.Seq2[*mirror.DocumentRecord, error] {
	return func(yield func(*mirror.DocumentRecord, error) bool) { yield(nil, errBroken) }
}

func TestStoreFails(t *testing.T) {
	w := newWorld(t, nil)
	w.add("/tides.atom")
	var log bytes.Buffer
	broken := &Server{Store: brokenStore{w.Store}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	name := republish.Name(w.feedURL("/tides.atom"))
	for _, path := range []string{"/", "/entries", "/feeds/" + name, "/feeds/" + name + "/entry?id=urn:tides:2", "/feeds/" + name + "/index.atom"} {
		status, body, _ := answer(t, broken, httptestRequest(t.Context(), http.MethodGet, path, nil))
		require.Equal(t, http.StatusInternalServerError, status, path)
		require.Contains(t, body, "Something went wrong here")
		require.NotContains(t, body, "fire")
		requireSound(t, body)
	}
	require.Contains(t, log.String(), "the disk is on fire")
}

func TestHostile(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/hostile.atom")
	for _, path := range []string{page, "/", "/entries", page + "/entry?id=" + url.QueryEscape(`"><script>harmed=1</script>`), page + "/entry?id=urn:hostile:2"} {
		body := w.page(path, http.StatusOK)
		require.NotContains(t, body, "<script>")
		require.NotContains(t, strings.ToLower(body), "<svg onload")
		require.NotContains(t, body, "<form action=\"/feeds\"", "the entry's own")
	}
}

func TestSanitise(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`<p onclick="x">a<script>x</script></p>`:       `<p>a</p>`,
		`<a href="/100%#5%">c</a>`:                     `<a href="https://example.org/100%25#5%25" rel="nofollow noreferrer">c</a>`,
		`<a href="#x">c</a>`:                           `<a href="https://example.org/a/#x" rel="nofollow noreferrer">c</a>`,
		`<a href="/b%2Fc%20d">c</a>`:                   `<a href="https://example.org/b%2Fc%20d" rel="nofollow noreferrer">c</a>`,
		`<a href="/b">c</a>`:                           `<a href="https://example.org/b" rel="nofollow noreferrer">c</a>`,
		`<img src="i.png">`:                            `<a href="https://example.org/a/i.png" rel="nofollow noreferrer">[Image]</a>`,
		`<a href="x"><img src="i.png" alt="I"></a>`:    `<a href="https://example.org/a/x" rel="nofollow noreferrer"><span>[Image: I]</span></a>`,
		`<iframe src="https://v.example/1"></iframe>`:  `<a href="https://v.example/1" rel="nofollow noreferrer">[Embedded page of v.example]</a>`,
		`<video><source src="v.mp4">No video.</video>`: `<a href="https://example.org/a/v.mp4" rel="nofollow noreferrer">No video.</a>`,
		`<ol start="3"><li>c</ol>`:                     `<ol start="3"><li>c</li></ol>`,
		`<video src="/v/tide.mp4"></video>`:            `<a href="https://example.org/v/tide.mp4" rel="nofollow noreferrer">[Video: tide.mp4]</a>`,
		`<video><source src="v.mp4"></video>`:          `<a href="https://example.org/a/v.mp4" rel="nofollow noreferrer">[Video: v.mp4]</a>`,
	} {
		got := sanitise(feedhistory.Text{Type: "html", Body: in, Base: "https://example.org/a/"}, display{})
		require.Equal(t, want, string(got), in)
	}
	pictures := newPictureProxy(nil, "/", time.Now)
	pictures.sizes.Put("https://example.org/known.png", image.Pt(640, 480))
	for in, want := range map[string]string{
		// footnotes and contents lead to places in the text, others to the entry's page
		`<sup id="r1"><a href="#fn:1">1</a></sup><p id="fn:1"><a href="/p#r1">back</a></p>`: `<sup id="t-r1"><a href="#t-fn:1" rel="nofollow noreferrer">1</a></sup><p id="t-fn:1"><a href="#t-r1" rel="nofollow noreferrer">back</a></p>`,
		`<a name="top"></a><a href="https://example.org/feed.xml#top">up</a>`:               `<a id="t-top"></a><a href="#t-top" rel="nofollow noreferrer">up</a>`,
		`<a href="#gone">c</a>`:                                `<a href="https://example.org/p#gone" rel="nofollow noreferrer">c</a>`,
		`<p id="a"></p><p id="a"></p><a href="/other#a">c</a>`: `<p id="t-a"></p><p></p><a href="https://example.org/other#a" rel="nofollow noreferrer">c</a>`,
		// pictures a script would show
		`<img src="data:image/gif;base64,R0" data-src="i.png" width="40px" height="30" alt="I">`:             `<img src="https://example.org/i.png" alt="I" title="" loading="lazy" width="40" height="30">`,
		`<img src="known.png" width="100%"> <img src="e.png" alt="🐟">`:                                       `<img src="https://example.org/known.png" alt="" title="" loading="lazy" width="640" height="480"> 🐟`,
		`<img data-lazy-src="i.png"><noscript><img src="i.png" alt="I"></noscript>`:                          `<img src="https://example.org/i.png" alt="" title="" loading="lazy">`,
		`<img src=""><noscript><img src="i.png" alt="I"></noscript>`:                                         `<img src="https://example.org/i.png" alt="I" title="" loading="lazy">`,
		`<img src="a.png"><noscript><img src="b.png"></noscript>`:                                            `<img src="https://example.org/a.png" alt="" title="" loading="lazy"><img src="https://example.org/b.png" alt="" title="" loading="lazy">`,
		`<img srcset="s.png 300w, l.png 1500w, x.png 3000w">`:                                                `<img src="https://example.org/l.png" alt="" title="" loading="lazy">`,
		`<picture><source srcset="w.webp" type="image/webp"><img src="i.png" alt="I"></picture>`:             `<img src="https://example.org/i.png" alt="I" title="" loading="lazy">`,
		`<picture><source srcset="i.jpg" type="image/jpeg"><img alt="I"></picture>`:                          `<img src="https://example.org/i.jpg" alt="I" title="" loading="lazy">`,
		`<math display="block"><mfrac><mi>∂h</mi><mi>∂t</mi></mfrac><annotation>x</annotation></math>`:       `<math display="block"><mfrac><mi>∂h</mi><mi>∂t</mi></mfrac></math>`,
		`<svg viewBox="0 0 9 9"><title>A tide</title><path d="M0 0L9 9" stroke="#00f" onclick="a()"/></svg>`: `<svg viewbox="0 0 9 9" role="img" aria-label="A tide"><path d="M0 0L9 9" stroke="#00f"></path></svg>`,
		`<svg><title>A tide</title><use href="#x"/></svg>`:                                                   `<span>[A tide]</span>`,
		`<table><tr><td style="color:red; text-align:right">1</td><td align="center">2</td></tr></table>`:    `<table><tbody><tr><td class="to-right">1</td><td class="to-center">2</td></tr></tbody></table>`,
		`<pre class="x">a</pre>`: `<pre tabindex="0">a</pre>`,
	} {
		got := sanitise(feedhistory.Text{Type: "html", Body: in, Base: "https://example.org/feed.xml"}, display{pictures: pictures, page: "https://example.org/p"})
		require.Equal(t, want, originals(t, string(got)), in)
	}
	got := sanitise(feedhistory.Text{Type: "text", Body: "<b>\n&"}, display{})
	require.Equal(t, "<pre>&lt;b&gt;\n&amp;</pre>", string(got))
	short, isCut := cut(feedhistory.Text{Type: "html", Body: strings.Repeat("<p>x", mostShown)}, mostShown)
	require.True(t, isCut)
	require.Len(t, short.Body, mostShown)
	nested := 5_000
	if feedtest.LongRun() {
		nested = 100_000
	}
	got = sanitise(feedhistory.Text{Type: "html", Body: strings.Repeat("<div>", nested) + "x"}, display{})
	require.NotContains(t, string(got), "<div><div><div><div>"+strings.Repeat("<div>", 1000))
	got = sanitise(feedhistory.Text{Type: "image/png", Body: "\x89PNG"}, display{})
	require.Empty(t, got)
}

// ofPicture matches the place of a picture on this server.
var ofPicture = regexp.MustCompile(`/pictures/[\w-]{22}\?of=([^"]+)`)

// originals replaces the places of pictures on this server by their addresses.
func originals(t *testing.T, text string) string {
	return ofPicture.ReplaceAllStringFunc(text, func(place string) string {
		address, err := url.QueryUnescape(ofPicture.FindStringSubmatch(place)[1])
		require.NoError(t, err)
		return address
	})
}

// Feeds that are due are polled without a request, those of one host one at a
// time.
func TestDue(t *testing.T) {
	w := newWorld(t, nil)
	store := mirror.NewMemory()
	for _, path := range []string{"/news.rss", "/tides.atom"} {
		feed := &mirror.Feed{URL: w.feedURL(path), Verdict: feedhistory.VerdictPartial}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	}
	later := &world{t: t, Server: &Server{Store: store, Mirror: &mirror.Mirror{Store: store, Client: w.Mirror.Client}, Logger: w.Logger}}
	later.once.Do(later.setUp)
	waiting, err := later.polls.AddAll(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 2, waiting)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- later.Run(ctx) }()
	first := later.settle(w.feedURL("/news.rss"), 0)
	second := later.settle(w.feedURL("/tides.atom"), 0)
	cancel()
	require.NoError(t, <-ended)
	require.NotEqual(t, first.Polled, second.Polled)
}

// Everything that the server makes is compressed and has an ETag, and is not
// sent again to clients that have it.
func TestDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2010)
	page := w.add("/blog/feed.atom")
	for _, path := range []string{"/", "/entries", page, page + "?q=fog", page + "/remove", page + "/complete.atom", page + "/index.atom",
		"/" + assets().path("style.css"), "/" + assets().path("app.js"), w.add("/tides.atom") + "/complete.atom"} {
		ask := func(method string, header ...string) *httptest.ResponseRecorder {
			r := httptestRequest(t.Context(), method, path, nil)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			rec := httptest.NewRecorder()
			w.Server.ServeHTTP(rec, r)
			return rec
		}
		plain := ask(http.MethodGet)
		require.Equal(t, http.StatusOK, plain.Code, path)
		require.Empty(t, plain.Header().Get("Content-Encoding"))
		tag := plain.Header().Get("Etag")
		require.NotEmpty(t, tag, path)
		zipped := ask(http.MethodGet, "Accept-Encoding", "br, gzip;q=0.8")
		require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"), path)
		require.Contains(t, strings.Join(zipped.Header()["Vary"], ","), "Accept-Encoding", path)
		require.NotEqual(t, tag, zipped.Header().Get("Etag"), path)
		require.Less(t, zipped.Body.Len(), plain.Body.Len(), path)
		z, err := gzip.NewReader(zipped.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, plain.Body.String(), string(text), path)
		for _, coding := range []string{"", "identity", "gzip;q=0", "br"} {
			require.Empty(t, ask(http.MethodGet, "Accept-Encoding", coding).Header().Get("Content-Encoding"), coding)
		}

		again := ask(http.MethodGet, "If-None-Match", `"x", W/`+tag)
		require.Equal(t, http.StatusNotModified, again.Code, path)
		require.Zero(t, again.Body.Len())
		require.Empty(t, again.Header().Get("Content-Type"))
		require.Equal(t, tag, again.Header().Get("Etag"))
		require.Equal(t, http.StatusNotModified, ask(http.MethodGet, "Accept-Encoding", "gzip", "If-None-Match", zipped.Header().Get("Etag")).Code, path)

		head := ask(http.MethodHead)
		require.Equal(t, http.StatusOK, head.Code, path)
		require.Zero(t, head.Body.Len())
		require.Equal(t, tag, head.Header().Get("Etag"))
		require.Equal(t, strconv.Itoa(plain.Body.Len()), head.Header().Get("Content-Length"), path)
	}
	_, body, header := w.get("/nothing")
	require.Empty(t, header.Get("Etag"))
	require.NotEmpty(t, body)
}

// A HEAD of a large document, and the question whether it has changed, read no
// entry; nor does a page that is not requested.
func TestDeliverHead(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	_, _, header := w.get(page + "/complete.atom")
	s := &Server{Store: brokenStore{w.Store}, Base: w.Base}
	status, _, head := answer(t, s, httptestRequest(t.Context(), http.MethodHead, page+"/complete.atom", nil))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, strings.TrimSuffix(header.Get("Etag"), `-gzip"`), strings.TrimSuffix(head.Get("Etag"), `"`))
	r := httptestRequest(t.Context(), http.MethodGet, page+"/complete.atom", nil)
	r.Header.Set("If-None-Match", head.Get("Etag"))
	status, _, _ = answer(t, s, r)
	require.Equal(t, http.StatusNotModified, status)
}

// The index.atom of a large feed is there as soon as the feed has been read; that of a
// small one, when it has changed after the first request.
func TestPrepared(t *testing.T) {
	out := &publish.MemoryOutput{}
	w := newWorld(t, func(s *Server) { s.Output = out })
	var entries []*feedhistory.Entry
	for n := range largeFeed {
		entries = append(entries, blogEntry(t, 2003+n/120, n%12+1, n/12%10+1, ""))
	}
	require.NoError(t, w.blog.Append(t.Context(), entries...))
	has := func(feed, text string) func() bool {
		return func() bool {
			found := false
			_ = fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == "index.atom" {
					data, _ := fs.ReadFile(out, name)
					doc, err := feedhistory.Parse(bytes.NewReader(data), "")
					found = found || err == nil && strings.Contains(name, republish.Name(feed)) && strings.Contains(string(data), text) && len(doc.Entries) > 0
				}
				return nil
			})
			return found
		}
	}
	w.add("/blog/feed.atom")
	require.Eventually(t, has(w.feedURL("/blog/feed.atom"), "<entry"), patience, 10*time.Millisecond, "published without a request")
	tides := w.add("/tides.atom")
	w.get(tides + "/index.atom")
	require.True(t, has(w.feedURL("/tides.atom"), "<entry")())
	require.NoError(t, w.blog.Append(t.Context(), blogEntry(t, 2050, 1, 1, " at last")))
	w.poll(w.feedURL("/blog/feed.atom"))
	require.Eventually(t, has(w.feedURL("/blog/feed.atom"), " at last"), patience, 10*time.Millisecond, "up to date without a request")
}

// Both documents of a large feed are also there if another program, such as a fleet's worker,
// has polled it.
func TestPreparedForOthers(t *testing.T) {
	out := &publish.MemoryOutput{}
	w := newWorld(t, func(s *Server) { s.Output, s.again = out, time.Millisecond })
	var entries []*feedhistory.Entry
	for n := range largeFeed {
		entries = append(entries, blogEntry(t, 2003+n/120, n%12+1, n/12%10+1, ""))
	}
	require.NoError(t, w.blog.Append(t.Context(), entries...))
	feed := w.feedURL("/blog/feed.atom")
	other := &mirror.Mirror{Store: w.Store, Client: reader()}
	_, err := other.Update(t.Context(), feed)
	require.NoError(t, err)
	for _, file := range []string{"index.atom", "index.rss"} {
		require.Eventually(t, func() bool {
			found, err := fs.Glob(out, "*/"+republish.Name(feed)+"/"+file)
			return err == nil && len(found) == 1
		}, patience, 10*time.Millisecond, file)
	}
}

// reader returns another instance of the library.
func reader() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true}
}

// mirrored returns the ids of the entries the mirror has of a feed.
func (w *world) mirrored(feed string) (ids []string) {
	for r, err := range w.Store.Entries(w.t.Context(), mirror.Query{Feed: feed}) {
		require.NoError(w.t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// checked requires that the checks find nothing in a chain, with one exception:
// an entry must keep its identity, even if its RSS guid is not a valid Atom id
// (RFC 4287 §4.2.6).
func (w *world) checked(path string) {
	w.t.Helper()
	var chain check.Chain
	for finding, err := range chain.Check(w.t.Context(), reader(), strings.TrimSuffix(w.url, "/")+path) {
		require.NoError(w.t, err)
		if finding.Level != check.Note && (finding.Code != "not-absolute-iri" || !strings.Contains(finding.Message, "harbour-") && !strings.Contains(finding.Message, "pod-")) {
			w.t.Errorf("%s: %v", path, finding)
		}
	}
}

// requireWellFormed checks a document with a different parser.
func requireWellFormed(t require.TestingT, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

// two addresses whose names began with the same 48 bits when names were shorter
const (
	oneURL   = "https://c.example/8979788"
	otherURL = "https://c.example/32758410"
)

// A feed's page moves from its old name to its name. A feed that would take the
// name of another is refused.
func TestNames(t *testing.T) {
	store := mirror.NewMemory()
	feed := &mirror.Feed{
		URL: oneURL, Title: "Feed " + path.Base(oneURL), Kind: feedhistory.KindPlain, Ledger: readAt(oneURL),
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>` + oneURL + `</id><title>Feed</title><updated>2026-01-01T00:00:00Z</updated></feed>`,
	}
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	s := &Server{Store: store}
	old := republish.Name(oneURL)[:12]
	for asked, want := range map[string]string{
		"?q=a+b": "?q=a+b", "/entry?id=x%26y": "/entry?id=x%26y", "/complete.atom": "/complete.atom",
	} {
		status, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, "/feeds/"+old+asked, nil))
		require.Equal(t, http.StatusPermanentRedirect, status)
		require.Equal(t, "/feeds/"+republish.Name(oneURL)+want, header.Get("Location"))
	}
	form := strings.NewReader(url.Values{"url": {otherURL}}.Encode())
	r := httptestRequest(t.Context(), http.MethodPost, "/feeds", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, _ := answer(t, s, r)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "Another feed has this feed’s name")
	_, err := store.Feed(t.Context(), otherURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)
}

func openSQLite(t testing.TB, file string) *sqlstore.Store {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	return store
}

// The same over SQLite.
func TestSQLite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *Server) {
		s.Store = openSQLite(t, filepath.Join(t.TempDir(), "feeds.db"))
		s.Mirror = &mirror.Mirror{Store: s.Store, Client: s.Mirror.Client}
	})
	w.write(2003, 2007)
	blog, news, tides := w.add("/blog/feed.atom"), w.add("/news.rss"), w.add("/tides.atom")
	for _, path := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom"} {
		w.poll(w.feedURL(path))
		for _, document := range []string{"/index.atom", "/index.rss", "/complete.atom"} {
			document = "feeds/" + republish.Name(w.feedURL(path)) + document
			h, err := reader().Fetch(t.Context(), w.url+document)
			require.NoError(t, err)
			require.Len(t, h.Gaps, len(h.Head.Declared()), "nothing is missing but the declared gaps")
			require.Len(t, h.Entries, len(w.mirrored(w.feedURL(path))), document)
			w.checked("/" + document)
		}
	}
	require.Contains(t, w.page("/", http.StatusOK), "Jan 2003")
	require.Contains(t, w.page(blog+"?q=STORM+petrels", http.StatusOK), "<mark>Storm</mark>")
	require.Contains(t, w.page(blog+"?q=%2B%2B", http.StatusOK), "There is no word to search for")
	require.Contains(t, w.page(news+"/entry?id=harbour-3", http.StatusOK), "Earlier versions")
	require.Contains(t, w.page(tides+"/entry?id=urn:tides:1", http.StatusOK), "This entry is no longer in the feed")
	for _, id := range w.mirrored(w.feedURL("/blog/feed.atom")) {
		w.page(blog+"/entry?id="+url.QueryEscape(id), http.StatusOK)
	}
	f, err := w.Store.Feed(t.Context(), w.feedURL("/blog/feed.atom"))
	require.NoError(t, err)
	counted, err := mirror.Months(t.Context(), w.Store, mirror.Query{Feed: f.URL})
	require.NoError(t, err)
	walked, err := mirror.Months(t.Context(), struct{ mirror.Store }{w.Store}, mirror.Query{Feed: f.URL})
	require.NoError(t, err)
	require.Equal(t, walked, counted)
	for _, q := range []mirror.Query{{Search: "storm pet", Prefix: true}, {Search: "fog"}, {States: mirror.Former}, {Search: "zebra"}} {
		q.Feed = f.URL
		counted, err := mirror.Months(t.Context(), w.Store, q)
		require.NoError(t, err)
		walked, err := mirror.Months(t.Context(), struct{ mirror.Store }{w.Store}, q)
		require.NoError(t, err)
		require.Equal(t, walked, counted)
		require.Equal(t, q.Search == "fog" || q.Prefix, len(counted) > 0)
	}
	require.Equal(t, feedhistory.VerdictWhole, f.Verdict)
}
