package datareplication

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

// asked returns the number of requests by a method since the last call.
func (w *wire) asked(method string) (n int) {
	for _, line := range w.log {
		if strings.HasPrefix(line, method+" ") {
			n++
		}
	}
	return n
}

// leastRequests is the number of requests that bring a harvest forward: for the newest page, for
// the page where the last one ended, and for the next.
const leastRequests = 3

// severalPages returns a feed of 40 entities, so many of which have the same stamp.
func severalPages(t *testing.T, same int) *memory {
	out := newMemory()
	p := newProducer(out)
	for some := range slices.Chunk(entities(0, 40), same) {
		require.NoError(t, p.Append(t.Context(), some...))
	}
	return out
}

// A harvest that was cut short at any entity asks for the newest page by HEAD, and for one page
// again; it does not look for its place. Without Page, it does.
//
// Duties: datareplication#consumer-2, datareplication#consumer-5.
func TestResume(t *testing.T) {
	for _, same := range []int{1, 5, 40} {
		testResume(t, severalPages(t, same))
	}
}

func testResume(t *testing.T, out *memory) {
	w := serve(out)
	harvest(t, w, Mark{})
	pages := w.asked(http.MethodGet)
	require.Greater(t, pages, 10)
	require.Equal(t, pages, w.asked(http.MethodHead))
	for cut := 1; cut < 40; cut++ {
		w := serve(out)
		got, at := harvestSome(t, w, Mark{}, cut)
		require.LessOrEqual(t, w.asked(http.MethodGet), pages)
		before := w.asked(http.MethodHead)
		rest, end := harvest(t, w, at)
		require.Equal(t, ids(0, 40), append(got, rest...))
		require.LessOrEqual(t, w.asked(http.MethodGet), pages+1, cut)
		require.Equal(t, before+1, w.asked(http.MethodHead), cut)

		old := at
		old.Page = ""
		again, cursor := harvest(t, w, old)
		require.Equal(t, rest, again)
		require.Equal(t, end, cursor)
		require.Greater(t, w.asked(http.MethodHead), before+2)
	}
}

// harvestSome leaves a harvest after some entities.
func harvestSome(t *testing.T, w *wire, from Mark, most int) (got []string, at Mark) {
	h := w.client().Harvest(t.Context(), from)
	for e, err := range h.Entities() {
		require.NoError(t, err)
		if got = append(got, e.ContentID); len(got) == most {
			break
		}
	}
	return got, h.Mark()
}

// A harvest that reaches the limit on requests, even while it still looks for its place, goes
// on there.
//
// Duties: datareplication#consumer-1, datareplication#consumer-5.
func TestBudgets(t *testing.T) {
	out := severalPages(t, 1)
	for requests := leastRequests; requests < 50; requests++ {
		for _, from := range []int{0, 1, 17} {
			var cursor Mark
			var got []string
			if from > 0 {
				got, cursor = harvestSome(t, serve(out), Mark{}, from)
				cursor.Page = "" // as after an upgrade
			}
			w := serve(out)
			runs := 0
			for err := error(&BudgetError{}); err != nil; runs++ {
				require.Less(t, runs, 50, "%d requests from %d", requests, from)
				c := w.client()
				c.Budget.Requests = requests
				h := c.Harvest(t.Context(), cursor)
				var some []string
				some, err = collect(h)
				got, cursor = append(got, some...), h.Mark()
				require.True(t, err == nil || errors.As(err, new(*BudgetError)), "%v", err)
			}
			require.Equal(t, ids(0, 40), got, "%d requests from %d", requests, from)
			require.LessOrEqual(t, len(w.log), 41+3*runs)
		}
	}
}

// A mirror stores the place too.
func TestKeepBudgets(t *testing.T) {
	out, store := severalPages(t, 40), new(mirror.Memory)
	w := serve(out)
	c := w.client()
	c.Budget.Requests = leastRequests
	runs := 0
	for more := true; more; runs++ {
		require.Less(t, runs, 50)
		report := keep(t, store, c, Resources{Size: 3})
		more = report.More
		require.Equal(t, more, len(report.Gaps) > 0)
	}
	require.Len(t, mirrored(t, store), 40)
	require.LessOrEqual(t, len(w.log), 41+3*runs)
}

// If the mark's page is not what it was, the harvest looks for its place.
func TestMarkPage(t *testing.T) {
	out := severalPages(t, 3)
	_, cursor := harvestSome(t, serve(out), Mark{}, 10)
	for _, page := range []string{
		base + "none", base, base + "1", base + "4", base + "6", base + "20", "http://elsewhere.example/", "gopher://x", "%", base + "feed.json",
	} {
		for _, from := range []Mark{cursor, {Time: cursor.Time}, {}} {
			from.Page = ""
			want, end := harvest(t, serve(out), from)
			from.Page = page
			got, at := harvest(t, serve(out), from)
			require.Equal(t, want, got, "%s, %v", page, from)
			require.Equal(t, end, at, page)
		}
	}
}

// The page of the mark may fail before it has brought anything.
func TestMarkPageFails(t *testing.T) {
	out := severalPages(t, 3)
	_, cursor := harvestSome(t, serve(out), Mark{}, 10)
	for _, status := range []int{204, 404, 410, 403, 500} {
		w := serve(out)
		once, handler := true, w.handler
		w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if once && r.URL.Path == strings.TrimPrefix(cursor.Page, "http://example.org") {
				once = false
				rw.WriteHeader(status)
				return
			}
			handler.ServeHTTP(rw, r)
		})
		got, _ := harvest(t, w, cursor)
		require.Equal(t, ids(10, 30), got, status)
	}
}

// A Content-ID is remembered for a while, in bounded memory; longer in a log.
//
// Duties: datareplication#feed-4.
func TestRecentIDs(t *testing.T) {
	r := newRecentIDs()
	most, repeated := 0, false
	for i := range 5 * mostIDs {
		repeated = repeated || r.repeated(strconv.Itoa(i))
		most = max(most, len(r.newer)+len(r.before))
	}
	require.False(t, repeated)
	require.Equal(t, 2*mostIDs, most)
	require.True(t, r.repeated(strconv.Itoa(4*mostIDs)))
	require.False(t, r.repeated("0"))
}

// An entity whose Content-ID is in the log already, from an earlier harvest, is an error:
// the log would lose the other. Those before it are stored.
//
// Duties: datareplication#feed-4.
func TestRepeatedInLog(t *testing.T) {
	for _, size := range []int{1, 2, 3, 100} {
		out, store := newMemory(), new(mirror.Memory)
		p := newProducer(out)
		require.NoError(t, p.Append(t.Context(), entities(0, 5)...))
		keep(t, store, serve(out).client(), Resources{Size: size})
		require.NoError(t, p.Append(t.Context(), append(entities(5, 2), entities(1, 1)...)...))
		require.NoError(t, p.Append(t.Context(), entities(7, 1)...))
		for range 2 {
			report, err := serve(out).client().Keep(t.Context(), &mirror.Mirror{Store: store}, Resources{Size: size})
			if err == nil {
				require.Len(t, report.Gaps, 1)
				err = report.Gaps[0]
			}
			require.ErrorContains(t, err, ErrRepeatedID.Error())
			require.Len(t, mirrored(t, store), 7)
			require.Equal(t, "body 1", mirrored(t, store)["e1"])
		}
	}
}
