package datareplication

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// crawl goes back through a feed by HEAD, as datareplication-java does, until
// it finds a page that is strictly older than a time. There must be one, and no
// page after it may be older than the time.
func crawl(t require.TestingT, out *memory, since time.Time) {
	w := serve(out)
	newer, name := true, ""
	for newer {
		resp := request(w, http.MethodHead, name)
		if resp.StatusCode == http.StatusNoContent {
			return
		}
		require.Equal(t, http.StatusOK, resp.StatusCode)
		modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
		require.NoError(t, err)
		links := replication.Links(resp.Header)
		if newer = !modified.Before(since); newer {
			require.NotEmpty(t, links["prev"], "no page is strictly older than %v", since)
			name = strings.TrimPrefix(links["prev"], base)
		} else {
			name = strings.TrimPrefix(links["next"], base)
		}
	}
	if name == "" {
		return // nothing is newer
	}
	page := request(w, http.MethodGet, name)
	boundary, err := replication.Boundary(page.Header.Get("Content-Type"))
	require.NoError(t, err)
	parts := replication.NewParts(page.Body, boundary, 1<<20)
	part, err := parts.Next()
	require.NoError(t, err)
	stamp, err := replication.ParseTime(part.Header.Get("Last-Modified"))
	require.NoError(t, err)
	require.False(t, stamp.Before(since), "%v is on a page with what comes after %v", stamp, since)
}

// A page is closed when a snapshot begins, however little it contains, and
// whatever the clock says: so consumers find a page that is strictly older.
//
// Duties: datareplication#feed-5, datareplication#producer-2.
func TestTurn(t *testing.T) {
	for name, step := range map[string]time.Duration{"a clock": time.Second, "one that stands still": 0, "one that goes back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			out, now := newMemory(), noon
			p := &Producer{Output: out, Now: func() time.Time { return now }}
			for i := range 3 {
				require.NoError(t, p.Append(t.Context(), entities(2*i, 2)...))
				now = now.Add(step)
				require.NoError(t, p.Snapshot(t.Context(), func(yield func(Entity, error) bool) {
					require.NoError(t, p.Append(t.Context(), entities(100+i, 1)...)) // meanwhile
				}))
				created, err := p.LastSnapshot()
				require.NoError(t, err)
				crawl(t, out, created)
				require.NoError(t, p.Snapshot(t.Context(), func(func(Entity, error) bool) {})) // with nothing in between
			}
			got, _ := harvest(t, serve(out), Mark{})
			require.Len(t, got, 9)
			s, err := loadState(out)
			require.NoError(t, err)
			require.Equal(t, 6, s.Newest.Number)
			created, err := p.LastSnapshot()
			require.NoError(t, err)
			require.NoError(t, p.CleanUp(t.Context(), created))
			crawl(t, out, created)
		})
	}
}
