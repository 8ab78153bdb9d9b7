package datareplication

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// A harvest from a mark of PageDone reads no page again.
//
// Duties: datareplication#feed-6, datareplication#consumer-5.
func TestPageDone(t *testing.T) {
	for _, same := range []int{1, 5, 40} {
		out := severalPages(t, same)
		w := serve(out)
		c := w.client()
		var marks []Mark
		c.PageDone = func(at Mark) error {
			marks = append(marks, at)
			return nil
		}
		all, err := collect(c.Harvest(t.Context(), Mark{}))
		require.NoError(t, err)
		pages := w.asked(http.MethodGet)
		require.Len(t, marks, pages-1)
		for i, at := range marks {
			w := serve(out)
			h := w.client().Harvest(t.Context(), at)
			rest, err := collect(h)
			require.NoError(t, err)
			require.Equal(t, at.ContentID, all[len(all)-len(rest)-1])
			require.Equal(t, all[len(all)-len(rest):], rest)
			require.Equal(t, []int{2, pages - i - 1}, []int{w.asked(http.MethodHead), w.asked(http.MethodGet)}, at)
		}
		errFull := errors.New("the disk is full")
		c.PageDone = func(Mark) error { return errFull }
		_, err = collect(c.Harvest(t.Context(), Mark{}))
		require.ErrorIs(t, err, errFull)
	}
}

// When a page is requested, the mark of a mirror has the page before, even if no entity of it
// is new. So a kill costs the page under way.
//
// Duties: datareplication#consumer-5.
func TestKeepPageDone(t *testing.T) {
	for _, same := range []int{1, 5, 40} {
		out, store := severalPages(t, same), new(mirror.Memory)
		for round, pages := range []int{14, 2} {
			w := serve(out)
			last := ""
			w.before = func(r *http.Request) {
				if r.Method == http.MethodHead {
					return
				}
				if address := "http://example.org" + r.URL.Path; last != "" {
					var at Mark
					require.NoError(t, (&mirror.Mirror{Store: store}).ReadMark(t.Context(), base, "datareplication", &at))
					require.Equal(t, []string{last, address}, []string{at.Page, at.Next})
				}
				last = "http://example.org" + r.URL.Path
			}
			keep(t, store, w.client(), Resources{Size: 1 + same})
			require.Equal(t, pages, w.asked(http.MethodGet), round)
			p := newProducer(out)
			p.Now = func() time.Time { return noon.Add(time.Hour) }
			require.NoError(t, p.Snapshot(t.Context(), func(func(Entity, error) bool) {})) // another page
			require.NoError(t, p.Append(t.Context(), entities(40, 1)...))
		}
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
// on there; in a feed whose entities all have the same stamp, too.
//
// Duties: datareplication#consumer-1, datareplication#consumer-5.
func TestBudgets(t *testing.T) {
	for _, same := range []int{1, 13, 40} {
		out := severalPages(t, same)
		for requests := leastRequests; requests < 50; requests++ {
			for _, from := range []int{0, 1, 17, 36} {
				testBudget(t, out, requests, from)
			}
		}
	}
}

func testBudget(t *testing.T, out *memory, requests, from int) {
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

// An entity that is looked for in many harvests may not be there.
func TestBudgetsNotFound(t *testing.T) {
	for same, want := range map[int]any{1: new(*NotFoundError), 13: new(*NotFoundError), 40: new(*ReachError)} {
		out := severalPages(t, same)
		_, at := harvestSome(t, serve(out), Mark{}, 17)
		at.Page, at.ContentID = "", "another"
		for requests := leastRequests; requests < 50; requests++ {
			at, err := at, error(&BudgetError{})
			for runs := 0; errors.As(err, new(*BudgetError)); runs++ {
				require.Less(t, runs, 50, requests)
				c := serve(out).client()
				c.Budget.Requests = requests
				h := c.Harvest(t.Context(), at)
				var some []string
				some, err = collect(h)
				require.Empty(t, some)
				at = h.Mark()
			}
			require.ErrorAs(t, err, want, "%d %d %v", same, requests, err)
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

// Next counts only if its page follows that of the mark, whose last entity has the mark's stamp.
func TestMarkNext(t *testing.T) {
	out := severalPages(t, 3)
	for first := range 39 {
		_, from := harvestSome(t, serve(out), Mark{}, first+1)
		want, end := harvest(t, serve(out), from)
		number, err := strconv.Atoi(strings.TrimPrefix(from.Page, base))
		require.NoError(t, err)
		for next := range 20 {
			page, err := loadSheet(out, pageStem(number))
			if next == number+1 && err == nil && page.Modified.Equal(from.Time) {
				continue
			}
			from.Next = base + strconv.Itoa(next)
			got, at := harvest(t, serve(out), from)
			require.Equal(t, want, got, "%v", from)
			require.Equal(t, end, at, "%v", from)
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
