package feedtest

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Reply is how a server in memory answers a request. The zero value is an empty
// document with the status 200.
type Reply struct {
	Status int      // zero means 200
	Header []string // "Name: value"
	Body   string
	End    error // the error at the end of the body; nil means none
	Stalls bool  // the body never ends
	Err    error // there is no answer, but this error
}

// RedirectTo returns a redirect to a URL.
func RedirectTo(status int, to string) Reply {
	return Reply{Status: status, Header: []string{"Location: " + to}}
}

// A RoundTrip is a function as an http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Line is an http.RoundTripper without sockets, for use in a synctest bubble: answers
// take time, and bodies arrive in pieces. It counts its client's requests.
type Line struct {
	Serve func(*http.Request) Reply // Serve answers a request; calls take turns.
	Seed  uint64                    // Seed determines the delays and pieces; zero means all arrives at once.

	Most int // Most is the largest number of open requests to one host; a request is open until its body is closed.
	Open int // Open is the number of requests open now.

	mu       sync.Mutex
	requests []string
	flying   map[string]int // the open requests by host
}

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	if l.flying == nil {
		l.flying = map[string]int{}
	}
	l.requests = append(l.requests, r.URL.String())
	l.flying[r.URL.Host]++
	l.Open++
	l.Most = max(l.Most, l.flying[r.URL.Host])
	says := l.Serve(r)
	l.mu.Unlock()
	random := rand.New(rand.NewPCG(l.Seed, uint64(len(says.Body))))
	if err := l.delay(r.Context(), random); err != nil {
		l.done(r)
		return nil, err
	}
	if says.Err != nil {
		l.done(r)
		return nil, says.Err
	}
	resp := &http.Response{
		StatusCode: cmp.Or(says.Status, http.StatusOK), Header: http.Header{}, ContentLength: -1, Request: r,
		Body: &pieces{line: l, r: r, random: random, left: says.Body, end: says.End, stalls: says.Stalls},
	}
	for _, field := range says.Header {
		name, value, _ := strings.Cut(field, ": ")
		resp.Header.Add(name, value)
	}
	if length := resp.Header.Get("Content-Length"); length != "" {
		resp.ContentLength, _ = strconv.ParseInt(length, 10, 64)
	}
	return resp, nil
}

func (l *Line) delay(ctx context.Context, random *rand.Rand) error {
	if l.Seed == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond)))):
		return nil
	}
}

func (l *Line) done(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying[r.URL.Host]--
	l.Open--
}

// Requests returns the URLs requested, in order.
func (l *Line) Requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// pieces are a body arriving in pieces.
type pieces struct {
	line   *Line
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
	if p.line.Seed != 0 {
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

// MemorySites are websites in memory. They record each request as a line: its URL and
// those header fields in which requests differ.
type MemorySites struct {
	Replies  map[string]Reply // Replies are the answers by URL; the status of any other URL is 404.
	requests List[string]
}

// Answer answers a request, as Line.Serve does.
func (s *MemorySites) Answer(r *http.Request) Reply {
	line := r.URL.String()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "Authorization"} {
		for _, value := range r.Header[name] {
			line += " " + name + ": " + value
		}
	}
	s.requests.Add(line)
	says, ok := s.Replies[r.URL.String()]
	if !ok {
		return Reply{Status: http.StatusNotFound}
	}
	return says
}

// Took returns the requests since the last call.
func (s *MemorySites) Took() []string { return s.requests.Took() }
