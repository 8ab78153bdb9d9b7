package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of an address without a scheme, the error is that of the scheme whose server answered;
// without an answer, it names no address of this machine.
func TestErrorOfTheRightScheme(t *testing.T) {
	w := newWorld(t, nil)
	host := strings.TrimPrefix(w.site.URL, "http://")
	for typed, want := range map[string]string{
		host + "/nowhere.atom":      "There is nothing at this address: the answer was 404",
		"127.0.0.1:1/feed.atom":     "The address cannot be read now: connection refused",
		"http://127.0.0.1:1/f.atom": "The address cannot be read now: connection refused",
	} {
		status, body, _ := w.post(url.Values{"url": {typed}})
		require.NotEqual(t, http.StatusInternalServerError, status)
		require.Contains(t, body, want)
		require.NotContains(t, body, "dial tcp")
	}
}

// A feed whose first poll fails after the page has been shown is not kept, either, and its page
// says why.
func TestAddLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *Server) { s.Hints = Hints{DB: "--db 'my feeds.db'"} })
	for path, why := range map[string]string{"/nothing.atom": "There is nothing at this address", "/page.html": "There is no feed at this address", "/locked": "Add it with feedhistory sync --user NAME --db &#39;my feeds.db&#39;, and start the server with --private."} {
		w.gate.hold()
		status, body, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL(path)}})
		require.Equal(t, http.StatusSeeOther, status, body)
		page := header.Get("Location")
		require.Contains(t, w.page(page, http.StatusOK), "Reading this feed for the first time")
		w.gate.free()
		require.Eventually(t, func() bool {
			status, body, _ := w.get(page)
			return status == http.StatusNotFound && strings.Contains(body, why)
		}, patience, 5*time.Millisecond)
		require.Empty(t, w.feeds())
	}
	w.gate.hold() // a page with feeds stays until one is chosen
	_, _, header := w.do(http.MethodPost, "/feeds", url.Values{"url": {w.feedURL("/blog.html")}})
	w.gate.free()
	require.Eventually(t, func() bool {
		_, body, _ := w.get(header.Get("Location"))
		return strings.Contains(body, "This is a page with 2 feeds")
	}, patience, 5*time.Millisecond)
	w.add("/news.rss")
	require.Contains(t, w.page("/feeds/"+w.nameOf("/news.rss"), http.StatusOK), "feedhistory sync --db &#39;my feeds.db&#39; --backfill ")
}
