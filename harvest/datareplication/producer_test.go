package datareplication

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/stretchr/testify/require"
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
		links := wire.Links(resp.Header, base+name)
		if newer = !modified.Before(since); newer {
			require.NotEmpty(t, links["previous"], "no page is strictly older than %v", since)
			name = strings.TrimPrefix(links["previous"], base)
		} else {
			name = strings.TrimPrefix(links["next"], base)
		}
	}
	if name == "" {
		return // nothing is newer
	}
	page := request(w, http.MethodGet, name)
	boundary, err := wire.Boundary(page.Header.Get("Content-Type"))
	require.NoError(t, err)
	parts := wire.NewParts(page.Body, boundary, 1<<20)
	part, err := parts.Next()
	require.NoError(t, err)
	stamp, err := wire.ParseTime(part.Header.Get("Last-Modified"))
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
			got, _ := harvestAll(t, serve(out), Mark{})
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

// TestEveryFault makes operations of a short history fail, in every possible way: each one in
// a long run. The feed then has either all of the call or nothing, once, and goes on.
//
// Duties: datareplication#producer-1.
func TestEveryFault(t *testing.T) {
	stride := feedtest.Stride(1)
	for i, how := range []feedtest.Failure{feedtest.FailsBefore, feedtest.FailsAfter, feedtest.Crashes, feedtest.Crashed} {
		n := 1 + i*stride/4
		for hit := true; hit; n += stride {
			hit = t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { hit = fault(t, how, n) }) && hit
		}
		require.Greater(t, n, 60)
	}
}

// fault makes the nth operation fail, and reports whether there was one.
func fault(t *testing.T, how feedtest.Failure, n int) (hit bool) {
	out := newMemory()
	p := newProducer(out)
	out.Fail = func(string) feedtest.Failure {
		if n--; n != 0 {
			return feedtest.Works
		}
		hit = true
		return how
	}
	do := func(call func() error) {
		before := published(t, out)
		err := call()
		if err == nil {
			return
		}
		require.ErrorIs(t, err, feedtest.ErrDisk)
		after := published(t, out)
		if how == feedtest.Crashes || how == feedtest.Crashed {
			out = out.clone()
			c := &clock{settings.Now(p.Now)}
			p = &Producer{Output: out, PageSize: p.PageSize, Now: c.now}
		}
		require.NoError(t, call())
		whole := published(t, out)
		require.True(t, slices.Equal(before, after) || slices.Equal(whole, after), "%v", after)
	}
	snapshot := func() error {
		return p.Snapshot(t.Context(), feedtest.Values(entities(1000, 6)...))
	}
	first := 0
	for _, size := range []int{1, 1, 2, 1, 1, 9, 1, 4} {
		all := entities(first, size)
		do(func() error { return p.Append(t.Context(), all...) })
		first += size
		if first == 6 {
			do(snapshot)
		}
	}
	got, mark := harvestAll(t, serve(out), Mark{})
	require.Equal(t, ids(0, first), got)
	do(func() error { return p.CleanUp(t.Context(), mark.Time) })
	for range keptSnapshots {
		do(snapshot)
	}
	out.Fail = nil
	got, _ = harvestAll(t, serve(out), Mark{})
	require.Less(t, len(got), first)
	require.Equal(t, ids(first-len(got), len(got)), got)
	leftovers(t, out, p)
	return hit
}

// published returns the content of a feed.
func published(t *testing.T, out *memory) []string {
	got, _ := harvestAll(t, serve(out.clone()), Mark{})
	return got
}

// leftovers checks that a new process finds what crashes have left behind.
func leftovers(t *testing.T, out *memory, p *Producer) {
	p = &Producer{Output: out, PageSize: p.PageSize, Now: p.Now}
	require.NoError(t, p.Append(t.Context()))
	require.NoError(t, p.Snapshot(t.Context(), func(func(Entity, error) bool) {}))
	s, err := loadState(out)
	require.NoError(t, err)
	files := 1 + len(s.Newest.Parts) + 2*(s.Newest.Number-s.Oldest)
	for _, snap := range s.Snapshots {
		files += 2 * snap.Pages
	}
	require.Len(t, names(out), files)
}

func names(out *memory) (names []string) {
	names = append(names, out.Names()...)
	slices.Sort(names)
	return names
}

// TestAppendCost checks that appending entities one at a time costs the bytes
// of a page times the logarithm of their number, not times their number, and
// that a page never has many files.
func TestAppendCost(t *testing.T) {
	out := newMemory()
	p := &Producer{Output: out, PageSize: 1 << 20}
	const n = 2000
	for i := range n {
		require.NoError(t, p.Append(t.Context(), Entity{ContentID: fmt.Sprint(i), Body: []byte(strings.Repeat("x", 200))}))
		if i%100 == 99 {
			s, err := loadState(out)
			require.NoError(t, err)
			require.LessOrEqual(t, len(s.Newest.Parts), 12)
			require.Len(t, names(out), 1+len(s.Newest.Parts))
		}
	}
	s, err := loadState(out)
	require.NoError(t, err)
	require.Equal(t, 1, s.Newest.Number)
	require.Less(t, out.bytes, 12*s.Newest.bytes()+n*2000)
	require.LessOrEqual(t, out.puts, 2*n)
}
