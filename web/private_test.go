package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask returns what the server answers to a request that shows something.
func (w *world) ask(path string, show func(*http.Request)) (status int, body string, header http.Header) {
	r := httptestRequest(w.t.Context(), http.MethodGet, path, nil)
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
	status, _, header = w.ask(assets.path("style.css"), nil)
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
		func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: w.proof("")}) },
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
