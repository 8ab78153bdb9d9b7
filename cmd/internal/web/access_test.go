package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// Guesses of the token are slowed; whoever has logged in is not disturbed, and can
// log out.
func TestGuesses(t *testing.T) {
	now := time.Now()
	w := newWorld(t, func(s *Server) { s.Token, s.clock = "open sesame", func() time.Time { return now } })
	login := func(token string) (int, http.Header) {
		status, _, header := w.do(http.MethodPost, "/token", url.Values{"token": {token}})
		return status, header
	}
	status, header := login("open sesame")
	require.Equal(t, http.StatusSeeOther, status)
	require.NotEmpty(t, header.Get("Set-Cookie"))
	for range mostGuesses {
		status, _ = login("open barley")
		require.Equal(t, http.StatusForbidden, status)
	}
	status, _ = login("open sesame")
	require.Equal(t, http.StatusTooManyRequests, status, "nobody learns whether it was right")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"feeds", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer open sesame")
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	require.Contains(t, w.page("/", http.StatusOK), "Log out", "the cookie still counts")

	status, _, header = w.do(http.MethodPost, "/token/forget", url.Values{})
	require.Equal(t, http.StatusSeeOther, status)
	require.Contains(t, header.Get("Set-Cookie"), "Max-Age=0")
	require.NotContains(t, w.page("/", http.StatusOK), "Log out")
	now = now.Add(guessTime)
	status, _ = login("open sesame")
	require.Equal(t, http.StatusSeeOther, status)
}

// A server below a path: pages, forms, redirects, cookies and documents stay there,
// whether a proxy leaves the path in requests or removes it.
func TestPath(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2012)
	feed := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	for _, root := range []string{"/feeds/", "/a/b/"} {
		s := &Server{Store: w.Store, Base: "https://h.example" + root, Token: "open sesame", Names: []string{"127.0.0.1"}}
		for _, prefix := range []string{root, "/"} {
			for _, page := range []string{"", "entries", "overview", feed, feed + "/subscribe", feed + "/day", feed + "/remove", "token", "?q=zzz"} {
				status, body, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+page, nil))
				require.Less(t, status, 400, "%s: %s", page, body)
				require.NotEmpty(t, header.Get("Etag"))
				for _, part := range []string{`href="`, `action="`, `src="`, `data-progress="`, `data-entry="`} {
					for _, link := range strings.Split(body, part)[1:] {
						link, _, _ = strings.Cut(link, `"`)
						if strings.HasPrefix(link, "/") {
							require.True(t, strings.HasPrefix(link, root), "%s in %s", link, page)
						}
					}
				}
			}
			_, style, _ := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+assets.path("style.css"), nil))
			require.Contains(t, style, "color-scheme")
			_, index, _ := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+feed+"/index.atom", nil))
			require.Contains(t, index, `rel="self" href="https://h.example`+root+feed+`/index.atom"`)
			_, opml, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+"feeds.opml?feed=complete", nil))
			require.Contains(t, opml, `xmlUrl="https://h.example`+root+feed+`/complete.atom"`)
			require.NotEmpty(t, header.Get("Etag"))
			for page, want := range map[string]string{feed + "/": feed, feed + "/random": feed + "/entry?id="} {
				_, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, prefix+page, nil))
				require.True(t, strings.HasPrefix(header.Get("Location"), root+want), header.Get("Location"))
			}
			r := httptestRequest(t.Context(), http.MethodPost, prefix+"token", strings.NewReader("token=open+sesame&next="+root+"entries"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			_, _, header = answer(t, s, r)
			require.Equal(t, root+"entries", header.Get("Location"))
			require.Contains(t, header.Get("Set-Cookie"), "Path="+root+";")
		}
	}
}

// Whoever adds the address of a private feed to a public server gets the same
// answer as for any feed that needs a login.
func TestAddPrivate(t *testing.T) {
	w := newWorld(t, nil)
	feed := mirror.NewFeed(w.feedURL("/secret"))
	feed.Private = true
	require.NoError(t, w.Store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	for _, path := range []string{"/secret", "/locked"} {
		status, body, _ := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL(path)}})
		require.Equal(t, http.StatusUnprocessableEntity, status, path)
		require.Contains(t, body, "This feed needs a login")
		w.page("/feeds/"+republish.Name(w.feedURL(path)), http.StatusNotFound)
	}
}
