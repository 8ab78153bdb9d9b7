package datareplication

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/stretchr/testify/require"
)

// TestRoundTrip checks that the client gets each entity that the producer
// publishes exactly once.
//
// Duties: datareplication#consumer-2.
func TestRoundTrip(t *testing.T) {
	out := newMemory()
	p, w := newProducer(out), serve(out)
	got, mark := harvestAll(t, w, Mark{})
	require.Empty(t, got)
	require.True(t, mark.IsZero())
	for i := range 20 {
		require.NoError(t, p.Append(t.Context(), entities(2*i, 2)...))
		got, mark = harvestAll(t, w, mark)
		require.Equal(t, ids(2*i, 2), got)
	}
	got, _ = harvestAll(t, w, mark)
	require.Empty(t, got)
	got, again := harvestAll(t, w, Mark{})
	require.Equal(t, ids(0, 40), got)
	require.Equal(t, mark, again)
	s, err := loadState(out)
	require.NoError(t, err)
	require.Greater(t, s.Newest.Number, 5)
	t.Log(w.log[len(w.log)-20:])
}

// TestFeeds harvests the feeds of testdata, at /feed, and with a snapshot if
// there is one. Each feed lists the expected result: a line for each entity,
// with its ContentID and, unless that is PUT, its operation; and the error, as
// "code: a part of its text".
//
// Duties: datareplication#consumer-1, datareplication#consumer-2,
// datareplication#consumer-3, datareplication#consumer-4.
func TestFeeds(t *testing.T) {
	files := feedtest.Glob(t, "testdata/feeds/*.txtar")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			a := feedtest.Parse(string(text))
			site := feedtest.Serve(t, a.String())
			client := &feedhistory.Client{AllowPrivate: true, Tries: 1}
			c := &Harvester{HTTP: client, URL: site.URL + "/feed"}
			if _, ok := a.File("/snapshot"); ok {
				c.Snapshot = site.URL + "/snapshot"
			}
			_, c.Lenient = a.File("lenient")
			want, ok := a.File("want")
			require.True(t, ok)
			var from Mark
			if s, ok := a.File("mark"); ok {
				require.NoError(t, json.Unmarshal([]byte(s), &from))
			}
			testFeed(t, c.Harvest(t.Context(), from), from, site.Expand(strings.TrimSuffix(want, "\n")))
		})
	}
}

func testFeed(t *testing.T, h *Harvest, from Mark, want string) {
	lines := strings.Split(want, "\n")
	if want == "" {
		lines = nil
	}
	var got []string
	last, _ := h.Mark()
	for e, err := range h.Entities() {
		if err == nil {
			got = append(got, line(e, len(lines) > len(got) && strings.Contains(lines[len(got)], " ")))
			last = Mark{Time: e.Modified, ContentID: e.ContentID, Page: e.Page}
			continue
		}
		require.Len(t, lines, len(got)+1, "%v, then %v", got, err)
		kind, text, ok := strings.Cut(lines[len(got)], ": ")
		require.True(t, ok, "%v", err)
		if e, ok := errors.AsType[*harvest.Error](err); ok {
			require.Equal(t, kind, string(e.Code), "%v", err)
			require.Contains(t, err.Error(), "(datareplication#")
		} else {
			require.Equal(t, kind, fmt.Sprintf("%T", err), "%v", err)
		}
		require.Contains(t, err.Error(), text)
		lines = lines[:len(got)]
	}
	require.Equal(t, strings.Join(lines, "\n"), strings.Join(got, "\n"))
	if last != from && h.h.Snapshot == "" {
		at, _ := h.Mark()
		at.Next = "" // see TestPageDone
		require.Equal(t, last, at)
	}
}

// line returns an entity as a line of the expected result, with its operation
// if wanted.
func line(e *Entity, operation bool) string {
	if !operation {
		return e.ContentID
	}
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return or(e.ContentID) + " " + or(string(e.Operation))
}

// asked returns the number of requests by a method since the last call.
func (w *transport) asked(method string) (n int) {
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
	harvestAll(t, w, Mark{})
	pages := w.asked(http.MethodGet)
	require.Greater(t, pages, 10)
	require.Equal(t, pages, w.asked(http.MethodHead))
	for cut := 1; cut < 40; cut++ {
		w := serve(out)
		got, at := harvestSome(t, w, Mark{}, cut)
		require.LessOrEqual(t, w.asked(http.MethodGet), pages)
		before := w.asked(http.MethodHead)
		rest, end := harvestAll(t, w, at)
		require.Equal(t, ids(0, 40), append(got, rest...))
		require.LessOrEqual(t, w.asked(http.MethodGet), pages+1, cut)
		require.Equal(t, before+1, w.asked(http.MethodHead), cut)

		old := at
		old.Page = ""
		again, mark := harvestAll(t, w, old)
		require.Equal(t, rest, again)
		require.Equal(t, end, mark)
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
		out, store := severalPages(t, same), mirror.NewMemory()
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
func harvestSome(t *testing.T, w *transport, from Mark, most int) (got []string, at Mark) {
	h := w.client().Harvest(t.Context(), from)
	for e, err := range h.Entities() {
		require.NoError(t, err)
		if got = append(got, e.ContentID); len(got) == most {
			break
		}
	}
	return got, markOf(h)
}

// A harvest that begins at another page than the newest comes to the newest, whenever it is cut
// short, by marks with and without an entity, and also if only the answers to GET have links.
//
// Duties: datareplication#consumer-2, datareplication#consumer-3.
func TestOtherPage(t *testing.T) {
	for _, same := range []int{1, 5, 40} {
		out := severalPages(t, same)
		for _, page := range []string{"1", "6", ""} {
			for _, linked := range []string{http.MethodHead, http.MethodGet} {
				testOtherPage(t, out.clone(), page, linked)
			}
		}
	}
}

func testOtherPage(t *testing.T, out *memory, page, linked string) {
	client := func() *Harvester {
		w := serve(out)
		handler := w.handler
		w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			if handler.ServeHTTP(rec, r); r.Method == http.MethodHead && linked == http.MethodGet {
				rec.Header().Del("Link")
			}
			maps.Copy(rw.Header(), rec.Header())
			rw.WriteHeader(rec.Code)
			_, _ = rec.Body.WriteTo(rw)
		})
		c := w.client()
		c.URL += page
		return c
	}
	rest := func(from Mark) ([]string, Mark) {
		h := client().Harvest(t.Context(), from)
		got, err := collect(h)
		require.NoError(t, err, "%v", from)
		return got, markOf(h)
	}
	all, end := rest(Mark{})
	require.Equal(t, ids(0, 40), all)
	for cut := 1; cut <= 40; cut += 3 {
		h := client().Harvest(t.Context(), Mark{})
		for e, err := range h.Entities() {
			require.NoError(t, err)
			if e.ContentID == ids(cut-1, 1)[0] {
				break
			}
		}
		at, _ := h.Mark()
		for _, from := range []Mark{at, {Time: at.Time, ContentID: at.ContentID}} {
			got, _ := rest(from)
			require.Equal(t, ids(cut, 40-cut), got, "%s, %v", page, from)
		}
		got, _ := rest(Mark{Time: at.Time})
		require.Subset(t, got, ids(cut, 40-cut), "%s, %v", page, at)
		limited := client()
		limited.Budget.Requests = 2 * leastRequests
		var came []string
		for from, rounds := (Mark{Time: at.Time, ContentID: at.ContentID}), 0; ; rounds++ {
			require.Less(t, rounds, 40, "no progress from %v", from)
			h := limited.Harvest(t.Context(), from)
			some, err := collect(h)
			came, from = append(came, some...), markOf(h)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, harvest.ErrBudget)
		}
		require.Equal(t, ids(cut, 40-cut), came)
	}
	require.NoError(t, newProducerAt(out, noon.Add(time.Hour)).Append(t.Context(), entities(40, 30)...))
	got, _ := rest(end)
	require.Equal(t, ids(40, 30), got)
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
	var mark Mark
	var got []string
	if from > 0 {
		got, mark = harvestSome(t, serve(out), Mark{}, from)
		mark.Page = "" // as after an upgrade
	}
	w := serve(out)
	runs := 0
	for err := error(harvest.ErrBudget); err != nil; runs++ {
		require.Less(t, runs, 50, "%d requests from %d", requests, from)
		c := w.client()
		c.Budget.Requests = requests
		h := c.Harvest(t.Context(), mark)
		var some []string
		some, err = collect(h)
		got, mark = append(got, some...), markOf(h)
		require.True(t, err == nil || errors.Is(err, harvest.ErrBudget), "%v", err)
	}
	require.Equal(t, ids(0, 40), got, "%d requests from %d", requests, from)
	require.LessOrEqual(t, len(w.log), 41+3*runs)
}

// An entity that is looked for in many harvests may not be there.
func TestBudgetsNotFound(t *testing.T) {
	for same, want := range map[int]error{1: harvest.ErrMark, 13: harvest.ErrMark, 40: harvest.ErrReach} {
		out := severalPages(t, same)
		_, at := harvestSome(t, serve(out), Mark{}, 17)
		at.Page, at.ContentID = "", "another"
		for requests := leastRequests; requests < 50; requests++ {
			at, err := at, error(harvest.ErrBudget)
			for runs := 0; errors.Is(err, harvest.ErrBudget); runs++ {
				require.Less(t, runs, 50, requests)
				c := serve(out).client()
				c.Budget.Requests = requests
				h := c.Harvest(t.Context(), at)
				var some []string
				some, err = collect(h)
				require.Empty(t, some)
				at = markOf(h)
			}
			require.ErrorIs(t, err, want, "%d %d %v", same, requests, err)
		}
	}
}

// A mirror stores the place too.
func TestKeepBudgets(t *testing.T) {
	out, store := severalPages(t, 40), mirror.NewMemory()
	w := serve(out)
	c := w.client()
	c.Budget.Requests = leastRequests
	runs := 0
	for more := true; more; runs++ {
		require.Less(t, runs, 50)
		report := keep(t, store, c, Resources{Size: 3})
		more = report.More
		require.Equal(t, more, len(report.Feed.Ledger.Gaps()) > 0)
	}
	require.Len(t, mirrored(t, store), 40)
	require.LessOrEqual(t, len(w.log), 41+3*runs)
}

// If the mark's page is not what it was, the harvest looks for its place.
func TestMarkPage(t *testing.T) {
	out := severalPages(t, 3)
	_, mark := harvestSome(t, serve(out), Mark{}, 10)
	for _, page := range []string{
		base + "none", base, base + "1", base + "4", base + "6", base + "20", "http://elsewhere.example/", "gopher://x", "%", base + "feed.json",
	} {
		for _, from := range []Mark{mark, {Time: mark.Time}, {}} {
			from.Page = ""
			want, end := harvestAll(t, serve(out), from)
			from.Page = page
			got, at := harvestAll(t, serve(out), from)
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
		want, end := harvestAll(t, serve(out), from)
		number, err := strconv.Atoi(strings.TrimPrefix(from.Page, base))
		require.NoError(t, err)
		for next := range 20 {
			page, err := loadSheet(out, pageStem(number))
			if next == number+1 && err == nil && page.Modified.Equal(from.Time) {
				continue
			}
			from.Next = base + strconv.Itoa(next)
			got, at := harvestAll(t, serve(out), from)
			require.Equal(t, want, got, "%v", from)
			require.Equal(t, end, at, "%v", from)
		}
	}
}

// The page of the mark may fail before it has brought anything.
func TestMarkPageFails(t *testing.T) {
	out := severalPages(t, 3)
	_, mark := harvestSome(t, serve(out), Mark{}, 10)
	for _, status := range []int{204, 404, 410, 403, 500} {
		w := serve(out)
		once, handler := true, w.handler
		w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if once && r.URL.Path == strings.TrimPrefix(mark.Page, "http://example.org") {
				once = false
				rw.WriteHeader(status)
				return
			}
			handler.ServeHTTP(rw, r)
		})
		got, _ := harvestAll(t, w, mark)
		require.Equal(t, ids(10, 30), got, status)
	}
}

// A Content-ID is remembered for a while, in bounded memory; longer in a log.
//
// Duties: datareplication#feed-4.
func TestRecentIDs(t *testing.T) {
	r := recentIDs{}
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
		out, store := newMemory(), mirror.NewMemory()
		p := newProducer(out)
		require.NoError(t, p.Append(t.Context(), entities(0, 5)...))
		keep(t, store, serve(out).client(), Resources{Size: size})
		require.NoError(t, p.Append(t.Context(), append(entities(5, 2), entities(1, 1)...)...))
		require.NoError(t, p.Append(t.Context(), entities(7, 1)...))
		for range 2 {
			report, err := serve(out).client().Keep(t.Context(), &mirror.Mirror{Store: store}, Resources{Size: size})
			if err == nil {
				require.Len(t, report.Feed.Ledger.Gaps(), 1)
				err = report.Feed.Ledger.Gaps()[0]
			}
			require.ErrorContains(t, err, ErrRepeatedID.Error())
			require.Len(t, mirrored(t, store), 7)
			require.Equal(t, "body 1", mirrored(t, store)["e1"])
		}
	}
}

// Header is called for each request to the origin of the feed, but neither for
// a snapshot nor for pages elsewhere.
func TestHeader(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 9)...))
	require.NoError(t, p.Snapshot(t.Context(), feedtest.Values(entities(0, 30)...)))
	require.NoError(t, p.Append(t.Context(), entities(9, 9)...))
	own := serve(out).handler
	elsewhere := http.StripPrefix("/feed/", &Handler{FS: out, Base: "http://other.example/feed/"})
	var mu sync.Mutex
	asked, tokens := 0, map[string]bool{}
	w := &transport{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Host == "example.org" {
			tokens[r.Header.Get("Authorization")] = true
			own.ServeHTTP(w, r)
			return
		}
		require.Empty(t, r.Header.Get("Authorization"))
		elsewhere.ServeHTTP(w, r)
	})}
	c := w.client()
	c.Snapshot = "http://other.example/feed/snapshot"
	c.Header = func(_ context.Context, url string) (http.Header, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		require.True(t, strings.HasPrefix(url, base))
		return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}}, nil
	}
	got, err := collect(c.Harvest(t.Context(), Mark{}))
	require.NoError(t, err)
	require.Len(t, got, 39)
	require.Greater(t, asked, 3)
	require.Len(t, tokens, asked) // each request had a different one
}

var pageBytes = flag.Int64("page-bytes", 64<<20, "size of the page of TestBigPage")

// TestBigPage checks that memory does not grow with the size of a page.
func TestBigPage(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	n := int(*pageBytes / int64(len(body)))
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
		w.Header().Set("Last-Modified", noon.Format(http.TimeFormat))
		w.Header().Set("Link", "<http://"+r.Host+"/>; rel=self")
		if r.Method == http.MethodHead {
			return
		}
		for i := range n {
			e := Entity{ContentID: fmt.Sprint(i), Operation: Put, Modified: noon, Body: body}
			_, _ = w.Write(appendEntity(nil, "b", &e))
		}
		_, _ = io.WriteString(w, "--b--\r\n")
	}))
	c := Harvester{URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true}}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, got := live(), uint64(0), 0
	for e, err := range c.Harvest(t.Context(), Mark{}).Entities() {
		require.NoError(t, err)
		require.Len(t, e.Body, len(body))
		if got++; got%(n/8) == 0 {
			most = max(most, live())
		}
	}
	require.Equal(t, n, got)
	require.Less(t, most, before+8<<20)
	t.Logf("%d MB in %d entities: %d KB more of live heap at most", *pageBytes>>20, n, (int64(most)-int64(before))>>10)
}

// TestLimits checks that what is too large is an error, and that what came
// before is not lost.
func TestLimits(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 20)...))
	require.NoError(t, p.Append(t.Context(), Entity{Body: make([]byte, 1000)}))
	for limit, test := range map[string]struct {
		limits harvest.Budget
		brings int
	}{"requests": {harvest.Budget{Requests: 11}, 9}, "entity": {harvest.Budget{Entity: 999}, 20}} {
		c := serve(out).client()
		c.Budget = test.limits
		got, err := collect(c.Harvest(t.Context(), Mark{}))
		exceeded := feedtest.ErrorAs[*harvest.Error](t, err)
		require.Equal(t, limit, exceeded.Limit)
		require.Len(t, got, test.brings)
	}
	c := serve(out).client()
	c.Budget = harvest.Budget{Page: 700}
	_, err := collect(c.Harvest(t.Context(), Mark{}))
	feedtest.ErrorAs[*feedhistory.FetchError](t, err)
}

// TestSameOrigin checks that the policy applies to links and to the pages of a
// snapshot.
func TestSameOrigin(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 9)...))
	require.NoError(t, p.Snapshot(t.Context(), func(yield func(Entity, error) bool) { yield(entities(0, 1)[0], nil) }))
	w := serve(out)
	other := &Handler{FS: out, Base: "http://example.com/feed/"}
	w.handler = http.StripPrefix("/feed/", other)
	for _, snapshot := range []string{"", base + "snapshot"} {
		c := w.client()
		c.Snapshot = snapshot
		got, err := collect(c.Harvest(t.Context(), Mark{}))
		require.NoError(t, err)
		require.NotEmpty(t, got)
		c.HTTP.OneOrigin = true
		got, err = collect(c.Harvest(t.Context(), Mark{}))
		refused := feedtest.ErrorAs[*feedhistory.FetchError](t, err)
		require.Contains(t, refused.URL, "example.com")
		require.Empty(t, got)
	}
}

// A feed that begins after a mark of a time alone is harvested, with a gap that says so once: in
// a mirror, too.
//
// Duties: datareplication#consumer-3.
func TestBeginning(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), operation(Put, "1", "a=1"), operation(Put, "2", "b=1")))
	c := serve(out).client()
	first := c.Harvest(t.Context(), Mark{Time: noon.AddDate(-1, 0, 0)})
	got, err := collect(first)
	gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
	require.ErrorIs(t, gap, harvest.ErrReach)
	require.Equal(t, feedhistory.ReasonMissedWindow, gap.Reason)
	require.Len(t, got, 2)
	mark, whole := first.Mark()
	require.False(t, whole)
	require.Equal(t, []*feedhistory.Gap{gap}, first.Gaps())
	require.Equal(t, "2", mark.ContentID)

	require.NoError(t, p.Append(t.Context(), operation(Put, "3", "c=1")))
	next := c.Harvest(t.Context(), mark)
	got, err = collect(next)
	require.NoError(t, err)
	require.Len(t, got, 1)
	_, whole = next.Mark()
	require.True(t, whole)
	require.Empty(t, next.Gaps())

	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store}
	text, err := json.Marshal(Mark{Time: noon.AddDate(-1, 0, 0)})
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: &mirror.Feed{URL: c.URL, Source: "datareplication", Mark: text}}))
	report, err := c.Keep(t.Context(), m, Resources{Key: keyOf})
	require.NoError(t, err)
	require.Len(t, report.Feed.Ledger.Gaps(), 1)
	require.ErrorContains(t, report.Feed.Ledger.Gaps()[0], "does not reach back")
	require.Equal(t, map[string]string{"urn:a": "a=1", "urn:b": "b=1", "urn:c": "c=1"}, mirrored(t, store))
	report, err = c.Keep(t.Context(), m, Resources{Key: keyOf})
	require.NoError(t, err)
	require.Empty(t, report.Feed.Ledger.Gaps())
}

// markOf returns the mark of a harvest.
func markOf(h *Harvest) Mark {
	mark, _ := h.Mark()
	return mark
}
