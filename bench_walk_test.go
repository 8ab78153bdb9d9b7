//go:build unix

package feedhistory_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A slowSite serves an archived feed of n documents of about 200 KB at /1 … /n,
// each linked from the one before. The first byte comes after wait, the rest
// over drip.
type slowSite struct {
	n          int
	wait, drip time.Duration
	head, tail string // of a document: up to the end of its first entry, and the rest
}

func newSlowSite(n int, wait, drip time.Duration) *slowSite {
	head, tail, _ := strings.Cut(feedtest.Generated("atom", 50, 4<<10), "</entry>")
	return &slowSite{n, wait, drip, head, "</entry>" + tail}
}

func (s *slowSite) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	i, _ := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
	head := strings.Replace(s.head, "urn:uuid:1225", fmt.Sprintf("urn:uuid:%d", i), 1)
	head = strings.ReplaceAll(head, "http://example.org/", "http://"+req.Host+"/") // its xml:base
	if i == 1 {                                                                    // the subscription document
		head = strings.Replace(head, "<fh:archive/>", "", 1)
	}
	if older := "/2003/10/index.atom"; i < s.n {
		head = strings.Replace(head, older, fmt.Sprintf("/%d", i+1), 1)
	} else {
		head = strings.Replace(head, `<link rel="prev-archive" href="`+older+`"/>`, "", 1)
	}
	w.Header().Set("Content-Type", "application/atom+xml")
	length := len(head) + len(s.tail)
	w.Header().Set("Content-Length", strconv.Itoa(length))
	start := time.Now() // sleeping overshoots: it must not add up
	time.Sleep(s.wait)
	body := io.MultiReader(strings.NewReader(head), strings.NewReader(s.tail))
	if s.drip == 0 {
		_, _ = io.Copy(w, body)
		return
	}
	const pieces = 20
	for i := range pieces {
		time.Sleep(time.Until(start.Add(s.wait + s.drip*time.Duration(i)/(pieces-1))))
		_, _ = io.CopyN(w, body, int64(length/pieces+1))
		_ = http.NewResponseController(w).Flush()
	}
}

// BenchmarkWalk reads 100 documents with the overlapped walk, in sequence, and with a plain
// loop of http.Get and gofeed. The metric "of-limit" is the time as a multiple of the
// minimum for a chain: n times to the first byte, plus the transfer of the last document.
func BenchmarkWalk(b *testing.B) {
	n := feedtest.Scaled(100, 4)
	for _, pace := range []struct{ wait, drip time.Duration }{
		{20 * time.Millisecond, 50 * time.Millisecond},
		{100 * time.Millisecond, 50 * time.Millisecond},
		{0, 0},
	} {
		server := httptest.NewServer(newSlowSite(n, pace.wait, pace.drip))
		limit := time.Duration(n)*pace.wait + pace.drip
		run := func(name string, walk func(b *testing.B)) {
			b.Run(fmt.Sprintf("wait=%v,drip=%v/%s", pace.wait, pace.drip, name), func(b *testing.B) {
				for b.Loop() {
					walk(b)
				}
				if limit > 0 {
					b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(limit), "of-limit")
				}
			})
		}
		run("overlapped", func(b *testing.B) { rangeOver(b, server.URL+"/1", 0, n) })
		run("sequential", func(b *testing.B) { rangeOver(b, server.URL+"/1", 1, n) })
		run("plain-loop", func(b *testing.B) { plainLoop(b, server.URL+"/1", n) })
		server.Close()
	}
}

// BenchmarkWalkAhead reads 61 documents whose names can be told, or cannot. The metric
// "of-sequential" is the time as a part of that of a walk that makes one request after
// another.
func BenchmarkWalkAhead(b *testing.B) {
	n := feedtest.Scaled(61, 8)
	month := func(i int) string {
		return time.Date(2019, time.Month(6-i), 1, 0, 0, 0, 0, time.UTC).Format("/2006/01/")
	}
	random := func(i int) string { return fmt.Sprintf("/%x", uint64((i+7)*(i+7))*2654435761%1000003) }
	for _, test := range []struct {
		name  string
		site  *namedChain
		known bool // by their validators
	}{
		{"numbers", chainOf(n, func(i int) string { return fmt.Sprintf("/archive-%d", n-1-i) }), false},
		{"months", chainOf(n, month), false},
		{"months with holes", chainOf(n, func(i int) string { return month(i + i/10) }), false},
		{"pages", pagesOf(n, false), false},
		{"pages with last", pagesOf(n, true), false},
		{"random", chainOf(n, random), false},
		{"random, known", chainOf(n, random), true},
	} {
		b.Run(test.name, func(b *testing.B) {
			site, known := test.site, map[string]feedhistory.Known{}
			read := func(noGuess bool) time.Duration {
				site.asked = make(chan string, 2*n)
				c := &feedhistory.Client{AllowPrivate: true, Transport: site, NoGuess: noGuess}
				past := &memory{Known: func(url string) feedhistory.Known { return known[url] }}
				started, documents := time.Now(), 0
				for r, err := range walkFrom(b.Context(), c, "http://example.org/feed", past) {
					require.NoError(b, err)
					require.Empty(b, r.Gaps)
					if r.End {
						break
					}
					if documents++; test.known && r.Document != nil && documents > 1 {
						known[r.URL] = r.Known
					}
				}
				require.Equal(b, n, documents)
				return time.Since(started)
			}
			read(true)
			compare(b, read)
		})
	}
	b.Run("wait=20ms,drip=50ms", func(b *testing.B) {
		server := httptest.NewServer(newSlowSite(n, 20*time.Millisecond, 50*time.Millisecond))
		defer server.Close()
		compare(b, func(noGuess bool) time.Duration {
			started := time.Now()
			rangeOver(b, server.URL+"/1", map[bool]int{true: 1}[noGuess], n)
			return time.Since(started)
		})
	})
}

// compare reports the time of a walk as a part of that of one without guesses.
func compare(b *testing.B, read func(noGuess bool) time.Duration) {
	var ahead, sequential time.Duration
	for b.Loop() {
		ahead += read(false)
		sequential += read(true)
	}
	b.ReportMetric(float64(ahead)/float64(sequential), "of-sequential")
}

func rangeOver(b *testing.B, url string, perHost, n int) {
	c := &feedhistory.Client{AllowPrivate: true, PerHost: perHost}
	defer c.CloseIdle()
	documents := 0
	for _, err := range items(c.Walk(context.Background(), url)) {
		require.NoError(b, err)
		documents++
	}
	require.Equal(b, n, documents)
}

// plainLoop is what one would write without a library.
func plainLoop(b *testing.B, url string, n int) {
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for documents := 1; ; documents++ {
		resp, err := client.Get(url)
		require.NoError(b, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(b, err)
		resp.Body.Close()
		_, err = gofeed.NewParser().ParseString(string(text))
		require.NoError(b, err)
		_, rest, found := strings.Cut(string(text), `<link rel="prev-archive" href="`) // gofeed drops it
		if !found {
			require.Equal(b, n, documents)
			return
		}
		path, _, _ := strings.Cut(rest, `"`)
		url = url[:strings.LastIndexByte(url, '/')] + path
	}
}

// BenchmarkWalkMemory ranges over 10,000 documents, and reports by how much the heap grew.
func BenchmarkWalkMemory(b *testing.B) {
	n := feedtest.Scaled(10_000, 20)
	site := newSlowSite(n, 0, 0)
	server := feedtest.Server(b, site)
	for b.Loop() {
		c := &feedhistory.Client{AllowPrivate: true, Budget: feedhistory.Budget{Bytes: 1 << 40}}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		start, peak, documents := m.HeapInuse, m.HeapInuse, 0
		for _, err := range items(c.Walk(context.Background(), server.URL+"/1")) {
			require.NoError(b, err)
			if documents++; documents%100 == 0 {
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		}
		require.Equal(b, n, documents)
		c.CloseIdle()
		b.ReportMetric(float64(peak-start)/(1<<20), "MB-above-start")
	}
}

// BenchmarkPoll compares polls of an unchanged document with the bare request that they
// need.
func BenchmarkPoll(b *testing.B) {
	text := feedtest.Generated("atom", 15, 1500)
	validators := true
	server := feedtest.Server(b, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if validators {
			w.Header().Set("ETag", `"1"`)
			if req.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = io.WriteString(w, text)
	}))
	ctx := context.Background()
	for _, mode := range []string{"304", "digest"} {
		validators = mode == "304"
		c := &feedhistory.Client{AllowPrivate: true}
		doc, err := c.Get(ctx, server.URL)
		require.NoError(b, err)
		known := doc.Known()
		b.Run(mode+"/poll", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r, err := c.Poll(ctx, server.URL, known); err != nil || !r.Unchanged {
					b.Fatal(err)
				}
			}
		})
		bare := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		b.Run(mode+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
				require.NoError(b, err)
				req.Header.Set("User-Agent", "feedhistory/"+feedhistory.Version)
				req.Header.Set("Accept", "application/atom+xml, application/rss+xml")
				if known.ETag != "" {
					req.Header.Set("If-None-Match", known.ETag)
				}
				resp, err := bare.Do(req)
				require.NoError(b, err)
				_, err = io.ReadAll(resp.Body)
				require.NoError(b, err)
				resp.Body.Close()
			}
		})
		c.CloseIdle()
		bare.CloseIdleConnections()
	}
}

// BenchmarkMerge merges a million small entries, and reports what a History adds to the
// documents' own text and model.
func BenchmarkMerge(b *testing.B) {
	const perDocument = 1000
	total := feedtest.Scaled(1_000_000, 2*perDocument)
	var docs []*feedhistory.Document
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range total / perDocument {
		text := strings.ReplaceAll(feedtest.Generated("atom", perDocument, 100), "urn:uuid:1225c695", fmt.Sprintf("urn:uuid:%08d", i))
		doc, err := feedhistory.Parse(strings.NewReader(text), "http://example.org/")
		require.NoError(b, err)
		docs = append(docs, doc)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	documents := float64(after.HeapAlloc-before.HeapAlloc) / float64(total)
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		h, err := feedhistory.Merge(feedhistory.Readings(docs...))
		require.NoError(b, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Len(b, h.Entries, total)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(total), "B/entry-of-History")
		b.ReportMetric(documents, "B/entry-of-Documents")
	}
}
