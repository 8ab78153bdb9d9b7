package web

import (
	"database/sql"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/republish"
)

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
	for _, q := range []mirror.Query{{Search: "storm pet", Prefix: true}, {Search: "fog"}, {Gone: true}, {Search: "zebra"}} {
		q.Feed = f.URL
		counted, err := mirror.Months(t.Context(), w.Store, q)
		require.NoError(t, err)
		walked, err := mirror.Months(t.Context(), struct{ mirror.Store }{w.Store}, q)
		require.NoError(t, err)
		require.Equal(t, walked, counted)
		require.Equal(t, q.Search == "fog" || q.Prefix, len(counted) > 0)
	}
	require.Equal(t, feedhistory.Whole, f.Verdict)
}
