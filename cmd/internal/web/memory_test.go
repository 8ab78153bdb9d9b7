package web

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// largeEntry stores a feed with one entry of some megabytes, and returns its page.
func (w *world) largeEntry(megabytes int) (path string) {
	w.t.Helper()
	const line = "<p>The keeper writes a line into the log, as on <em>every</em> night of the year.</p>\n"
	body := strings.Repeat(line, megabytes<<20/len(line))
	_, err := (&mirror.Recall{Mirror: &mirror.Mirror{Store: w.Store}, Name: "test"}).Entries(w.t.Context(), "https://large.example/feed", "Large", []mirror.KeptEntry{
		{Draft: compose.Draft{ID: "urn:large", Title: feedhistory.Text{Body: "Large"}, Content: feedhistory.Text{Type: "html", Body: body}}},
	})
	require.NoError(w.t, err)
	return "/feeds/" + republish.Name("https://large.example/feed") + "/entry?id=" + url.QueryEscape("urn:large")
}

// peak returns the largest heap while a function runs, beyond that before it.
func peak(run func()) (bytes uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as of a program, not of tests
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, atomic.Uint64{}
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	run()
	close(ended)
	<-stopped
	return most.Load() - min(before, most.Load())
}

// Many readers of a large entry at once cost the memory of the few pages that are made at
// a time.
func TestMemoryOfReaders(t *testing.T) {
	feedtest.Long(t)
	w := newWorld(t, nil)
	page := w.largeEntry(8)
	most := peak(func() {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				resp, err := http.Get(strings.TrimSuffix(w.url, "/") + page)
				if err != nil {
					return
				}
				defer resp.Body.Close()
				text := bufio.NewReader(resp.Body)
				for _, err := text.Discard(1 << 20); err == nil; _, err = text.Discard(1 << 20) {
				}
			})
		}
		all.Wait()
	})
	t.Logf("%d MB", most>>20)
	require.Less(t, most, uint64(500<<20))
}

// A stuckWriter is the connection of a reader that does not read: writing an answer with
// the status 200 takes until the end of the test.
type stuckWriter struct {
	*httptest.ResponseRecorder
	stuck chan<- struct{}
	ended <-chan struct{}
}

func (w *stuckWriter) Write(data []byte) (int, error) {
	if w.Code == http.StatusOK {
		select {
		case w.stuck <- struct{}{}:
			<-w.ended
		case <-w.ended:
		}
	}
	return len(data), nil
}

// Readers that do not read take a limited room, and no turn from others.
func TestReadersThatDoNotRead(t *testing.T) {
	w := newWorld(t, func(s *Server) { s.room = 3 << 20 })
	page := w.largeEntry(2)
	stuck, ended := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(ended)
	for range 2 { // of more than a megabyte each
		all.Go(func() {
			w.ServeHTTP(&stuckWriter{httptest.NewRecorder(), stuck, ended}, httptestRequest(t.Context(), http.MethodGet, page, nil))
		})
		<-stuck
	}
	status, _, header := w.do(http.MethodGet, page, nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.NotEmpty(t, header.Get("Retry-After"))
	require.Contains(t, w.page("/", http.StatusOK), "Large")
	require.Contains(t, w.page("/entries", http.StatusOK), "Large")
	require.Empty(t, w.building)
}
