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
