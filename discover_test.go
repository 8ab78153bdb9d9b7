package feedhistory

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

const discoverSite = `
-- /page --
Content-Type: text/html

<!doctype html><link rel=alternate type=application/rss+xml href=/feed.rss><link rel=alternate type=application/atom+xml href=/feed.atom title=News>
-- /sloppy --
Content-Type: text/html

<title>x</title><p>no root, &nbsp; <br><link rel=alternate type=application/atom+xml href=f>
-- /xhtml --
Content-Type: application/xhtml+xml

<html xmlns="http://www.w3.org/1999/xhtml"><head><base href="/dir/"/><link rel="alternate" type="application/atom+xml" href="f"/></head></html>
-- /mislabelled --
Content-Type: text/html

<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>Feed</title><entry><id>urn:1</id></entry></feed>
-- /sub/bare.html --
Content-Type: text/html

<html><body>nothing</body></html>
-- /feed.xml --
Content-Type: text/html

<html>not here
-- /atom.xml --
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>Known</title></feed>
-- /data.xml --
<opml/>
-- /data.json --
{}
`

func TestDiscover(t *testing.T) {
	site := feedtest.Serve(t, discoverSite)
	c := &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer c.CloseIdle()
	atom := func(path, title string) Links {
		return Links{{Rel: "alternate", Href: site.URL + path, Type: "application/atom+xml", Title: title}}
	}
	for path, want := range map[string]Links{
		"/page":          atom("/feed.atom", "News"),
		"/page#top":      atom("/feed.atom", "News"),
		"/sloppy":        atom("/f", ""),
		"/xhtml":         atom("/dir/f", ""),
		"/mislabelled":   atom("/mislabelled", "Feed"),
		"/sub/bare.html": atom("/atom.xml", "Known"),
		"/data.xml":      nil,
		"/data.json":     nil,
	} {
		links, err := c.Discover(t.Context(), site.URL+path)
		require.NoError(t, err, path)
		require.Equal(t, want, links, path)
	}
	_, err := c.Discover(t.Context(), site.URL+"/nothing")
	feedtest.ErrorAs[*StatusError](t, err)
	refused := &Client{}
	_, err = refused.Discover(t.Context(), site.URL+"/page")
	feedtest.ErrorAs[*RefusedError](t, err)
}

func TestNotFeedError(t *testing.T) {
	site := feedtest.Serve(t, discoverSite)
	c := &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer c.CloseIdle()
	for path, page := range map[string]bool{"/page": true, "/sloppy": true, "/sub/bare.html": true, "/data.xml": false, "/data.json": false} {
		_, err := c.Fetch(t.Context(), site.URL+path)
		other := feedtest.ErrorAs[*NotFeedError](t, err, path)
		require.Equal(t, page, other.Page, path)
		require.Equal(t, site.URL+path, other.URL)
		parse := feedtest.ErrorAs[*ParseError](t, err)
		require.Equal(t, ReasonNotFeed, parse.Reason)
		require.Equal(t, ReasonNotFeed, NewGap("", err).Reason)
	}
}

// An answer that concerns the whole host ends the search.
func TestDiscoverStops(t *testing.T) {
	var asked atomic.Int32
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "<!doctype html>")
	}))
	c := &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer c.CloseIdle()
	links, err := c.Discover(t.Context(), server.URL)
	require.Empty(t, links)
	feedtest.ErrorAs[*StatusError](t, err)
	require.EqualValues(t, 2, asked.Load())
}
