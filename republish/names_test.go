package republish

import (
	"io/fs"
	"net/http"
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
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	}
}

func TestNamesCollide(t *testing.T) {
	require.Equal(t, oldName(oneURL), oldName(otherURL))
	require.NotEqual(t, Name(oneURL), Name(otherURL))
	store := &mirror.Memory{}
	h := &Handler{Store: store, Base: "https://h.example/app/"}
	withNames(t, store, oneURL)
	status, _, header := answer(h, getRequest(t.Context(), "/feeds/"+oldName(oneURL)+"/complete.atom?q=a+b"))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, "/app/feeds/"+Name(oneURL)+"/complete.atom?q=a+b", header.Get("Location"))

	// Another feed is refused, because it would take the name of the first.
	require.ErrorIs(t, h.Reserve(t.Context(), otherURL), ErrNameTaken)
	require.NoError(t, h.Reserve(t.Context(), oneURL))

	// The same holds for a whole name.
	h.names.urls[Name(otherURL)] = "https://elsewhere.example/"
	delete(h.names.urls, oldName(otherURL))
	require.ErrorIs(t, h.Reserve(t.Context(), otherURL), ErrNameTaken)

	// Feeds that others have added have their own documents, and the old name is
	// nobody's.
	withNames(t, store, otherURL)
	h = &Handler{Store: store}
	for _, feed := range []string{oneURL, otherURL} {
		require.Contains(t, asked(t, h, "/feeds/"+Name(feed)+"/complete.atom"), "<id>"+feed+"</id>")
	}
	status, _, _ = answer(h, getRequest(t.Context(), "/feeds/"+oldName(oneURL)+"/complete.atom"))
	require.Equal(t, http.StatusNotFound, status)
}

// Documents published under an old name stay there, and continue there.
// Otherwise the old name redirects to the new one.
func TestOldNames(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	w := newWorld(t, func(h *Handler) { h.Output = dir })
	w.write(2003, 2008)
	feed := w.feedURL("/blog/feed.atom")
	old := "/feeds/" + oldName(feed)
	page := w.add("/blog/feed.atom")
	require.Equal(t, "/feeds/"+Name(feed), page)
	_, err := w.Feed(t.Context(), "none")
	require.ErrorIs(t, err, mirror.ErrNotFound)
	w.chains.names.Put(feed, oldName(feed)) // as earlier servers did
	before, _ := w.fetched(old + "/index.atom")
	require.Equal(t, w.mirrored(feed), before)
	archives, err := fs.Glob(w.chains.out, oldName(feed)+"/index/*")
	require.NoError(t, err)
	require.NotEmpty(t, archives)

	h := &Handler{Store: w.Store, Base: w.Base, Output: dir}
	index := asked(t, h, old+"/index.atom")
	require.Contains(t, index, `rel="self" href="`+strings.TrimSuffix(w.url, "/")+old+`/index.atom"`)
	for _, name := range archives {
		asked(t, h, "/feeds/"+name)
	}
	for asked, want := range map[string]string{
		page + "/index.atom": old + "/index.atom", page + "/index.rss": old + "/index.rss", page + "/complete.atom": old + "/complete.atom",
	} {
		status, _, header := answer(h, getRequest(t.Context(), asked))
		require.Equal(t, http.StatusPermanentRedirect, status, asked)
		require.Equal(t, want, header.Get("Location"))
	}

	// If nothing was published, the old name leads to the new one.
	h = &Handler{Store: w.Store, Base: w.Base}
	status, _, header := answer(h, getRequest(t.Context(), old+"/index.rss"))
	require.Equal(t, http.StatusPermanentRedirect, status)
	require.Equal(t, page+"/index.rss", header.Get("Location"))
	require.Contains(t, asked(t, h, page+"/index.rss"), page+"/index/")

	// A feed that is removed and added again begins again.
	h = &Handler{Store: w.Store, Base: w.Base, Output: dir}
	require.NoError(t, h.Remove(t.Context(), feed))
	left, _ := fs.Glob(h.chains.out, oldName(feed)+"/*/*")
	require.Empty(t, left)
}
