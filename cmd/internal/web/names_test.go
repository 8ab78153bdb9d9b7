package web

import (
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// two addresses whose digests begin with the same 48 bits
const (
	oneURL   = "https://c.example/8979788"
	otherURL = "https://c.example/32758410"
)

// withNames adds feeds to the store, as another program may.
func withNames(t *testing.T, store mirror.Store, urls ...string) {
	for _, url := range urls {
		feed := &mirror.Feed{
			URL: url, Title: "Feed " + path.Base(url), Kind: feedhistory.Plain, Known: feedhistory.Known{URL: url},
			Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>` + url + `</id><title>Feed</title><updated>2026-01-01T00:00:00Z</updated></feed>`,
		}
		require.NoError(t, store.Commit(t.Context(), &mirror.Change{Feed: feed}))
	}
}

func TestNamesCollide(t *testing.T) {
	require.Equal(t, oldName(oneURL), oldName(otherURL))
	require.NotEqual(t, ShortName(oneURL), ShortName(otherURL))
	store := &mirror.Memory{}
	s := &Server{Store: store}
	withNames(t, store, oneURL)
	status, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, "/feeds/"+oldName(oneURL)+"?q=a+b", nil))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, "/feeds/"+ShortName(oneURL)+"?q=a+b", header.Get("Location"))

	// Another feed is refused, because it would take the name of the first.
	form := strings.NewReader(url.Values{"url": {otherURL}}.Encode())
	r := httptestRequest(t.Context(), http.MethodPost, "/feeds", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, _ := answer(t, s, r)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "Another feed has this feed’s name")
	_, err := store.Feed(t.Context(), otherURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)

	// The same holds for a whole name.
	s.feeds.urls[ShortName(otherURL)] = "https://elsewhere.example/"
	delete(s.feeds.urls, oldName(otherURL))
	require.ErrorIs(t, s.feeds.add(t.Context(), otherURL), errNameTaken)

	// Feeds that others have added have their own pages, and the old name is
	// nobody's.
	withNames(t, store, otherURL)
	s = &Server{Store: store}
	for _, feed := range []string{oneURL, otherURL} {
		require.Contains(t, asked(t, s, "/feeds/"+ShortName(feed)), "Feed "+path.Base(feed))
		require.Contains(t, asked(t, s, "/feeds/"+ShortName(feed)+"/complete.atom"), "<id>"+feed+"</id>")
	}
	status, _, _ = answer(t, s, httptestRequest(t.Context(), http.MethodGet, "/feeds/"+oldName(oneURL), nil))
	require.Equal(t, http.StatusNotFound, status)
}

// What was published under an old name stays there, and continues there.
// Otherwise the old name redirects to the new one.
func TestOldNames(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(s *Server) { s.Output = dir })
	w.write(2003, 2008)
	feed := w.feedURL("/blog/feed.atom")
	old := "/feeds/" + oldName(feed)
	page := w.add("/blog/feed.atom")
	require.Equal(t, "/feeds/"+ShortName(feed), page)
	w.published.names.put(feed, oldName(feed)) // as earlier servers did
	before, _ := w.fetched(old + "/index.atom")
	require.Equal(t, w.mirrored(feed), before)
	archives, err := fs.Glob(w.published.out, oldName(feed)+"/index/*")
	require.NoError(t, err)
	require.NotEmpty(t, archives)

	s := &Server{Store: w.Store, Base: w.Base, Output: dir}
	index := asked(t, s, old+"/index.atom")
	require.Contains(t, index, `rel="self" href="`+strings.TrimSuffix(w.url, "/")+old+`/index.atom"`)
	for _, name := range archives {
		asked(t, s, "/feeds/"+name)
	}
	for asked, want := range map[string]string{
		page + "/index.atom": old + "/index.atom", page + "/index.rss": old + "/index.rss", page + "/complete.atom": old + "/complete.atom",
		old: page, old + "/entry?id=x%26y": page + "/entry?id=x%26y",
	} {
		status, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, asked, nil))
		require.Equal(t, http.StatusPermanentRedirect, status, asked)
		require.Equal(t, want, header.Get("Location"))
	}
	require.Contains(t, asked(t, s, page), `href="`+old+`/index.atom"`)
	require.Contains(t, asked(t, s, "/feeds.opml?mirrored"), old+"/index.atom")

	// If nothing was published, the old name leads to the new one.
	s = &Server{Store: w.Store, Base: w.Base}
	status, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, old+"/index.rss", nil))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, page+"/index.rss", header.Get("Location"))
	require.Contains(t, asked(t, s, page+"/index.rss"), page+"/index/")

	// A feed that is removed and added again begins again.
	s = &Server{Store: w.Store, Base: w.Base, Output: dir}
	status, _, _ = answer(t, s, httptestRequest(t.Context(), http.MethodPost, page+"/remove", nil))
	require.Equal(t, http.StatusSeeOther, status)
	left, _ := fs.Glob(s.published.out, oldName(feed)+"/*/*")
	require.Empty(t, left)
}
