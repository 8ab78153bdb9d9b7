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

// A wait that a host asks for of another request of the Client, or of a guess. The feed
// keeps the first for the next process, but not the second: no link names the document.
func TestWaitOfAnotherRequest(t *testing.T) {
	for name, guesses := range map[string]bool{"another request": false, "a guess": true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // a walk requests documents in advance
			asked := map[string]int{}
			var m *mirror.Mirror
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
					if !guesses {
						_, err := m.Client.Get(t.Context(), "http://model.example/archive-1")
						require.Error(t, err)
					}
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
			store := mirror.NewMemory()
			update := func() *mirror.Report {
				m = newMirror(store, site)
				m.Client.NoGuess = !guesses
				changes, err := m.Update(t.Context(), modelURL)
				require.NoError(t, err, name)
				return changes
			}
			begun := time.Now()
			changes := update()
			require.NoError(t, changes.Failure, name)
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict, name)
			require.Equal(t, 1, asked["/archive-1"], name)
			require.Equal(t, !guesses, feedOf(t, store, modelURL).Waits(begun.Add(time.Hour)), name)
			time.Sleep(time.Hour)
			if changes = update(); guesses {
				require.NoError(t, changes.Failure)
				return
			}
			require.ErrorIs(t, changes.Failure, mirror.ErrWaits)
			require.Equal(t, 1, asked["/feed"])
		})
	}
}

// A feed withdrawn before its first poll declares nothing: neither report nor store say it
// has no history.
func TestGoneAtOnce(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	client := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(client.CloseIdle)
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: client}
	report, err := m.Update(t.Context(), server.URL)
	require.NoError(t, err)
	require.True(t, report.Feed.Gone)
	require.Equal(t, feedhistory.KindUnknown, report.Feed.Kind)
	feed, err := m.Store.Feed(t.Context(), server.URL)
	require.NoError(t, err)
	require.Equal(t, feedhistory.KindUnknown, feed.Kind)
	_, err = (*mirror.Mirror)(nil).Update(t.Context(), server.URL)
	require.ErrorContains(t, err, "Mirror.Store must be set")
}
