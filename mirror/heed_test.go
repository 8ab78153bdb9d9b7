package mirror_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A document requested before a link names it may bring a wait, although the walk does not
// need the document. The feed keeps the wait for the next process.
func TestWaitOfAnUnneededRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // a walk requests documents in advance
		asked := map[string]int{}
		site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.Path]++
			mu.Unlock()
			older, mark := "", "<fh:archive/>"
			switch r.URL.Path {
			case "/feed":
				older, mark = "/archive-4", ""
			case "/archive-4":
				older = "/archive-3"
			case "/archive-3":
				older = "/archive-2"
			case "/archive-2":
				time.Sleep(time.Second) // its successor is asked for meanwhile
			default:
				time.Sleep(time.Second / 2) // the others are on their way
				w.Header().Set("Retry-After", "7200")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			if older != "" {
				older = fmt.Sprintf(`<link rel="prev-archive" href="%s"/>`, older)
			}
			fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id>%s%s<entry><id>urn:%s</id><updated>2003-12-13T00:00:00Z</updated></entry></feed>`,
				mark, older, r.URL.Path)
		})
		store := &mirror.Memory{}
		update := func() (*mirror.Report, error) {
			m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{Transport: feedtest.Direct{Handler: site}, Tries: 1}}
			return m.Update(t.Context(), modelURL)
		}
		begun := time.Now()
		changes, err := update()
		require.NoError(t, err)
		require.NoError(t, changes.Failure)
		require.Equal(t, feedhistory.Whole, changes.Verdict)
		require.Equal(t, 1, asked["/archive-1"])
		feed := feedOf(t, store, modelURL)
		require.True(t, feed.Waits(begun.Add(time.Hour)))
		time.Sleep(time.Hour)
		changes, err = update()
		require.NoError(t, err)
		feedtest.ErrorAs[*mirror.WaitError](t, changes.Failure)
		require.Equal(t, 1, asked["/feed"])
	})
}

// A feed withdrawn before its first poll declares nothing: neither report nor store say it
// has no history.
func TestGoneAtOnce(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	client := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(client.CloseIdle)
	m := &mirror.Mirror{Store: &mirror.Memory{}, Client: client}
	report, err := m.Update(t.Context(), server.URL)
	require.NoError(t, err)
	require.True(t, report.Gone)
	require.Equal(t, feedhistory.KindUnknown, report.Kind)
	feed, err := m.Store.Feed(t.Context(), server.URL)
	require.NoError(t, err)
	require.Equal(t, feedhistory.KindUnknown, feed.Kind)
	_, err = (*mirror.Mirror)(nil).Update(t.Context(), server.URL)
	require.ErrorContains(t, err, "Mirror.Store must be set")
}
