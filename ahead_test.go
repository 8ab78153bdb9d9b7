package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A reply is what a server in memory says to a request. Its zero value is an
// empty 200.
type reply struct {
	status int
	header []string // "Name: value"
	body   string
	end    error // of the body; nil: a normal end
	stalls bool  // the body never ends
	err    error // there is no answer at all
}

// A line is a RoundTripper without sockets, for use in a bubble: answers take
// their time, and bodies come in pieces. It watches what its user does.
type line struct {
	serve func(*http.Request) reply
	seed  uint64 // of the delays and pieces; 0: everything comes at once

	mu       sync.Mutex
	requests []string       // in order
	flying   map[string]int // by host: requests whose body is not closed yet
	most     int            // of them at a time
	pending  int            // bodies that are not closed
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	if l.flying == nil {
		l.flying = map[string]int{}
	}
	l.requests = append(l.requests, r.URL.String())
	l.flying[r.URL.Host]++
	l.pending++
	l.most = max(l.most, l.flying[r.URL.Host])
	says := l.serve(r)
	l.mu.Unlock()
	random := rand.New(rand.NewPCG(l.seed, uint64(len(says.body))))
	if err := l.delay(r.Context(), random); err != nil {
		l.done(r)
		return nil, err
	}
	if says.err != nil {
		l.done(r)
		return nil, says.err
	}
	resp := &http.Response{
		StatusCode: max(says.status, 0), Header: http.Header{}, ContentLength: -1, Request: r,
		Body: &pieces{line: l, r: r, random: random, left: says.body, end: says.end, stalls: says.stalls},
	}
	if resp.StatusCode == 0 {
		resp.StatusCode = http.StatusOK
	}
	for _, field := range says.header {
		name, value, _ := strings.Cut(field, ": ")
		resp.Header.Add(name, value)
	}
	if length := resp.Header.Get("Content-Length"); length != "" {
		resp.ContentLength, _ = strconv.ParseInt(length, 10, 64)
	}
	return resp, nil
}

func (l *line) delay(ctx context.Context, random *rand.Rand) error {
	if l.seed == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond)))):
		return nil
	}
}

func (l *line) done(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying[r.URL.Host]--
	l.pending--
}

// requested returns how many requests there were.
func (l *line) requested() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// pieces are a body that comes bit by bit.
type pieces struct {
	line   *line
	r      *http.Request
	random *rand.Rand
	left   string
	end    error
	stalls bool
	closed bool
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	if p.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if err := p.line.delay(p.r.Context(), p.random); err != nil {
		return 0, err
	}
	if p.left == "" {
		if p.stalls {
			<-p.r.Context().Done()
			return 0, p.r.Context().Err()
		}
		if p.end != nil {
			return 0, p.end
		}
		return 0, io.EOF
	}
	size := len(p.left)
	if p.line.seed != 0 {
		size = 1 + p.random.IntN([]int{3, 50, 500, 5000}[p.random.IntN(4)])
	}
	n := copy(b[:min(len(b), size)], p.left)
	p.left = p.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (p *pieces) Close() error {
	if !p.closed {
		p.closed = true
		p.line.done(p.r)
	}
	return nil
}

// A chain is a feed with faults, and a walk over it.
type chain struct {
	replies map[string]reply
	again   map[string]reply // what a URL answers from the second request on, where that differs
	etags   map[string]string

	start     string
	budget    Budget
	more      int // how many documents Budget.More grants; 0: there is no such hook
	processed []string
	pending   []string
	known     map[string]Known
	own       bool // SameOrigin
}

// GoString shows a chain that a property does not hold for.
func (c *chain) GoString() string {
	var b strings.Builder
	show := func(title string, replies map[string]reply) {
		for url, r := range replies {
			fmt.Fprintf(&b, "-- %s%s --\nstatus %d, %v, end %v, stalls %v, error %v\n%s\n", url, title, r.status, r.header, r.end, r.stalls, r.err, r.body)
		}
	}
	show("", c.replies)
	show(" (again)", c.again)
	fmt.Fprintf(&b, "etags %v\nstart %s\nbudget %d %d %d, more %d\nprocessed %v\npending %v\nknown %v\nsame origin %v\n", c.etags, c.start,
		c.budget.Documents, c.budget.Bytes, c.budget.Barren, c.more, c.processed, c.pending, c.known, c.own)
	return b.String()
}

// String is GoString.
func (c *chain) String() string { return c.GoString() }

// server answers as the chain does, from its beginning.
func (c *chain) server() func(*http.Request) reply {
	counts := map[string]int{}
	return func(r *http.Request) reply {
		url := r.URL.String()
		counts[url]++
		says, ok := c.replies[url]
		if changed, changes := c.again[url]; changes && counts[url] > 1 {
			says = changed
		}
		etag := c.etags[url]
		switch {
		case !ok:
			return reply{status: http.StatusNotFound}
		case etag == "" || says.status != 0:
			return says
		case etag == r.Header.Get("If-None-Match"):
			return reply{status: http.StatusNotModified}
		}
		says.header = append(slices.Clone(says.header), "Etag: "+etag)
		return says
	}
}

// walk walks over the chain on a line of its own, and returns what is yielded,
// up to the given number; 0: all. PerHost is as in Policy.
func (c *chain) walk(ctx context.Context, perHost int, seed uint64, visit func(n int, doc *Document, err error) bool) *line {
	l := &line{serve: c.server(), seed: seed}
	client := &Client{
		HTTP: &http.Client{Transport: l}, Budget: c.budget,
		Policy: Policy{PerHost: perHost, SameOrigin: c.own},
	}
	if c.more > 0 {
		client.Budget.More = func(used Budget) Budget {
			return Budget{Documents: c.more, Bytes: used.Bytes + 1, Barren: used.Barren + 1}
		}
	}
	n := 0
	for doc, err := range client.Walk(ctx, c.start, c.options()) {
		if n++; !visit(n, doc, err) {
			break
		}
	}
	return l
}

func (c *chain) options() *WalkOptions {
	return &WalkOptions{
		Processed: func(url string) bool { return slices.Contains(c.processed, url) },
		Known:     func(url string) Known { return c.known[url] },
		Pending:   c.pending,
	}
}

// all returns everything that a walk yields.
func (c *chain) all(perHost int, seed uint64) (yields []string, l *line) {
	l = c.walk(context.Background(), perHost, seed, func(_ int, doc *Document, err error) bool {
		yields = append(yields, yielded(doc, err))
		return true
	})
	return yields, l
}

// yielded says all that is to be known of what a walk yields, but for times.
func yielded(doc *Document, err error) string {
	gap, _ := errors.AsType[*Gap](err)
	unchanged, _ := errors.AsType[*Unchanged](err)
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

func contents(d *Document) string {
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

// A chainer draws chains.
type chainer struct {
	*rapid.T
	urls []string
	kind Kind
	c    *chain
	lies map[int]string // documents whose header names another one than they do themselves
}

// odds draws something that is rare: one in n.
func (g *chainer) odds(n int, what string) bool {
	return rapid.IntRange(1, n).Draw(g.T, what) == n
}

func (g *chainer) any() string { return rapid.SampledFrom(g.urls).Draw(g.T, "any document") }

func drawChain(t *rapid.T) *chain {
	g := &chainer{T: t, lies: map[int]string{}, kind: rapid.SampledFrom([]Kind{Archived, Archived, Paged}).Draw(t, "kind")}
	for i := range rapid.SampledFrom([]int{9, 14, 20, 12, 16, 6, 3, 1}).Draw(t, "documents") {
		host := "a.example"
		if g.odds(25, "on another host") {
			host = "b.example"
		}
		g.urls = append(g.urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	g.c = &chain{
		replies: map[string]reply{}, again: map[string]reply{}, etags: map[string]string{}, known: map[string]Known{},
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

// options draws what is not the feed's own.
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
	c.budget = Budget{
		Documents: limit("documents", 12), Bytes: int64(limit("bytes", 20000)), Barren: limit("barren", 3),
	}
	c.more = limit("more documents", 16)
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
			c.known[url] = Known{URL: url, ETag: c.etags[url], Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		} else if body := c.replies[url].body; g.odds(16, "known by its digest") {
			digest := newBodyDigest()
			_, _ = io.WriteString(digest, body)
			c.known[url] = Known{URL: url, Digest: digest.String(), Kind: g.kind, Older: g.older(slices.Index(g.urls, url))}
		}
	}
}

// copies has some documents repeat others to the byte.
func (g *chainer) copies() {
	for _, url := range g.urls {
		if g.odds(16, "repeated content") {
			g.c.replies[url] = g.c.replies[g.any()]
		}
	}
}

// moves has the feed lead elsewhere when it is read a second time. What the
// feed says then must not depend on anything but that: so no other document
// redirects to it.
func (g *chainer) moves() {
	c := g.c
	if g.kind != Archived || c.start != g.urls[0] || c.replies[c.start].status != 0 || c.replies[c.start].err != nil ||
		!g.odds(2, "moved") {
		return
	}
	for _, r := range c.replies {
		if slices.Contains(r.header, "Location: "+c.start) {
			return
		}
	}
	c.again[c.start] = reply{body: g.document(0)}
}

var (
	faults = append(make([]string, 80),
		"status", "status", "status", "cut", "aborted", "malformed", "page", "empty", "redirect", "redirect", "itself",
		"no answer", "stalls", "header", "reset", "announced")
	turns = append(make([]string, 60), "any", "any", "end", "nowhere", "file", "userinfo", "fragment", "relative")
)

// reply draws the answer of one URL, with a fault perhaps.
func (g *chainer) reply(i int) reply {
	body, fault := g.document(i), ""
	if i > 0 || g.odds(6, "fault at once") {
		fault = rapid.SampledFrom(faults).Draw(g.T, "fault")
	}
	cut := func() string { return body[:rapid.IntRange(0, len(body)-1).Draw(g.T, "cut")] }
	r := reply{body: body}
	if lie, ok := g.lies[i]; ok {
		rel := map[Kind]string{Archived: RelPrevArchive, Paged: RelNext}[g.kind]
		r.header = append(r.header, fmt.Sprintf("Link: <%s>; rel=%q", lie, rel))
	} else if g.odds(10, "with a Link header") {
		rel := rapid.SampledFrom([]string{RelPrevArchive, RelNext, RelCurrent, RelNextArchive}).Draw(g.T, "relation")
		r.header = append(r.header, fmt.Sprintf("Link: <%s>; rel=%q", g.any(), rel))
	}
	switch fault {
	case "status":
		r = reply{status: rapid.SampledFrom([]int{404, 410, 403, 500, 204, 206, 300, 503}).Draw(g.T, "status")}
	case "cut":
		r.body = cut()
	case "aborted":
		r.header = append(r.header, "Content-Length: "+strconv.Itoa(len(body)))
		r.body = cut()
	case "announced":
		r.header = append(r.header, "Content-Length: "+strconv.Itoa(len(body)))
	case "malformed":
		at := rapid.IntRange(0, len(body)-1).Draw(g.T, "place")
		r.body = body[:at] + "</" + body[at:]
	case "page":
		r.body = "<!doctype html><html><head><title>No</title></head><body><p>Sorry</body></html>"
	case "empty":
		r.body = ""
	case "redirect":
		r.status, r.body = rapid.SampledFrom([]int{301, 302, 307, 308}).Draw(g.T, "status"), ""
		r.header = []string{"Location: " + g.any()}
	case "itself":
		r.status, r.header = 302, []string{"Location: " + g.urls[i]}
	case "no answer":
		r.err = errors.New("no answer")
	case "stalls":
		r.body, r.stalls = cut(), true
	case "reset":
		r.body, r.end = cut(), errors.New("reset")
	case "header":
		r.header = append(r.header, "Content-Encoding: br")
	}
	return r
}

// older draws where the chain goes on after a document.
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
		link(rapid.SampledFrom([]string{RelPrevArchive, RelNext, RelCurrent, RelFirst, RelNextArchive}).Draw(g.T, "relation"), g.any())
	}
	if g.odds(3, "self") {
		link(RelSelf, g.urls[i])
	} else if g.odds(20, "wrong self") {
		link(RelSelf, g.any())
	}
	if g.odds(30, "complete") {
		head.WriteString("<fh:complete/>\n")
	}
	if g.kind == Archived {
		link(RelPrevArchive, g.older(i))
		if i > 0 && !g.odds(6, "without a mark") {
			head.WriteString("<fh:archive/>\n")
			link(RelCurrent, g.urls[0])
			link(RelNextArchive, g.urls[i-1])
		}
	} else {
		link(RelNext, g.older(i))
		if i > 0 && g.odds(2, "with its neighbours") {
			link(RelPrevious, g.urls[i-1])
			link(RelFirst, g.urls[0])
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

// misled reports whether a document's links all stand after its entries, while
// a header field names another document.
func (g *chainer) misled(i int) bool {
	_, ok := g.lies[i]
	return ok
}

// entries draws the entries of a document: its own, or some that others have.
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

// tally counts what the chains of a property come to, so that one sees whether
// they are worth their while.
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

// Requests ahead of time change nothing about what a walk yields.
func TestAheadIsAsInSequence(t *testing.T) {
	seen := tally{}
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		var sequence, overlapped []string
		var one, four *line
		synctest.Test(t, func(*testing.T) { sequence, one = c.all(1, seed) })
		require.NotEmpty(rt, sequence)
		require.LessOrEqual(rt, one.most, 1)
		require.Zero(rt, one.pending, "bodies left open")
		seen.add(sequence)
		seen["requests"] += one.requested()
		if c.again != nil && slices.Contains(one.requests[1:], c.start) {
			seen["read again"]++
		}
		for i := range uint64(3) { // as the answers come at other times
			synctest.Test(t, func(*testing.T) { overlapped, four = c.all(0, seed+i) })
			seen["requests not wanted"] += four.requested() - one.requested()
			seen["most at a time"] = max(seen["most at a time"], four.most)
			require.Equal(rt, sequence, overlapped)
			require.LessOrEqual(rt, four.most, 4)
			require.Zero(rt, four.pending, "bodies left open")
			require.GreaterOrEqual(rt, four.requested(), one.requested())
		}
	})
	t.Logf("%v", seen)
	require.Greater(t, seen["most at a time"], 1, "nothing was ever requested ahead")
}

// To leave at any point gives the beginning of the whole walk, and leaves
// nothing behind: a bubble does not end before its goroutines have.
func TestAheadLeft(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		leave := rapid.IntRange(1, 12).Draw(rt, "leave")
		later := rapid.Bool().Draw(rt, "leave later")
		var all, some []string
		var l *line
		synctest.Test(t, func(*testing.T) { all, _ = c.all(1, seed) })
		synctest.Test(t, func(*testing.T) {
			l = c.walk(context.Background(), 0, seed, func(n int, doc *Document, err error) bool {
				some = append(some, yielded(doc, err))
				if n == leave && later {
					time.Sleep(30 * time.Millisecond) // what is on its way goes on meanwhile
				}
				return n < leave
			})
			require.Zero(rt, l.pending, "bodies left open")
		})
		require.Equal(rt, all[:min(leave, len(all))], some)
	})
}

// A walk whose context is cancelled ends with the context's error wherever it
// would otherwise have requested a document more, as in sequence.
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
				l := c.walk(ctx, perHost, seed, func(n int, doc *Document, err error) bool {
					yields = append(yields, yielded(doc, err))
					if n == after {
						if later {
							time.Sleep(time.Hour) // what is on its way has arrived
						}
						cancel()
					}
					return true
				})
				require.Zero(rt, l.pending, "bodies left open")
			})
			return yields
		}
		require.Equal(rt, cancelled(1), cancelled(0))
	})
}

// Documents that have come ahead of time are not yielded once the context is
// cancelled: the shortest case of the property above.
func TestAheadCancelledWithDocumentsThere(t *testing.T) {
	for _, perHost := range []int{1, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var urls []string
			var last error
			l := linear(10).walk(ctx, perHost, 1, func(n int, doc *Document, err error) bool {
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
			require.Zero(t, l.pending)
		})
	}
}

// linear is an archived feed of n documents without faults. The links stand
// before the entries, which are long.
func linear(n int) *chain {
	c := &chain{replies: map[string]reply{}, start: "http://a.example/0"}
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
		c.replies["http://a.example/"+strconv.Itoa(i)] = reply{body: b.String()}
	}
	return c
}

// Whoever leaves early has caused no more than PerHost-1 requests that nobody
// wanted, however long they stay, and never as many as PerHost at a time more.
func TestAheadIsBounded(t *testing.T) {
	for _, perHost := range []int{0, 1, 2, 3, 8} {
		most := perHost
		if most == 0 {
			most = 4
		}
		for leave := 1; leave <= 12; leave += 3 {
			synctest.Test(t, func(t *testing.T) {
				l := linear(30).walk(t.Context(), perHost, 1, func(n int, doc *Document, err error) bool {
					require.NoError(t, err)
					require.Equal(t, "http://a.example/"+strconv.Itoa(n-1), doc.URL)
					time.Sleep(time.Hour)
					return n < leave
				})
				require.LessOrEqual(t, l.requested(), leave+most-1)
				require.Equal(t, l.requests, slices.Compact(slices.Clone(l.requests)))
				require.LessOrEqual(t, l.most, most)
				require.Zero(t, l.pending)
			})
		}
		synctest.Test(t, func(t *testing.T) {
			yields, l := linear(30).all(perHost, 1)
			require.Len(t, yields, 30)
			require.Equal(t, 30, l.requested(), "each document once")
			require.Equal(t, most, l.most, "as many at a time as allowed")
		})
	}
}

// What is on its way when a walk is left ends at once, though it would have
// taken for ever.
func TestAheadLeftEndsRequests(t *testing.T) {
	c := linear(10)
	for i := 1; i < 10; i++ {
		url := "http://a.example/" + strconv.Itoa(i)
		r := c.replies[url]
		r.body, r.stalls = r.body[:len(r.body)/2], true
		c.replies[url] = r
	}
	synctest.Test(t, func(t *testing.T) {
		var left time.Time
		l := c.walk(t.Context(), 0, 1, func(n int, _ *Document, err error) bool {
			require.NoError(t, err)
			time.Sleep(time.Second)
			left = time.Now()
			return false
		})
		require.Zero(t, time.Since(left))
		require.Zero(t, l.pending)
		require.Greater(t, l.requested(), 1, "nothing was on its way")
	})
}

// Header fields that name other documents than the chain goes on with mislead
// nobody: the document may overrule them until its end.
func TestAheadMisled(t *testing.T) {
	const count = 20
	c := &chain{replies: map[string]reply{}, start: "http://a.example/0"}
	want := make([]string, count)
	for i := range count {
		url := "http://a.example/" + strconv.Itoa(i)
		body := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:%d</id></entry>`, i)
		if i+1 < count {
			body += fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i+1)
		}
		lie := fmt.Sprintf("/lie/%d", i)
		c.replies[url] = reply{body: body + "</feed>", header: []string{"Link: <" + lie + `>; rel="prev-archive"`}}
		c.replies["http://a.example"+lie] = reply{body: linear(1).replies[c.start].body, stalls: true}
		want[i] = url
	}
	delete(c.replies, "http://a.example/lie/"+strconv.Itoa(count-1))
	last := c.replies[want[count-1]]
	last.header = nil
	c.replies[want[count-1]] = last
	for _, perHost := range []int{1, 2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{serve: c.server(), seed: 7}
			client := &Client{HTTP: &http.Client{Transport: l}, Policy: Policy{PerHost: perHost}}
			started := time.Now()
			require.Equal(t, want, documentsOf(client.Walk(t.Context(), c.start, nil)))
			require.Less(t, time.Since(started), 5*time.Second, "it waited for what was not wanted")
			require.Zero(t, l.pending)
			require.Equal(t, count, l.requested(), "a Link header that the document may overrule is not acted upon early")
		})
	}
}

// A chain that comes back on itself is not requested a second time, nor is what
// has been processed, nor what the budget does not allow.
func TestAheadKnowsWhatWillNotBeWanted(t *testing.T) {
	const count = 9
	for _, turn := range []int{0, 1, count - 1} {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			url := "http://a.example/" + strconv.Itoa(count-1)
			link := fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, turn)
			c.replies[url] = reply{body: strings.Replace(c.replies[url].body, "<entry>", link+"<entry>", 1)}
			yields, l := c.all(0, 1)
			require.Len(t, yields, count+1)
			require.Contains(t, yields[count], "gap loop: http://a.example/"+strconv.Itoa(turn))
			require.Equal(t, count, l.requested())

			c.processed = []string{"http://a.example/5"}
			yields, l = c.all(0, 1)
			require.Len(t, yields, 5)
			require.Equal(t, 5, l.requested())

			c.processed, c.budget.Documents = nil, 6
			yields, l = c.all(0, 1)
			require.Len(t, yields, 7)
			require.Contains(t, yields[6], "gap budget")
			require.Equal(t, 6, l.requested())
		})
	}
}

// A host that asks to be left alone when a document is requested of it which
// nobody wants in the end would be asked for the next one in vain. So what a
// later link may overrule is not requested ahead.
func TestAheadIsNotBarredByWhatNobodyWants(t *testing.T) {
	c := linear(2)
	c.replies[c.start] = reply{body: `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/page"/>` +
		`<entry><id>urn:1</id></entry><link rel="prev-archive" href="/1"/></feed>`}
	c.replies["http://a.example/page"] = reply{status: 503, header: []string{"Retry-After: 3600"}}
	var outcomes [2][]string
	for i, perHost := range []int{1, 0} {
		synctest.Test(t, func(*testing.T) { outcomes[i], _ = c.all(perHost, 1) })
	}
	require.Equal(t, outcomes[0], outcomes[1])
}

// Also where the transport has not answered yet.
func TestAheadLeftBeforeAnAnswer(t *testing.T) {
	c := linear(3)
	synctest.Test(t, func(t *testing.T) {
		answer := c.server()
		l := &line{serve: answer}
		client := &Client{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/0" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return l.RoundTrip(r)
		})}}
		started := time.Now()
		for doc, err := range client.Walk(t.Context(), c.start, nil) {
			require.NoError(t, err)
			require.Len(t, doc.Entries, 20)
			break
		}
		require.Zero(t, time.Since(started))
		require.Zero(t, l.pending)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A walk requests nothing until it is ranged over, and to range again, or twice
// at the same time, is to walk twice.
func TestAheadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := linear(8)
		l := &line{serve: c.server(), seed: 1}
		client := &Client{HTTP: &http.Client{Transport: l}}
		walk := client.Walk(t.Context(), c.start, nil)
		synctest.Wait()
		require.Zero(t, l.requested())

		whole := documentsOf(walk)
		require.Len(t, whole, 8)
		require.Equal(t, 8, l.requested())
		for doc := range walk { // and leave
			require.Equal(t, c.start, doc.URL)
			break
		}
		before := l.requested()
		require.Equal(t, whole, documentsOf(walk))
		require.Equal(t, before+8, l.requested())

		var both [2][]string
		var running sync.WaitGroup
		for i := range both {
			running.Go(func() { both[i] = documentsOf(walk) })
		}
		running.Wait()
		require.Equal(t, [2][]string{whole, whole}, both)
		require.LessOrEqual(t, l.most, 4, "politeness is kept per client")
	})
}

func documentsOf(walk iter.Seq2[*Document, error]) (urls []string) {
	for doc, err := range walk {
		if err != nil {
			return append(urls, err.Error())
		}
		urls = append(urls, doc.URL)
	}
	return urls
}

// The time that a chain takes is that of its first bytes, not of its bodies.
func TestAheadOverlaps(t *testing.T) {
	const first, piece, count = 20 * time.Millisecond, 10 * time.Millisecond, 50
	took := func(perHost int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			client := &Client{Policy: Policy{PerHost: perHost}, HTTP: &http.Client{Transport: roundTrip(
				func(r *http.Request) (*http.Response, error) {
					body := c.replies[r.URL.String()].body
					time.Sleep(first)
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1,
						Body: io.NopCloser(&drip{left: body, piece: len(body)/5 + 1, wait: piece}),
					}, nil
				})}}
			started := time.Now()
			require.Len(t, documentsOf(client.Walk(t.Context(), c.start, nil)), count)
			d = time.Since(started)
		})
		return d
	}
	require.Equal(t, count*(first+4*piece), took(1))
	require.Equal(t, count*first+4*piece, took(0)) // the figure aimed at is 1.15 times this
}

// A drip is a body whose pieces come at intervals: the first at once.
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
