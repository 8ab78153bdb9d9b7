package feedhistory

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/feedtest"
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
	rel, link := RelPrevArchive, ""
	if c.next {
		rel = RelNext
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
func (c *namedChain) walk(t *testing.T, client *Client) (took time.Duration, wasted, documents int) {
	t.Helper()
	c.asked = make(chan string, 10_000)
	client.Transport, client.Retry.Tries = c, 1
	started := time.Now()
	for doc, err := range client.Walk(t.Context(), "http://example.org"+c.paths[0], nil) {
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
		client func(*Client)
	}{
		"numbers":            {chainOf(n, func(i int) string { return fmt.Sprintf("/archive-%d", n-1-i) }), 0.35, 0, nil},
		"padded numbers":     {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d.atom", n-1-i) }), 0.35, 0, nil},
		"pages":              {pagesOf(n, false), 0.35, 4, nil},
		"pages with a last":  {pagesOf(n, true), 0.55, 0, nil},
		"pages, no guessing": {pagesOf(n, false), 1.05, 0, func(c *Client) { c.Policy.NoGuess = true }},
		"tens":               {chainOf(n, func(i int) string { return fmt.Sprintf("/feed?start=%d", 10*i+10) }), 0.35, 4, nil},
		"months":             {chainOf(n, month), 0.4, 4, nil},
		"months, holes":      {chainOf(n, func(i int) string { return month(i + i/10) }), 0.9, 4, nil},
		"random":             {chainOf(n, func(i int) string { return fmt.Sprintf("/%x", uint64(i+7)*2654435761%1000003) }), 1.05, 0, nil},
		"random, decimal":    {chainOf(n, func(i int) string { return fmt.Sprintf("/%d", 1000000+uint64((i+7)*(i+7))*2654435761%1000003) }), 1.05, 0, nil},
		"no guess":           {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d", n-1-i) }), 1.05, 0, func(c *Client) { c.Policy.NoGuess = true }},
		"one at a time":      {chainOf(n, func(i int) string { return fmt.Sprintf("/%04d", n-1-i) }), 1.05, 0, func(c *Client) { c.Policy.PerHost = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := new(Client)
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
	for seed := range uint64(*movingPages) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 36))
			b := &growingBlog{random: random, size: 1 + random.IntN(5), most: random.IntN(6), last: random.IntN(3) == 0}
			b.posts = b.size * (3 + random.IntN(20))
			posts := b.posts
			h, err := (&Client{Transport: b, Retry: Retry{Tries: 1}}).Fetch(t.Context(), "http://example.org/feed")
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

var movingPages = flag.Int("moving-pages", 300, "the number of feeds that grow while they are read")

// A host that asks for patience is not guessed at, nor is one with a pace, and a budget holds.
func TestGuessingIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := chainOf(20, func(i int) string { return fmt.Sprintf("/%04d", 40-i) })
		paced := &Client{Pace: time.Second}
		_, wasted, _ := c.walk(t, paced)
		require.Zero(t, wasted)
		require.EqualValues(t, 1, c.most.Load())

		c = chainOf(20, func(i int) string { return fmt.Sprintf("/%04d", 40-i) })
		c.asked = make(chan string, 100)
		client := &Client{Transport: c, Budget: Budget{Documents: 10}}
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
				v.client.Policy.NoGuess = without
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
			client := &Client{Transport: c, Retry: Retry{Tries: 1}, Policy: Policy{NoGuess: without}}
			var b strings.Builder
			for doc, err := range client.Walk(t.Context(), "http://example.org/feed", nil) {
				if fmt.Fprintln(&b, err); doc != nil {
					fmt.Fprintln(&b, doc.URL, doc.Known().Older)
				}
			}
			results = append(results, b.String())
		}
		require.Equal(rt, results[0], results[1])
	})
}
