package web

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
)

var asks atomic.Int32

// ask returns what the server answers to a request that shows something.
func (w *world) ask(path string, show func(*http.Request)) (status int, body string, header http.Header) {
	r := httptestRequest(w.t.Context(), http.MethodGet, path, nil)
	asks.Add(1)
	r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", asks.Load()/250%250, asks.Load()%250) // nobody guesses too often
	if show != nil {
		show(r)
	}
	return answer(w.t, w.Server, r)
}

// On a Private server nobody reads anything who does not show the token, and no
// shared cache keeps what the others read.
func TestPrivate(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	w.write(2003, 2008)
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	basic := func(password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth("ann", password) }
	}
	status, _, header := w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	require.Equal(t, http.StatusSeeOther, status)
	cookie := strings.Split(header.Get("Set-Cookie"), ";")[0]
	feed := w.add("/blog/feed.atom")
	_, index, _ := w.ask(feed+"/index.atom", basic("open sesame"))
	_, archive, ok := strings.Cut(index, `rel="prev-archive" href="`)
	require.True(t, ok, index)
	archive, _, _ = strings.Cut(archive, `"`)
	archive = "/" + strings.TrimPrefix(archive, w.url)
	_, page, _ := w.ask(feed, bearer("open sesame"))
	_, entry, ok := strings.Cut(page, `/entry?id=`)
	require.True(t, ok)
	entry, _, _ = strings.Cut(entry, `"`)

	for _, path := range []string{
		"/", "/entries", "/overview", "/feeds.opml", "/feeds.opml?mirrored", feed, feed + "/entry?id=" + entry, feed + "/random", feed + "/day",
		feed + "/progress?now", feed + "/remove", feed + "/index.atom", feed + "/index.rss", archive, feed + "/complete.atom",
		feed + "/slice.atom", feed + "/slice.rss", feed + "/subscribe", feed + "/replay.atom?start=2020-01-01&every=1d",
	} {
		for name, show := range map[string]func(*http.Request){
			"nothing": nil, "another bearer": bearer("open barley"), "no bearer": bearer(""), "another password": basic("open barley"),
			"no password": basic(""), "another cookie": func(r *http.Request) { r.Header.Set("Cookie", cookieName+"=00") },
			"a user": func(r *http.Request) { r.SetBasicAuth("open sesame", "") },
		} {
			status, body, header := w.ask(path, show)
			require.Equal(t, http.StatusUnauthorized, status, "%s with %s", path, name)
			require.Contains(t, body, "To read or change anything here, you need the token")
			require.NotContains(t, body, "Lighthouse Log", path)
			require.NotContains(t, body, "Wind from", path)
			require.NotContains(t, header.Get("Cache-Control"), "public")
			require.Equal(t, strings.Contains(path, ".atom") || strings.Contains(path, ".rss") || strings.Contains(path, ".opml"),
				strings.Contains(strings.Join(header["Www-Authenticate"], ","), "Basic realm="), path)
		}
		for _, show := range []func(*http.Request){
			bearer("open sesame"), basic("open sesame"), func(r *http.Request) { r.Header.Set("Cookie", cookie) },
		} {
			status, body, header := w.ask(path, show)
			require.NotEqual(t, http.StatusUnauthorized, status, path)
			require.Less(t, status, 400, "%s: %s", path, body)
			require.Contains(t, header.Get("Cache-Control"), "private", path)
			require.NotContains(t, header.Get("Cache-Control"), "public", path)
			require.Contains(t, strings.Join(header["Vary"], ","), "Authorization, Cookie", path)
		}
	}
	_, body, _ := w.ask(feed+"/subscribe", bearer("open sesame"))
	require.Contains(t, body, "the server's token as the password")
	require.NotContains(t, body, "feedly.com")
	status, _, header = w.ask("/"+assets.path("style.css"), nil)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, header.Get("Cache-Control"), "public")
	status, _, _ = w.ask("/token", nil)
	require.Equal(t, http.StatusOK, status)
	status, _, _ = w.ask(feed+"/nothing", nil)
	require.Equal(t, http.StatusUnauthorized, status, "whether there is such a page is not told")
}

// Events still flow, as they come.
func TestPrivateProgress(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	feed := w.add("/news.rss")
	status, events, header := w.get(feed + "/progress")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "private, no-store", header.Get("Cache-Control"))
	require.Contains(t, events, `"done":true`)
}

// A Private server without a token answers nobody.
func TestPrivateWithoutToken(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.Private = true })
	for _, show := range []func(*http.Request){
		nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, func(r *http.Request) { r.SetBasicAuth("", "") },
		func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: w.Server.gate.proof("")}) },
	} {
		status, _, _ := w.ask("/", show)
		require.Equal(t, http.StatusUnauthorized, status)
		r := httptestRequest(t.Context(), http.MethodPost, "/feeds", nil)
		if show != nil {
			show(r)
		}
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		require.Equal(t, http.StatusUnauthorized, rec.Code)
	}
}

// hide makes a feed private, as a poll with credentials does.
func (w *world) hide(feed string) {
	f, err := w.Store.Feed(w.t.Context(), feed)
	require.NoError(w.t, err)
	f.Private, f.Next = true, time.Unix(0, 0)
	require.NoError(w.t, w.Store.Commit(w.t.Context(), &mirror.Commit{Feed: f}))
}

// filesOf returns the names of the documents in an Output.
func filesOf(t testing.TB, out fs.FS) (names []string) {
	require.NoError(t, fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// A server that everybody can read neither shows nor publishes nor polls private
// feeds, whatever was published of them before, and a Private one keeps what it
// publishes of them apart.
func TestPrivateFeeds(t *testing.T) {
	shared, apart := publish.Dir{Path: t.TempDir()}, publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Server) {
		s.Token, s.Private, s.Output, s.PrivateOutput = "open sesame", true, shared, apart
	})
	w.write(2003, 2008)
	_, _, _ = w.do(http.MethodPost, "/token", url.Values{"token": {"open sesame"}, "next": {"/"}})
	tides, blog := w.add("/tides.atom"), w.add("/blog/feed.atom")
	archive := func(format string) string {
		status, index, _ := w.get(blog + "/index." + format)
		require.Equal(t, http.StatusOK, status)
		_, link, ok := strings.Cut(index, `rel="prev-archive" href="`)
		require.True(t, ok, index)
		link, _, _ = strings.Cut(link, `"`)
		return "/" + strings.TrimPrefix(link, w.url)
	}
	before := archive("rss") // while it is public
	w.hide(w.feedURL("/blog/feed.atom"))
	after := archive("atom")
	_, _, _ = w.get(tides + "/index.atom")
	for _, name := range filesOf(t, apart) {
		require.Contains(t, name, republish.Name(w.feedURL("/blog/feed.atom")))
	}
	require.NotEmpty(t, filesOf(t, apart))
	require.Contains(t, strings.Join(filesOf(t, apart), " "), path.Base(after))
	require.Contains(t, strings.Join(filesOf(t, shared), " "), path.Base(before))
	require.NotContains(t, strings.Join(filesOf(t, shared), " "), path.Base(after))

	open := &Server{Store: w.Store, Base: w.Base, Output: shared, PrivateOutput: apart, clock: w.clock}
	for _, page := range []string{"/", "/?show=whole", "/entries", "/entries?q=storm", "/overview", "/feeds.opml", "/feeds.opml?mirrored", tides} {
		status, body, _ := answer(t, open, httptestRequest(t.Context(), http.MethodGet, page, nil))
		require.Equal(t, http.StatusOK, status, page)
		require.NotContains(t, body, "Lighthouse Log", page)
		require.NotContains(t, body, "/blog/", page)
		require.NotContains(t, body, "barque", page)
	}
	for _, page := range []string{
		blog, blog + "/index.atom", blog + "/index.rss", before, after, blog + "/complete.atom", blog + "/slice.atom", blog + "/replay.atom?start=2020-01-01&every=1d",
		blog + "/subscribe", blog + "/random", blog + "/day", blog + "/progress", blog + "/remove", blog + "/entry?id=tag:lighthouse.example,2003:1/1",
	} {
		status, body, _ := answer(t, open, httptestRequest(t.Context(), http.MethodGet, page, nil))
		require.Equal(t, http.StatusNotFound, status, page)
		require.NotContains(t, body, "barque", page)
	}
	var polled []string
	_, err := open.polls.AddAll(t.Context(), func(f *mirror.Feed, _ bool) bool {
		polled = append(polled, f.URL)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, []string{w.feedURL("/tides.atom")}, polled)

	status, _, _ := w.do(http.MethodPost, blog+"/remove", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Empty(t, filesOf(t, apart))
	require.NotContains(t, strings.Join(filesOf(t, shared), " "), strings.TrimPrefix(blog, "/feeds/"))
	require.NotEmpty(t, filesOf(t, shared))
}
