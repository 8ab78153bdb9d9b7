package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
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
