package republish

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireWellFormed checks a document with a different parser.
func requireWellFormed(t require.TestingT, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

// Slices are separate feeds, and together they are the feed.
func TestSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2012)
	for _, path := range []string{"/blog/feed.atom", "/news.rss"} {
		page, feed := w.add(path), w.feedURL(path)
		f, err := w.Store.Feed(t.Context(), feed)
		require.NoError(t, err)

		// With the sizes that readers accept, as small as possible here.
		var groups []Slice
		for r, err := range w.Store.Entries(t.Context(), mirror.Query{Feed: feed}) {
			require.NoError(t, err)
			groups = append(groups, Slice{Since: r.Time(), Entries: 1, Bytes: 1000})
		}
		cut := cut(groups, 40_000, 1000)
		require.Equal(t, path == "/blog/feed.atom", len(cut.Slices) > 3)
		for _, format := range []string{"atom", "rss"} {
			got := map[string]string{}
			for _, part := range cut.Slices {
				address := page + "/slice." + format + "?" + part.Query()
				status, body, header := w.get(address)
				require.Equal(t, http.StatusOK, status, body)
				require.Contains(t, header.Get("Content-Type"), format)
				requireWellFormed(t, body)
				h, err := reader().Fetch(t.Context(), strings.TrimSuffix(w.url, "/")+address)
				require.NoError(t, err)
				require.Len(t, h.Entries, part.Entries)
				require.Equal(t, f.Verdict == feedhistory.VerdictWhole, h.Head.Complete)
				for _, e := range h.Entries {
					require.NotContains(t, got, e.ID)
					got[e.ID] = words(e)
				}
				w.checked(address)
			}
			require.Equal(t, w.mirrored(feed), got)
		}
	}
	page := "/feeds/" + Name(w.feedURL("/news.rss"))
	for query, want := range map[string]string{
		"since=x": "neither a date", "since=2004-01-01&until=2004-01-01": "must be before",
		"since=": "neither a date", "form=2004-01-01": "form= is unknown", "since=2004-01-01&since=2005-01-01": "since= is given twice",
	} {
		require.Contains(t, w.refused(page+"/slice.atom?"+query, http.StatusBadRequest), want)
	}
}

// The sizes of entries are found out once for all visitors and all sizes of slices, and suffice.
func TestSlicesAreShared(t *testing.T) {
	w := newWorld(t, nil)
	w.write(2003, 2006)
	for _, path := range []string{"/blog/feed.atom", "/news.rss"} {
		w.add(path)
		feed, err := w.Store.Feed(t.Context(), w.feedURL(path))
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			var count atomic.Int32
			h := &Handler{Store: slowStore{w.Store, time.Second, &count}}
			var visitors sync.WaitGroup
			for i := range 20 {
				visitors.Go(func() {
					plan, err := h.Slices(t.Context(), feed, int64(10_000*(1+i%5)))
					if err != nil || len(plan.Slices) == 0 {
						t.Error(plan, err)
					}
				})
			}
			visitors.Wait()
			require.LessOrEqual(t, count.Load(), int32(2))
			plan, err := h.Slices(t.Context(), feed, 20_000)
			require.NoError(t, err)
			for _, part := range plan.Slices {
				status, body, _ := answer(h, getRequest(t.Context(), "/feeds/"+Name(feed.URL)+"/slice.atom?"+part.Query()))
				require.Equal(t, http.StatusOK, status)
				require.LessOrEqual(t, int64(len(body)), part.Bytes)
			}
		})
	}
}

// However entries are spread, each is in one slice, no slice is too large, and
// existing slices stay as the feed grows.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC)
		most := int64(rapid.IntRange(100, 1000).Draw(t, "most"))
		var groups []Slice // newest first
		total := 0
		for range rapid.IntRange(0, 60).Draw(t, "groups") {
			at = at.Add(time.Duration(1+rapid.IntRange(0, 1000).Draw(t, "gap")) * time.Second)
			g := Slice{Since: at, Entries: rapid.IntRange(1, 3).Draw(t, "entries"), Bytes: int64(rapid.IntRange(1, 300).Draw(t, "bytes"))}
			groups = append([]Slice{g}, groups...)
			total += g.Entries
		}
		all := cut(groups, most, 10)
		for i, part := range all.Slices {
			total -= part.Entries
			single := 0
			for _, g := range groups {
				if !g.Since.Before(part.Since) && (part.Until.IsZero() || g.Since.Before(part.Until)) {
					single++
				}
			}
			require.True(t, part.Bytes <= most || single == 1)
			require.Equal(t, i == 0, part.Since.IsZero())
			require.Equal(t, i == len(all.Slices)-1, part.Until.IsZero())
			if i > 0 {
				require.Equal(t, all.Slices[i-1].Until, part.Since)
			}
		}
		require.Zero(t, total)
		if len(groups) > 1 {
			before := cut(groups[1:], most, 10)
			for i, part := range before.Slices[:len(before.Slices)-1] {
				require.Equal(t, part, all.Slices[i])
			}
		}
	})
}

// Two hundred clients that request a document with large entries, and do not
// read it, hold no more memory than a few.
func TestClientsThatDoNotRead(t *testing.T) {
	const clients, entry = 200, 2 << 20
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	for n := range 4 {
		put(20+n, strings.Replace(soundEntry(20+n), "</entry>", "<summary>"+strings.Repeat("x", entry)+"</summary></entry>", 1))
	}
	h := &Handler{Store: store}
	var refused, under atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		count := &feedtest.StatusWriter{ResponseWriter: w}
		h.ServeHTTP(count, r)
		if count.Status == http.StatusServiceUnavailable {
			refused.Add(1)
		}
	}))
	before, resident := heap(), rss(t)
	var open []net.Conn
	for range clients {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(conn, "GET /feeds/%s/complete.atom HTTP/1.1\r\nHost: h\r\n\r\n", Name(damagedURL))
		require.NoError(t, err)
		open = append(open, conn)
	}
	require.Eventually(t, func() bool { return int(refused.Load()) >= clients-mostStreams && under.Load() <= mostStreams }, 5*time.Minute, 10*time.Millisecond)
	require.Positive(t, under.Load())
	require.Less(t, rss(t)-resident, int64(mostStreams*12*entry), "the memory of the process, before it is collected")
	require.Less(t, heap()-before, int64(mostStreams*6*entry))
	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	server.Close()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// rss returns the resident memory of this process in bytes; zero if the system does not
// tell.
func rss(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	_, err = fmt.Sscan(string(data), &size, &resident)
	require.NoError(t, err)
	return resident * int64(os.Getpagesize())
}
