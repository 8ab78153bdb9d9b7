package readers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/republish"
)

// served starts a history server for the world's feed.
func (w *world) served(t testing.TB) {
	server := httptest.NewUnstartedServer(nil)
	w.Through = "http://" + server.Listener.Addr().String() + "/"
	server.Config.Handler = &republish.Handler{Store: w.Store, Base: w.Through}
	server.Start()
	t.Cleanup(server.Close)
}

// Through a history server, the reader finds each entry by itself: nothing is
// there twice, whatever was read stays read, and the subscription leads to the
// publisher afterwards.
func TestThrough(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.served(t)
	w.polled("five", "six")
	report := w.run(t)
	require.Equal(t, 4, report.Added)
	require.Equal(t, 2, report.Shown)
	require.Len(t, w.model.Entries(), 6)
	hashes := map[string]bool{}
	for _, e := range w.model.Entries() {
		require.Len(t, e.Hash, 64, "the hash of an entry that was found in a feed")
		hashes[e.Hash] = true
		require.Equal(t, e.Title == "five" || e.Title == "six", e.Status == "unread", e.Title)
	}
	require.Len(t, hashes, 6)
	require.Equal(t, w.feed, w.model.FeedURL(w.to.ID))
	again := w.run(t)
	require.Equal(t, 4, again.Had)
	require.Zero(t, again.Added)
	require.Len(t, w.model.Entries(), 6)
}

// Whatever goes wrong, the address is put back, and the rest is handed over one
// by one.
func TestThroughFaults(t *testing.T) {
	for name, breaks := range map[string]func(n int, r *http.Request) *readertest.Fault{
		"cannot refresh": func(_ int, r *http.Request) *readertest.Fault {
			if strings.HasSuffix(r.URL.Path, "/refresh") {
				return &readertest.Fault{Status: http.StatusInternalServerError, Message: "broken"}
			}
			return nil
		},
		"lost answers": func(n int, r *http.Request) *readertest.Fault {
			if n%3 == 0 && r.Method == http.MethodPut {
				return &readertest.Fault{Late: true}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &readertest.Miniflux{Fault: breaks}, site)
			w.served(t)
			w.polled("five", "six")
			doubts := 0
			w.Doubt = func(string, error) { doubts++ }
			report := w.run(t)
			require.Equal(t, name == "cannot refresh", doubts == 1)
			require.Equal(t, 4, report.Added)
			require.Len(t, w.model.Entries(), 6)
			require.Equal(t, w.feed, w.model.FeedURL(w.to.ID))
		})
	}
}

// An interrupted handover puts the address back; after a kill, the next one does.
func TestThroughInterrupted(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	w.served(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.model.Break(func(_ int, r *http.Request) *readertest.Fault {
		if strings.HasSuffix(r.URL.Path, "/refresh") {
			cancel()
		}
		return nil
	})
	_, err := w.Run(ctx, w.feed, w.to)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, w.feed, w.model.FeedURL(w.to.ID))

	require.NoError(t, w.Reader.point(t.Context(), w.to.ID, w.Through+"feeds/"+republish.Name(w.feed)+"/complete.atom"))
	feeds, err := w.Reader.Feeds(t.Context())
	require.NoError(t, err)
	f, err := w.Store.Feed(t.Context(), w.feed)
	require.NoError(t, err)
	to, ok := AtServer(f, w.Through, feeds)
	require.True(t, ok)
	_, err = w.Run(t.Context(), w.feed, to)
	require.NoError(t, err)
	require.Equal(t, w.feed, w.model.FeedURL(w.to.ID))
}
