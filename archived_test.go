package feedhistory_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A namedChain is a site whose documents have the given paths, newest first.
type namedChain struct {
	paths  []string
	next   bool // a paged feed
	last   bool // whose pages name the last one
	wait   time.Duration
	status map[string]int
	flying atomic.Int32
	most   atomic.Int32
	asked  chan string
}

func (c *namedChain) RoundTrip(r *http.Request) (*http.Response, error) {
	c.most.Store(max(c.most.Load(), c.flying.Add(1)))
	defer c.flying.Add(-1)
	c.asked <- r.URL.RequestURI()
	time.Sleep(c.wait)
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}
	i := slices.Index(c.paths, r.URL.RequestURI())
	if status := c.status[r.URL.RequestURI()]; status != 0 {
		resp.StatusCode = status
		return resp, r.Context().Err()
	}
	if i < 0 {
		return resp, r.Context().Err()
	}
	rel, link := "prev-archive", ""
	if c.next {
		rel = "next"
	}
	if i+1 < len(c.paths) {
		link = fmt.Sprintf(`<link rel="%s" href="%s"/>`, rel, strings.ReplaceAll(c.paths[i+1], "&", "&amp;"))
	}
	if c.last {
		link += fmt.Sprintf(`<link rel="last" href="%s"/>`, c.paths[len(c.paths)-1])
	}
	text := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>%s<entry><id>urn:%d</id><updated>2003-12-13T18:30:02Z</updated></entry></feed>`, link, i)
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(text))
	return resp, r.Context().Err()
}

// walk returns the time that a walk takes, how many requests were made in vain, and the documents.
func (c *namedChain) walk(t *testing.T, client *feedhistory.Client) (took time.Duration, wasted, documents int) {
	t.Helper()
	c.asked = make(chan string, 10_000)
	client.AllowPrivate, client.Transport, client.Tries = true, c, 1
	started := time.Now()
	for doc, err := range items(client.Walk(t.Context(), "http://example.org"+c.paths[0])) {
		require.NoError(t, err)
		require.Equal(t, "urn:"+strconv.Itoa(documents), doc.Entries[0].ID)
		documents++
	}
	took = time.Since(started)
	seen := map[string]bool{}
	for range len(c.asked) {
		if path := <-c.asked; !slices.Contains(c.paths, path) {
			wasted++
		} else {
			require.False(t, seen[path], "%s is requested twice", path)
			seen[path] = true
		}
	}
	require.LessOrEqual(t, int(c.most.Load()), 4)
	return took, wasted, documents
}

func chainOf(n int, path func(i int) string) *namedChain {
	c := &namedChain{paths: []string{"/feed"}, wait: 60 * time.Millisecond}
	for i := range n - 1 {
		c.paths = append(c.paths, path(i))
	}
	return c
}

// A chain whose names can be told takes a third of the time of one whose names cannot, and few
// requests in vain. In a bubble, time is exact.
func TestGuessing(t *testing.T) {
	const n = 61
	month := func(i int) string {
		return time.Date(2019, time.Month(6-i), 1, 0, 0, 0, 0, time.UTC).Format("/2006/01/")
	}
	for name, test := range map[string]struct {
		chain  *namedChain
		most   float64
		wasted int
		client func(*feedhistory.Client)
	}{
		"numbers":            {chainOf(n, func(i int) string { return fmt.Sprintf("/archive-%d", n-1-i) }), 0.35, 0, nil},
		"padded numbers":     {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d.atom", n-1-i) }), 0.35, 0, nil},
		"pages":              {pagesOf(n, false), 0.35, 4, nil},
		"pages with a last":  {pagesOf(n, true), 0.55, 0, nil},
		"pages, no guessing": {pagesOf(n, false), 1.05, 0, func(c *feedhistory.Client) { c.NoGuess = true }},
		"tens":               {chainOf(n, func(i int) string { return fmt.Sprintf("/feed?start=%d", 10*i+10) }), 0.35, 4, nil},
		"months":             {chainOf(n, month), 0.4, 4, nil},
		"months, holes":      {chainOf(n, func(i int) string { return month(i + i/10) }), 0.9, 4, nil},
		"random":             {chainOf(n, func(i int) string { return fmt.Sprintf("/%x", uint64(i+7)*2654435761%1000003) }), 1.05, 0, nil},
		"random, decimal":    {chainOf(n, func(i int) string { return fmt.Sprintf("/%d", 1000000+uint64((i+7)*(i+7))*2654435761%1000003) }), 1.05, 0, nil},
		"no guess":           {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d", n-1-i) }), 1.05, 0, func(c *feedhistory.Client) { c.NoGuess = true }},
		"one at a time":      {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d", n-1-i) }), 1.05, 0, func(c *feedhistory.Client) { c.PerHost = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := new(feedhistory.Client)
				if test.client != nil {
					test.client(client)
				}
				took, wasted, documents := test.chain.walk(t, client)
				require.Equal(t, n, documents)
				require.LessOrEqual(t, wasted, test.wasted)
				require.LessOrEqual(t, float64(took), test.most*n*float64(test.chain.wait))
			})
		})
	}
}

func pagesOf(n int, last bool) *namedChain {
	c := chainOf(n, func(i int) string { return fmt.Sprintf("/feed?page=%d", i+2) })
	c.next, c.last = true, last
	return c
}

// A growingBlog is a paged feed whose posts come during a walk. An answer takes some time, and so
// does the way to the server and back.
type growingBlog struct {
	mu     sync.Mutex // protects random and the numbers
	random *rand.Rand
	posts  int
	size   int
	most   int // how many posts to come
	last   bool
	asked  int
}

func (b *growingBlog) RoundTrip(r *http.Request) (*http.Response, error) {
	wait := func() {
		b.mu.Lock()
		d := time.Duration(1+b.random.IntN(30)) * time.Millisecond
		b.mu.Unlock()
		time.Sleep(d)
	}
	wait()
	defer wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	for b.most > 0 && b.random.IntN(4) == 0 {
		b.posts, b.most = b.posts+1+b.random.IntN(b.size+1), b.most-1
	}
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	pages := (b.posts + b.size - 1) / b.size
	if n = max(n, 1); n <= pages {
		var text strings.Builder
		text.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>`)
		if n < pages {
			fmt.Fprintf(&text, `<link rel="next" href="/feed?page=%d"/>`, n+1)
		}
		if b.last {
			fmt.Fprintf(&text, `<link rel="last" href="/feed?page=%d"/>`, pages)
		}
		for i := b.posts - (n-1)*b.size; i > max(0, b.posts-n*b.size); i-- {
			fmt.Fprintf(&text, `<entry><id>urn:%d</id><updated>2003-01-01T00:%02d:%02dZ</updated></entry>`, i, i/60, i%60)
		}
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(text.String()+"</feed>"))
	}
	return resp, r.Context().Err()
}

// Pages that are requested before they are linked lose no entry, whenever posts come. Otherwise a
// post that moves to the next page between the two requests would be on neither.
func TestGuessingOfMovingPages(t *testing.T) {
	for seed := range feedtest.Seeds(*movingPages) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 36))
			b := &growingBlog{random: random, size: 1 + random.IntN(5), most: random.IntN(6), last: random.IntN(3) == 0}
			b.posts = b.size * (3 + random.IntN(20))
			posts := b.posts
			h, err := (&feedhistory.Client{AllowPrivate: true, Transport: b, Tries: 1}).Fetch(t.Context(), "http://example.org/feed")
			require.NoError(t, err)
			require.Empty(t, h.Gaps)
			there := ids(h.Entries)
			for i := range posts {
				require.Contains(t, there, fmt.Sprintf("urn:%d", i+1), "seed %d", seed)
			}
			require.LessOrEqual(t, b.asked, h.Documents+chain.MostWasted, "seed %d", seed)
		})
	}
}

var movingPages = flag.Int("moving-pages", feedtest.Count(300), "the number of feeds that grow while they are read")

// A host that asks for patience is not guessed at, nor is one with a pace, and a budget holds.
func TestGuessingIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := chainOf(20, func(i int) string { return fmt.Sprintf("/%04d", 40-i) })
		paced := &feedhistory.Client{Pace: time.Second}
		_, wasted, _ := c.walk(t, paced)
		require.Zero(t, wasted)
		require.EqualValues(t, 1, c.most.Load())

		c = chainOf(20, func(i int) string { return fmt.Sprintf("/%04d", 40-i) })
		c.asked = make(chan string, 100)
		client := &feedhistory.Client{AllowPrivate: true, Transport: c, Budget: feedhistory.Budget{Documents: 10}}
		_, err := client.Fetch(t.Context(), "http://example.org/feed")
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.asked), 14)
	})
}

// Guessing changes nothing that a walk yields: not for any site of the tests, whatever the
// documents at the expected URLs are.
func TestGuessingChangesNothing(t *testing.T) {
	for _, file := range walks(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			if strings.Contains(text, "{{count}}") || strings.Contains(text, "#") && strings.Contains(text, "atom#") {
				t.Skip("what the site answers depends on the number of requests")
			}
			var reports []string
			for _, without := range []bool{true, false} {
				v := newVisit(t, feedtest.Serve(t, text), optionsOf(feedtest.Parse(text)))
				v.client.NoGuess = without
				v.walk(t.Context())
				report, _, _ := strings.Cut(v.report(), "\nrequest")
				reports = append(reports, report)
				v.client.CloseIdle()
			}
			require.Equal(t, reports[0], reports[1])
		})
	}
}

// The same for random chains, whose expected documents may be missing, refuse, or be of another feed.
func TestGuessingChangesNothingAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		start, n := rapid.IntRange(1, 30).Draw(rt, "start"), rapid.IntRange(2, 12).Draw(rt, "documents")
		c := chainOf(n, func(i int) string { return "" })
		at := start + n
		for i := 1; i < n; i++ {
			if at--; rapid.IntRange(0, 4).Draw(rt, "jumps") == 0 {
				at -= rapid.IntRange(1, 3).Draw(rt, "by")
			}
			c.paths[i] = fmt.Sprintf("/%03d", max(at, 0))
		}
		c.wait, c.next, c.last = 0, rapid.Bool().Draw(rt, "pages"), rapid.Bool().Draw(rt, "last")
		c.status = map[string]int{}
		for range rapid.IntRange(0, 3).Draw(rt, "faults") {
			c.status[fmt.Sprintf("/%03d", rapid.IntRange(0, 45).Draw(rt, "faulty"))] = rapid.SampledFrom([]int{403, 429, 500, 503, 404}).Draw(rt, "status")
		}
		var results []string
		for _, without := range []bool{true, false} {
			c.asked = make(chan string, 1000)
			client := &feedhistory.Client{AllowPrivate: true, Transport: c, Tries: 1, NoGuess: without}
			var b strings.Builder
			for doc, err := range items(client.Walk(t.Context(), "http://example.org/feed")) {
				if fmt.Fprintln(&b, err); doc != nil {
					fmt.Fprintln(&b, doc.URL, doc.Known().Older)
				}
			}
			results = append(results, b.String())
		}
		require.Equal(rt, results[0], results[1])
	})
}

// tally counts what the chains of a property result in, to show whether they are varied enough.
type tally map[string]int

func (n tally) add(yields []string) {
	for _, y := range yields {
		word, rest, _ := strings.Cut(y, " ")
		if word == "gap" {
			word, _, _ = strings.Cut(rest, ":")
		}
		n[word]++
	}
}

// Prefetching does not change what a walk yields.
func TestAheadIsAsInSequence(t *testing.T) {
	seen := tally{}
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		var sequence, overlapped []string
		var one, four *feedtest.Line
		synctest.Test(t, func(*testing.T) { sequence, one = c.all(1, seed) })
		require.NotEmpty(rt, sequence)
		require.LessOrEqual(rt, one.Most, 1)
		require.Zero(rt, one.Open, "bodies left open")
		seen.add(sequence)
		seen["requests"] += len(one.Requests())
		if c.again != nil && slices.Contains(one.Requests()[1:], c.start) {
			seen["read again"]++
		}
		for i := range uint64(3) { // as the answers come at other times
			synctest.Test(t, func(*testing.T) { overlapped, four = c.all(0, seed+i) })
			seen["requests not wanted"] += len(four.Requests()) - len(one.Requests())
			seen["most at a time"] = max(seen["most at a time"], four.Most)
			require.Equal(rt, sequence, overlapped)
			require.LessOrEqual(rt, four.Most, 4)
			require.Zero(rt, four.Open, "bodies left open")
			require.GreaterOrEqual(rt, len(four.Requests()), len(one.Requests()))
		}
	})
	t.Logf("%v", seen)
}

// A long chain is requested ahead, unless a host gets one request at a time.
func TestAhead(t *testing.T) {
	for perHost, most := range map[int]int{1: 1, 2: 2, 0: 4} {
		synctest.Test(t, func(t *testing.T) {
			_, l := linear(10).all(perHost, 1)
			require.Equal(t, most, l.Most, "PerHost %d", perHost)
			require.Len(t, l.Requests(), 10)
		})
	}
}

// Leaving at any point gives the beginning of the whole walk, and leaves nothing behind: a bubble
// does not end before its goroutines have.
func TestAheadLeft(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		leave := rapid.IntRange(1, 12).Draw(rt, "leave")
		later := rapid.Bool().Draw(rt, "leave later")
		var all, some []string
		var l *feedtest.Line
		synctest.Test(t, func(*testing.T) { all, _ = c.all(1, seed) })
		synctest.Test(t, func(*testing.T) {
			l = c.walk(context.Background(), 0, seed, func(n int, doc *feedhistory.Document, err error) bool {
				some = append(some, yielded(doc, err))
				if n == leave && later {
					time.Sleep(30 * time.Millisecond) // what is on its way goes on meanwhile
				}
				return n < leave
			})
			require.Zero(rt, l.Open, "bodies left open")
		})
		require.Equal(rt, all[:min(leave, len(all))], some)
	})
}

// A walk whose context is cancelled ends with the context's error wherever it would have requested
// another document in sequence.
func TestAheadCancelled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		after := rapid.IntRange(0, 12).Draw(rt, "after")
		later := rapid.Bool().Draw(rt, "cancel later")
		cancelled := func(perHost int) (yields []string) {
			synctest.Test(t, func(*testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if after == 0 {
					cancel()
				}
				l := c.walk(ctx, perHost, seed, func(n int, doc *feedhistory.Document, err error) bool {
					yields = append(yields, yielded(doc, err))
					if n == after {
						if later {
							time.Sleep(time.Hour) // what is on its way has arrived
						}
						cancel()
					}
					return true
				})
				require.Zero(rt, l.Open, "bodies left open")
			})
			return yields
		}
		require.Equal(rt, cancelled(1), cancelled(0))
	})
}

// Documents that arrived in advance are not yielded once the context is cancelled: the shortest
// case of the property above.
func TestAheadCancelledWithDocumentsThere(t *testing.T) {
	for _, perHost := range []int{1, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var urls []string
			var last error
			l := linear(10).walk(ctx, perHost, 1, func(n int, doc *feedhistory.Document, err error) bool {
				if last = err; err == nil {
					urls = append(urls, doc.URL)
				}
				if n == 2 {
					time.Sleep(time.Hour) // the next ones have arrived
					cancel()
				}
				return true
			})
			require.Equal(t, []string{"http://a.example/0", "http://a.example/1"}, urls, "PerHost %d", perHost)
			require.ErrorIs(t, last, context.Canceled)
			require.Zero(t, l.Open)
		})
	}
}

// linear is an archived feed of n documents without faults. The links come before the
// entries, which are long.
func linear(n int) *faultyChain {
	c := &faultyChain{replies: map[string]feedtest.Reply{}, start: "http://a.example/0"}
	for i := range n {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom">`)
		if i+1 < n {
			fmt.Fprintf(&b, `<link rel="prev-archive" href="/%d"/>`, i+1)
		}
		for j := range 20 {
			fmt.Fprintf(&b, "<entry><id>urn:%d:%d</id><title>%s</title></entry>\n", i, j, strings.Repeat("text ", 100))
		}
		b.WriteString("</feed>")
		c.replies["http://a.example/"+strconv.Itoa(i)] = feedtest.Reply{Body: b.String()}
	}
	return c
}

// A caller that leaves early has caused at most PerHost-1 requests in vain, however long it
// stays.
func TestAheadIsBounded(t *testing.T) {
	for _, perHost := range []int{0, 1, 2, 3, 8} {
		most := perHost
		if most == 0 {
			most = 4
		}
		for leave := 1; leave <= 12; leave += 3 {
			synctest.Test(t, func(t *testing.T) {
				l := linear(30).walk(t.Context(), perHost, 1, func(n int, doc *feedhistory.Document, err error) bool {
					require.NoError(t, err)
					require.Equal(t, "http://a.example/"+strconv.Itoa(n-1), doc.URL)
					time.Sleep(time.Hour)
					return n < leave
				})
				require.LessOrEqual(t, len(l.Requests()), leave+most-1)
				require.Equal(t, l.Requests(), slices.Compact(slices.Clone(l.Requests())))
				require.LessOrEqual(t, l.Most, most)
				require.Zero(t, l.Open)
			})
		}
		synctest.Test(t, func(t *testing.T) {
			yields, l := linear(30).all(perHost, 1)
			require.Len(t, yields, 30)
			require.Equal(t, 30, len(l.Requests()), "each document once")
			require.Equal(t, most, l.Most, "as many at a time as allowed")
		})
	}
}

// Requests that are open when the caller leaves a walk end at once, even if they would never
// have ended.
func TestAheadLeftEndsRequests(t *testing.T) {
	c := linear(10)
	for i := 1; i < 10; i++ {
		url := "http://a.example/" + strconv.Itoa(i)
		r := c.replies[url]
		r.Body, r.Stalls = r.Body[:len(r.Body)/2], true
		c.replies[url] = r
	}
	synctest.Test(t, func(t *testing.T) {
		var left time.Time
		l := c.walk(t.Context(), 0, 1, func(n int, _ *feedhistory.Document, err error) bool {
			require.NoError(t, err)
			time.Sleep(time.Second)
			left = time.Now()
			return false
		})
		require.Zero(t, time.Since(left))
		require.Zero(t, l.Open)
		require.Greater(t, len(l.Requests()), 1, "nothing was on its way")
	})
}

// Header fields that name other documents than the document itself mislead nobody: the
// document may overrule them until its end.
func TestAheadMisled(t *testing.T) {
	const count = 20
	c := &faultyChain{replies: map[string]feedtest.Reply{}, start: "http://a.example/0"}
	want := make([]string, count)
	for i := range count {
		url := "http://a.example/" + strconv.Itoa(i)
		body := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:%d</id></entry>`, i)
		if i+1 < count {
			body += fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i+1)
		}
		lie := fmt.Sprintf("/lie/%d", i)
		c.replies[url] = feedtest.Reply{Body: body + "</feed>", Header: []string{"Link: <" + lie + `>; rel="prev-archive"`}}
		c.replies["http://a.example"+lie] = feedtest.Reply{Body: linear(1).replies[c.start].Body, Stalls: true}
		want[i] = url
	}
	delete(c.replies, "http://a.example/lie/"+strconv.Itoa(count-1))
	last := c.replies[want[count-1]]
	last.Header = nil
	c.replies[want[count-1]] = last
	for _, perHost := range []int{1, 2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			l := &feedtest.Line{Serve: c.server(), Seed: 7}
			client := &feedhistory.Client{AllowPrivate: true, Transport: l, NoGuess: true, PerHost: perHost}
			started := time.Now()
			require.Equal(t, want, documentsOf(client.Walk(t.Context(), c.start)))
			require.Less(t, time.Since(started), 5*time.Second, "it waited for what was not wanted")
			require.Zero(t, l.Open)
			require.Equal(t, count, len(l.Requests()), "a Link header that the document may overrule is not acted upon early")
		})
	}
}

// A chain that leads back to itself is not requested a second time, nor is a document that has
// been processed, or that the budget does not allow.
func TestAheadKnowsWhatWillNotBeWanted(t *testing.T) {
	const count = 9
	for _, turn := range []int{0, 1, count - 1} {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			url := "http://a.example/" + strconv.Itoa(count-1)
			link := fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, turn)
			c.replies[url] = feedtest.Reply{Body: strings.Replace(c.replies[url].Body, "<entry>", link+"<entry>", 1)}
			yields, l := c.all(0, 1)
			require.Len(t, yields, count+1)
			require.Contains(t, yields[count], "gap loop: http://a.example/"+strconv.Itoa(turn))
			require.Equal(t, count, len(l.Requests()))

			c.processed = []string{"http://a.example/5"}
			yields, l = c.all(0, 1)
			require.Len(t, yields, 5)
			require.Equal(t, 5, len(l.Requests()))

			c.processed, c.budget.Documents = nil, 6
			yields, l = c.all(0, 1)
			require.Len(t, yields, 7)
			require.Contains(t, yields[6], "gap budget")
			require.Equal(t, 6, len(l.Requests()))
		})
	}
}

// If a request in vain made a host ask for a wait, the next request would be in vain as well.
// So the walk does not prefetch what a later link may overrule.
func TestAheadIsNotBarredByWhatNobodyWants(t *testing.T) {
	c := linear(2)
	c.replies[c.start] = feedtest.Reply{Body: `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/page"/>` +
		`<entry><id>urn:1</id></entry><link rel="prev-archive" href="/1"/></feed>`}
	c.replies["http://a.example/page"] = feedtest.Reply{Status: 503, Header: []string{"Retry-After: 3600"}}
	var outcomes [2][]string
	for i, perHost := range []int{1, 0} {
		synctest.Test(t, func(*testing.T) { outcomes[i], _ = c.all(perHost, 1) })
	}
	require.Equal(t, outcomes[0], outcomes[1])
}

// The same holds if the transport has not answered yet.
func TestAheadLeftBeforeAnAnswer(t *testing.T) {
	c := linear(3)
	synctest.Test(t, func(t *testing.T) {
		answer := c.server()
		l := &feedtest.Line{Serve: answer}
		client := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/0" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return l.RoundTrip(r)
		})}
		started := time.Now()
		for doc, err := range items(client.Walk(t.Context(), c.start)) {
			require.NoError(t, err)
			require.Len(t, doc.Entries, 20)
			break
		}
		require.Zero(t, time.Since(started))
		require.Zero(t, l.Open)
	})
}

// A walk requests nothing before the caller ranges over it. To range again, or twice at the
// same time, is to walk twice.
func TestAheadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := linear(8)
		l := &feedtest.Line{Serve: c.server(), Seed: 1}
		client := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: l}
		walk := client.Walk(t.Context(), c.start)
		synctest.Wait()
		require.Zero(t, len(l.Requests()))

		whole := documentsOf(walk)
		require.Len(t, whole, 8)
		require.Equal(t, 8, len(l.Requests()))
		for r := range walk { // and leave
			require.Equal(t, c.start, r.URL)
			break
		}
		before := len(l.Requests())
		require.Equal(t, whole, documentsOf(walk))
		require.Equal(t, before+8, len(l.Requests()))

		var both [2][]string
		var running sync.WaitGroup
		for i := range both {
			running.Go(func() { both[i] = documentsOf(walk) })
		}
		running.Wait()
		require.Equal(t, [2][]string{whole, whole}, both)
		require.LessOrEqual(t, l.Most, 4, "politeness is kept per client")
	})
}

func documentsOf(walk iter.Seq2[*feedhistory.Reading, error]) (urls []string) {
	for doc, err := range items(walk) {
		if err != nil {
			return append(urls, err.Error())
		}
		urls = append(urls, doc.URL)
	}
	return urls
}

// The time for a chain is that of its first bytes, not of its bodies.
func TestAheadOverlaps(t *testing.T) {
	const first, piece, count = 20 * time.Millisecond, 10 * time.Millisecond, 50
	took := func(perHost int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			client := &feedhistory.Client{NoGuess: true, PerHost: perHost, AllowPrivate: true, Transport: feedtest.RoundTrip(
				func(r *http.Request) (*http.Response, error) {
					body := c.replies[r.URL.String()].Body
					time.Sleep(first)
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1,
						Body: io.NopCloser(&drip{left: body, piece: len(body)/5 + 1, wait: piece}),
					}, nil
				})}
			started := time.Now()
			require.Len(t, documentsOf(client.Walk(t.Context(), c.start)), count)
			d = time.Since(started)
		})
		return d
	}
	require.Equal(t, count*(first+4*piece), took(1))
	require.Equal(t, count*first+4*piece, took(0)) // the figure aimed at is 1.15 times this
}

// A drip is a body whose pieces arrive at intervals, the first one at once.
type drip struct {
	left  string
	piece int
	wait  time.Duration
	begun bool
}

// Read implements io.Reader.
func (d *drip) Read(b []byte) (int, error) {
	if d.left == "" {
		return 0, io.EOF
	}
	if d.begun {
		time.Sleep(d.wait)
	}
	d.begun = true
	n := copy(b[:min(len(b), d.piece)], d.left)
	d.left = d.left[n:]
	return n, nil
}

// A transport that ends its goroutine, as a handler does that fails a test, ends the walk with
// an error.
func TestTransportEnds(t *testing.T) {
	c := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.RoundTrip(func(*http.Request) (*http.Response, error) {
		runtime.Goexit()
		return nil, nil
	})}
	_, err := c.Fetch(t.Context(), "http://a.example/feed")
	require.ErrorContains(t, err, "the request did not end")
}

// A chainer draws chains.
type chainer struct {
	*rapid.T
	urls []string
	kind feedhistory.Kind
	c    *faultyChain
	lies map[int]string // documents whose header names another one than they do themselves
}

// odds draws something rare: one in n.
func (g *chainer) odds(n int, what string) bool {
	return rapid.IntRange(1, n).Draw(g.T, what) == n
}

func (g *chainer) any() string { return rapid.SampledFrom(g.urls).Draw(g.T, "any document") }

func drawChain(t *rapid.T) *faultyChain {
	g := &chainer{T: t, lies: map[int]string{}, kind: rapid.SampledFrom([]feedhistory.Kind{feedhistory.KindArchived, feedhistory.KindArchived, feedhistory.KindPaged}).Draw(t, "kind")}
	for i := range rapid.SampledFrom([]int{9, 14, 20, 12, 16, 6, 3, 1}).Draw(t, "documents") {
		host := "a.example"
		if g.odds(25, "on another host") {
			host = "b.example"
		}
		g.urls = append(g.urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	g.c = &faultyChain{
		replies: map[string]feedtest.Reply{}, again: map[string]feedtest.Reply{}, etags: map[string]string{}, known: map[string]feedhistory.Known{},
		start: g.urls[0],
	}
	for i := range g.urls {
		if g.odds(6, "misleading header") {
			g.lies[i] = g.any()
		}
	}
	for i, url := range g.urls {
		g.c.replies[url] = g.reply(i)
	}
	g.copies()
	g.options()
	g.moves()
	return g.c
}

// options draws what does not belong to the feed.
func (g *chainer) options() {
	c := g.c
	if g.odds(6, "start elsewhere") {
		c.start = g.any()
	}
	limit := func(what string, most int) int {
		if !g.odds(5, "limit of "+what) {
			return 0
		}
		return rapid.IntRange(1, most).Draw(g.T, what)
	}
	c.budget = feedhistory.Budget{
		Documents: limit("documents", 12), Bytes: int64(limit("bytes", 20000)),
	}
	c.barren = limit("barren", 3)
	c.budget.BoundBarren(c.barren, 0)
	c.own = g.odds(6, "same origin")
	for _, url := range g.urls {
		if g.odds(40, "processed") {
			c.processed = append(c.processed, url)
		}
		if g.odds(30, "pending") {
			c.pending = append(c.pending, url)
		}
		if g.odds(4, "with an etag") {
			c.etags[url] = `"` + url + `"`
		}
		if g.odds(16, "known") {
			c.known[url] = feedhistory.Known{URL: url, ETag: c.etags[url], Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		} else if body := c.replies[url].Body; g.odds(16, "known by its digest") {
			c.known[url] = feedhistory.Known{URL: url, Digest: digestOf(body), Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		}
	}
}

// copies makes some documents repeat others, byte for byte.
func (g *chainer) copies() {
	for _, url := range g.urls {
		if g.odds(16, "repeated content") {
			g.c.replies[url] = g.c.replies[g.any()]
		}
	}
}

// moves makes the feed lead elsewhere when it is read a second time. What the feed says then must
// depend on nothing else, so no other document redirects to it.
func (g *chainer) moves() {
	c := g.c
	if g.kind != feedhistory.KindArchived || c.start != g.urls[0] || c.replies[c.start].Status != 0 || c.replies[c.start].Err != nil ||
		!g.odds(2, "moved") {
		return
	}
	for _, r := range c.replies {
		if slices.Contains(r.Header, "Location: "+c.start) {
			return
		}
	}
	c.again[c.start] = feedtest.Reply{Body: g.document(0)}
}

var (
	faults = append(make([]string, 80),
		"status", "status", "status", "cut", "aborted", "malformed", "page", "empty", "redirect", "redirect", "itself",
		"no answer", "stalls", "header", "reset", "announced")
	turns = append(make([]string, 60), "any", "any", "end", "nowhere", "file", "userinfo", "fragment", "relative")
)

// reply draws the answer for a URL, perhaps with a fault.
func (g *chainer) reply(i int) feedtest.Reply {
	body, fault := g.document(i), ""
	if i > 0 || g.odds(6, "fault at once") {
		fault = rapid.SampledFrom(faults).Draw(g.T, "fault")
	}
	cut := func() string { return body[:rapid.IntRange(0, len(body)-1).Draw(g.T, "cut")] }
	r := feedtest.Reply{Body: body}
	if lie, ok := g.lies[i]; ok {
		rel := map[feedhistory.Kind]string{feedhistory.KindArchived: "prev-archive", feedhistory.KindPaged: "next"}[g.kind]
		r.Header = append(r.Header, fmt.Sprintf("Link: <%s>; rel=%q", lie, rel))
	} else if g.odds(10, "with a Link header") {
		rel := rapid.SampledFrom([]string{"prev-archive", "next", "current", "next-archive"}).Draw(g.T, "relation")
		r.Header = append(r.Header, fmt.Sprintf("Link: <%s>; rel=%q", g.any(), rel))
	}
	switch fault {
	case "status":
		r = feedtest.Reply{Status: rapid.SampledFrom([]int{404, 410, 403, 500, 204, 206, 300, 503}).Draw(g.T, "status")}
	case "cut":
		r.Body = cut()
	case "aborted":
		r.Header = append(r.Header, "Content-Length: "+strconv.Itoa(len(body)))
		r.Body = cut()
	case "announced":
		r.Header = append(r.Header, "Content-Length: "+strconv.Itoa(len(body)))
	case "malformed":
		at := rapid.IntRange(0, len(body)-1).Draw(g.T, "place")
		r.Body = body[:at] + "</" + body[at:]
	case "page":
		r.Body = "<!doctype html><html><head><title>No</title></head><body><p>Sorry</body></html>"
	case "empty":
		r.Body = ""
	case "redirect":
		r.Status, r.Body = rapid.SampledFrom([]int{301, 302, 307, 308}).Draw(g.T, "status"), ""
		r.Header = []string{"Location: " + g.any()}
	case "itself":
		r.Status, r.Header = 302, []string{"Location: " + g.urls[i]}
	case "no answer":
		r.Err = errors.New("no answer")
	case "stalls":
		r.Body, r.Stalls = cut(), true
	case "reset":
		r.Body, r.End = cut(), errors.New("reset")
	case "header":
		r.Header = append(r.Header, "Content-Encoding: br")
	}
	return r
}

// older draws where the chain continues after a document.
func (g *chainer) older(i int) string {
	next := ""
	if i+1 < len(g.urls) {
		next = g.urls[i+1]
	}
	switch rapid.SampledFrom(turns).Draw(g.T, "older") {
	case "any": // a cycle, or chains that join
		return g.any()
	case "end":
		return ""
	case "nowhere":
		return "http://a.example/nowhere/" + strconv.Itoa(i)
	case "file":
		return "file:///etc/passwd"
	case "userinfo":
		return "http://user:secret@a.example/1"
	case "fragment":
		if next != "" {
			return next + "#part"
		}
	case "relative":
		return strconv.Itoa(i + 1)
	}
	return next
}

// document draws a feed document.
func (g *chainer) document(i int) string {
	var head, tail strings.Builder
	rss := g.odds(3, "RSS")
	prefix := map[bool]string{true: "atom:"}[rss]
	misled := g.misled(i)
	link := func(rel, href string) {
		if href == "" {
			return
		}
		b := &head
		if misled || g.odds(4, "after the entries") {
			b = &tail
		}
		fmt.Fprintf(b, "<%slink rel=%q href=%q/>\n", prefix, rel, href)
	}
	if g.odds(20, "misleading link") {
		link(rapid.SampledFrom([]string{"prev-archive", "next", "current", "first", "next-archive"}).Draw(g.T, "relation"), g.any())
	}
	if g.odds(3, "self") {
		link("self", g.urls[i])
	} else if g.odds(20, "wrong self") {
		link("self", g.any())
	}
	if g.odds(30, "complete") {
		head.WriteString("<fh:complete/>\n")
	}
	if g.kind == feedhistory.KindArchived {
		link("prev-archive", g.older(i))
		if i > 0 && !g.odds(6, "without a mark") {
			head.WriteString("<fh:archive/>\n")
			link("current", g.urls[0])
			link("next-archive", g.urls[i-1])
		}
	} else {
		link("next", g.older(i))
		if i > 0 && g.odds(2, "with its neighbours") {
			link("previous", g.urls[i-1])
			link("first", g.urls[0])
		}
	}
	entries, deleted := g.entries(i, rss)
	if rss {
		return `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"` +
			"><channel><title>Feed</title>\n" + head.String() + entries + tail.String() + "</channel></rss>\n"
	}
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"` +
		` xmlns:at="http://purl.org/atompub/tombstones/1.0"><title>Feed</title>` + "\n" +
		head.String() + deleted + entries + tail.String() + "</feed>\n"
}

// misled reports whether all links of a document come after its entries, while a header field
// names another document.
func (g *chainer) misled(i int) bool {
	_, ok := g.lies[i]
	return ok
}

// entries draws the entries of a document: its own, or some that others share.
func (g *chainer) entries(i int, rss bool) (entries, deleted string) {
	var b strings.Builder
	id := func() int {
		if g.odds(3, "shared entry") {
			return rapid.IntRange(0, 5).Draw(g.T, "id")
		}
		return 100*(i+1) + rapid.IntRange(0, 50).Draw(g.T, "id")
	}
	for range rapid.IntRange(0, 4).Draw(g.T, "entries") {
		text := strings.Repeat("text ", rapid.SampledFrom([]int{0, 10, 400}).Draw(g.T, "length"))
		if rss {
			fmt.Fprintf(&b, "<item><guid>urn:%d</guid><title>%s</title></item>\n", id(), text)
			continue
		}
		fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>%s</title><updated>2003-12-0%dT00:00:00Z</updated></entry>\n",
			id(), text, rapid.IntRange(1, 3).Draw(g.T, "day"))
	}
	if g.odds(10, "deleted") {
		deleted = fmt.Sprintf("<at:deleted-entry ref=\"urn:%d\" when=\"2003-12-02T00:00:00Z\"/>\n", id())
	}
	return b.String(), deleted
}

// A faultyChain is a feed with faults, and a walk over it.
type faultyChain struct {
	replies map[string]feedtest.Reply
	again   map[string]feedtest.Reply // what a URL answers from the second request on, where that differs
	etags   map[string]string

	start     string
	budget    feedhistory.Budget
	barren    int // of the budget
	processed []string
	pending   []string
	known     map[string]feedhistory.Known
	own       bool // OneOrigin
}

// GoString shows a chain for which a property fails.
func (c *faultyChain) GoString() string {
	var b strings.Builder
	show := func(title string, replies map[string]feedtest.Reply) {
		for url, r := range replies {
			fmt.Fprintf(&b, "-- %s%s --\nstatus %d, %v, end %v, stalls %v, error %v\n%s\n", url, title, r.Status, r.Header, r.End, r.Stalls, r.Err, r.Body)
		}
	}
	show("", c.replies)
	show(" (again)", c.again)
	fmt.Fprintf(&b, "etags %v\nstart %s\nbudget %d %d %d\nprocessed %v\npending %v\nknown %v\nsame origin %v\n", c.etags, c.start,
		c.budget.Documents, c.budget.Bytes, c.barren, c.processed, c.pending, c.known, c.own)
	return b.String()
}

// String returns what GoString returns.
func (c *faultyChain) String() string { return c.GoString() }

// server returns a function that answers as the chain does, from its beginning.
func (c *faultyChain) server() func(*http.Request) feedtest.Reply {
	counts := map[string]int{}
	return func(r *http.Request) feedtest.Reply {
		url := r.URL.String()
		counts[url]++
		says, ok := c.replies[url]
		if changed, changes := c.again[url]; changes && counts[url] > 1 {
			says = changed
		}
		etag := c.etags[url]
		switch {
		case !ok:
			return feedtest.Reply{Status: http.StatusNotFound}
		case etag == "" || says.Status != 0:
			return says
		case etag == r.Header.Get("If-None-Match"):
			return feedtest.Reply{Status: http.StatusNotModified}
		}
		says.Header = append(slices.Clone(says.Header), "Etag: "+etag)
		return says
	}
}

// walk walks over the chain on its own line, and calls visit for each yield until that returns
// false. PerHost is as in Client.
func (c *faultyChain) walk(ctx context.Context, perHost int, seed uint64, visit func(n int, doc *feedhistory.Document, err error) bool) *feedtest.Line {
	l := &feedtest.Line{Serve: c.server(), Seed: seed}
	client := &feedhistory.Client{
		AllowPrivate: true, Transport: l, Budget: c.budget,
		NoGuess: true, PerHost: perHost, OneOrigin: c.own,
	}
	n := 0
	for doc, err := range items(walkFrom(ctx, client, c.start, c.past())) {
		if n++; !visit(n, doc, err) {
			break
		}
	}
	return l
}

func (c *faultyChain) past() *memory {
	return &memory{
		Processed: func(url string) bool { return slices.Contains(c.processed, url) },
		Known:     func(url string) feedhistory.Known { return c.known[url] },
		Pending:   c.pending,
	}
}

// all returns everything that a walk yields.
func (c *faultyChain) all(perHost int, seed uint64) (yields []string, l *feedtest.Line) {
	l = c.walk(context.Background(), perHost, seed, func(_ int, doc *feedhistory.Document, err error) bool {
		yields = append(yields, yielded(doc, err))
		return true
	})
	return yields, l
}

// yielded describes a yield of a walk completely, except for times.
func yielded(doc *feedhistory.Document, err error) string {
	gap, _ := errors.AsType[*feedhistory.Gap](err)
	unchanged, _ := errors.AsType[*same](err)
	switch {
	case err == nil:
		return "document " + contents(doc)
	case gap != nil && gap.Document != nil:
		return fmt.Sprintf("gap %v\nwith %s", gap, contents(gap.Document))
	case gap != nil:
		return fmt.Sprintf("gap %v", gap)
	case unchanged != nil:
		return fmt.Sprintf("unchanged %s %+v", unchanged.Response.Requested, unchanged.Known)
	}
	return "error " + err.Error()
}

func contents(d *feedhistory.Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s as %s, %v, permanent %q, %v\n", d.URL, d.Response.Requested, d.Kind(), d.Response.Permanent, d.Links)
	for _, e := range d.Entries {
		fmt.Fprintf(&b, "%s %v %v\n", e.ID, e.Updated, e.Links)
	}
	for _, t := range d.Deleted {
		fmt.Fprintf(&b, "deleted %s %v\n", t.Ref, t.When)
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "note %v\n", n)
	}
	return b.String()
}
