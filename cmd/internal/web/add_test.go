package web

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
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

// If the preferred format of a page's feed is not there, another one is added.
func TestAddOtherFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	status, body, _ := w.post(url.Values{"url": {w.feedURL("/formats.html")}})
	require.Equal(t, http.StatusSeeOther, status, body)
	require.Eventually(t, func() bool { return slices.Equal(w.feeds(), []string{"/news.rss"}) }, patience, 5*time.Millisecond)
	require.NotEmpty(t, w.settle(w.feedURL("/news.rss"), 0).Head)
}

// The owner of a private server adds a feed with its login, which is kept apart; a failed addition
// leaves nothing behind.
func TestAddWithLogin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	w := newWorld(t, func(s *Server) {
		s.Token, s.Private, s.Keys = "open sesame", true, command.NewKeyring(file)
		s.Mirror.ClientFor = s.Keys.ClientFor(s.Mirror.Client)
	})
	var noted []string // the feeds whose login a process killed now would leave
	notes := 0
	w.adder.adding = func(ctx context.Context, feeds []string) (func() error, error) {
		keys, err := w.Keys.Load()
		require.NoError(t, err)
		require.Empty(t, keys, "it is noted before it is kept")
		noted, notes = append(noted, feeds...), notes+1
		return func() error {
			for _, feed := range feeds {
				_, err := w.Store.Feed(ctx, feed)
				require.NoError(t, err)
				noted = slices.DeleteFunc(noted, func(url string) bool { return url == feed })
			}
			return nil
		}, nil
	}
	w.token = "open sesame"
	w.extra.Store(new(http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(rw, `<rss version="2.0"><channel><title>Locked</title><item><guid>urn:1</guid><title>Inside</title></item></channel></rss>`)
	}))))
	feed := w.feedURL("/large.atom")
	stored := func() map[string]http.Header {
		keys, err := w.Keys.Load()
		require.NoError(t, err)
		return keys
	}
	require.Contains(t, w.page("/", http.StatusOK), "It needs a login")
	for _, test := range []struct{ user, password, says string }{
		{"", "", "This feed needs a login: type its name and password below."},
		{"ann", "wr0ng", "does not accept this name with this password"},
		{"", "wr0ng", "Type the name that belongs to the password."},
		{"an:n", "wr0ng", "A name has no colon."},
	} {
		status, body, _ := w.post(url.Values{"url": {feed}, "user": {test.user}, "password": {test.password}})
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, body, test.says)
		require.NotContains(t, body, "wr0ng")
		require.NotContains(t, body, "Add this address anyway")
		require.Regexp(t, `<details( open)?>\s*<summary>It needs a login`, body)
		require.Empty(t, w.feeds())
		require.Empty(t, stored(), test.says)
	}
	add := func(values url.Values) {
		status, body, page := w.post(values)
		require.Equal(t, http.StatusSeeOther, status, body)
		w.settle(feed, 0)
		body = w.page(page, http.StatusOK)
		require.Contains(t, body, "Inside")
		require.NotContains(t, body, "s3cret")
		f, err := w.Store.Feed(t.Context(), feed)
		require.NoError(t, err)
		require.True(t, f.Private)
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:s3cret")), stored()[feed].Get("Authorization"))
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	add(url.Values{"url": {feed}, "user": {"ann"}, "password": {"s3cret"}})
	require.Empty(t, noted)
	require.Equal(t, 2, notes, "one of them wrong")
	status, body, _ := w.post(url.Values{"url": {feed}, "user": {"ann"}, "password": {"wr0ng"}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "does not accept")
	add(url.Values{"url": {feed}}) // its login is still there

	// One in the address goes out of it.
	require.NoError(t, w.adder.discard(t.Context(), feed))
	require.Empty(t, stored())
	add(url.Values{"url": {strings.Replace(feed, "://", "://ann:s3cret@", 1)}})

	// Everybody sees a public server, so it takes none.
	public := newWorld(t, func(s *Server) { s.Keys = command.NewKeyring(file + ".public") })
	require.NotContains(t, public.page("/", http.StatusOK), "It needs a login")
	_, body, _ = public.post(url.Values{"url": {public.feedURL("/locked")}, "user": {"ann"}, "password": {"s3cret"}})
	require.Contains(t, body, "This feed needs a login, so it cannot be added here.")
	require.NoFileExists(t, file+".public")
}
