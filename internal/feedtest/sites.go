package feedtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
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

// Redirect returns a redirect to a URL.
func Redirect(status int, to string) Reply {
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

// Sites are websites in memory. They record each request as a line: its URL and
// those header fields in which requests differ.
type Sites struct {
	Replies  map[string]Reply // Replies are the answers by URL; the status of any other URL is 404.
	requests List[string]
}

// Answer answers a request, as Line.Serve does.
func (s *Sites) Answer(r *http.Request) Reply {
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
func (s *Sites) Took() []string { return s.requests.Took() }

// A Watcher is a website with one feed and its archives, which records how a visitor
// behaves. In a week the feed changes now and then, and so do its validators and its
// freshness. Twice the server asks the visitor to wait, once the feed moves, and in
// the end it is gone. Make one with NewWatcher, in a synctest bubble.
type Watcher struct {
	Told      map[string]bool // Told has the events that happened once: "429", "503", "short 503" and "moved".
	Gone      bool            // Gone reports whether the visitor has got a 410.
	Wasted    int             // Wasted is the number of requests for archives that do not exist.
	Unchanged int             // Unchanged is the number of answers with the status 304.

	mu        sync.Mutex
	start     time.Time
	documents map[string]*watchedDocument // by path, before the feed moved
	alone     time.Time                   // the server wants no request before
	moved     bool                        // a 301 has been given
	requests  int
	rules     []rule
	margin    time.Duration // the shortest time by which a request came later than allowed
}

// A watchedDocument is a document with its last answer.
type watchedDocument struct {
	etag, lastModified string    // as last given; "" means none
	given              bool      // it has been given at least once
	asked, again       time.Time // when it was requested, and when it may be again
}

// A rule is a line of the report.
type rule struct {
	name  string
	kept  int
	wrong []string
	note  string // the result, for the report
}

// The rules a Watcher checks.
const (
	RuleConditional = "at most one unconditional request per URL"
	RuleVerbatim    = "validators echoed exactly"
	RuleSpacing     = "spacing as Cache-Control and ttl ask"
	RuleHours       = "skipHours kept"
	RuleRetryAfter  = "Retry-After kept"
	RuleAgent       = "User-Agent with a URL"
	RulePrivate     = "no Cookie, Referer or Authorization"
	RuleQuery       = "no URL that was not published"
	RuleMoved       = "permanent redirect remembered"
	RuleGone        = "no request after 410"
	RuleWasted      = "at most four requests in vain"
)

var allRules = []string{
	RuleConditional, RuleVerbatim, RuleSpacing, RuleHours, RuleRetryAfter, RuleAgent, RulePrivate, RuleQuery, RuleMoved, RuleGone, RuleWasted,
}

// NewWatcher returns a website whose week begins now.
func NewWatcher() *Watcher {
	w := &Watcher{start: time.Now(), margin: 1 << 62, Told: map[string]bool{}, documents: map[string]*watchedDocument{}}
	for _, name := range allRules {
		w.rules = append(w.rules, rule{name: name})
	}
	return w
}

// The paths of the feed, before and after it moves.
const (
	FeedPath  = "/feed.rss"
	MovedPath = "/moved/feed.rss"
)

// require records whether a request kept a rule.
func (w *Watcher) require(name string, kept bool, format string, args ...any) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == name })]
	if kept {
		r.kept++
		return
	}
	r.wrong = append(r.wrong, w.elapsed().String()+": "+fmt.Sprintf(format, args...))
}

// Broken returns the rules broken, or put to the test by no request.
func (w *Watcher) Broken() (names []string) {
	for _, r := range w.rules {
		if len(r.wrong) > 0 || r.kept == 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// Report returns a table of the rules for people.
func (w *Watcher) Report() string {
	var b strings.Builder
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%d requests in %v, %d of them answered with 304\n", w.requests, w.elapsed(), w.Unchanged)
	fmt.Fprintln(out, "rule\tkept\tbroken\t")
	for _, r := range w.rules {
		note := r.note
		if len(r.wrong) > 0 {
			note = "BAD: first after " + r.wrong[0]
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\n", r.name, r.kept, len(r.wrong), cmp.Or(note, "good"))
	}
	_ = out.Flush()
	return b.String()
}

func (w *Watcher) elapsed() time.Duration { return time.Since(w.start) }

// once reports whether to do something now that is done once, after some hours.
func (w *Watcher) once(what string, hours int) bool {
	if w.Told[what] || w.elapsed() < time.Duration(hours)*time.Hour {
		return false
	}
	w.Told[what] = true
	return true
}

// ServeHTTP implements http.Handler.
func (w *Watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	name := r.URL.Path
	if name == MovedPath {
		name = FeedPath
	}
	d := w.documents[name]
	if d == nil {
		d = new(watchedDocument)
		w.documents[name] = d
	}
	w.watch(r, d)
	rw.Header().Set("Set-Cookie", "visitor=1; Path=/; Max-Age=31536000") // which must not come back
	switch {
	case time.Now().Before(w.alone):
		w.leaveAlone(rw, http.StatusTooManyRequests, "3600")
	case name != FeedPath:
		w.archive(rw, r, d)
	case w.once("429", 30):
		w.alone = time.Now().Add(5400 * time.Second)
		w.leaveAlone(rw, http.StatusTooManyRequests, "5400")
	case w.once("503", 54):
		w.alone = time.Now().Add(4 * time.Hour).Truncate(time.Second)
		w.leaveAlone(rw, http.StatusServiceUnavailable, w.alone.UTC().Format(http.TimeFormat))
	case w.once("short 503", 80):
		w.alone = time.Now().Add(20 * time.Second)
		w.leaveAlone(rw, http.StatusServiceUnavailable, "20")
	case w.elapsed() > 160*time.Hour:
		w.Gone = true
		http.Error(rw, "withdrawn", http.StatusGone)
	case r.URL.Path == FeedPath && (w.moved || w.once("moved", 100)):
		w.moved = true
		rw.Header().Set("Location", MovedPath)
		rw.WriteHeader(http.StatusMovedPermanently)
	default:
		w.feed(rw, r, d)
	}
}

func (w *Watcher) leaveAlone(rw http.ResponseWriter, status int, retryAfter string) {
	rw.Header().Set("Retry-After", retryAfter)
	http.Error(rw, "busy", status)
}

// watch checks the rules on a request.
func (w *Watcher) watch(r *http.Request, d *watchedDocument) {
	now := time.Now()
	etag, since := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
	if d.given && (d.etag != "" || d.lastModified != "") {
		w.require(RuleConditional, etag+since != "", "%s, though its validators are known", r.URL)
		w.require(RuleVerbatim, etag == d.etag && since == d.lastModified, "%s with %q and %q, which should be %q and %q",
			r.URL, etag, since, d.etag, d.lastModified)
	} else {
		w.require(RuleVerbatim, etag+since == "", "%s with %q and %q, which are of no answer", r.URL, etag, since)
	}
	w.require(RuleSpacing, !now.Before(d.again), "%s after %v, though %v was asked for", r.URL, now.Sub(d.asked), d.again.Sub(d.asked))
	w.require(RuleRetryAfter, !now.Before(w.alone), "%v before the time that it gave", w.alone.Sub(now))
	if r.URL.Path == FeedPath || r.URL.Path == MovedPath {
		hour := now.UTC().Hour()
		w.require(RuleHours, hour != 3 && hour != 4 || !d.given, "%s at %v", r.URL, now.UTC())
		w.require(RuleMoved, !w.moved || r.URL.Path == MovedPath, "%s, which has moved", r.URL)
		w.require(RuleGone, !w.Gone, "%s, which is gone", r.URL)
	}
	agent := r.UserAgent()
	w.require(RuleAgent, strings.Contains(agent, "/") && strings.Contains(agent, "(+https://"), "%q", agent)
	for _, name := range []string{"Cookie", "Referer", "Authorization"} {
		w.require(RulePrivate, r.Header.Get(name) == "", "%s: %q", name, r.Header.Get(name))
	}
	published := r.URL.Path == FeedPath || r.URL.Path == MovedPath && w.moved || strings.HasPrefix(r.URL.Path, "/archive/")
	w.require(RuleWasted, w.Wasted <= 4, "%s", r.URL)
	w.require(RuleQuery, published && r.URL.RawQuery == "", "%s", r.URL)
}

// edition counts the changes of the feed: one every four hours at first, and every
// eleven later.
func (w *Watcher) edition() int {
	hours := int(w.elapsed().Hours())
	return 1 + min(hours, 40)/4 + max(hours-40, 0)/11
}

// feed serves the feed as it is now.
func (w *Watcher) feed(rw http.ResponseWriter, r *http.Request, d *watchedDocument) {
	n := w.edition()
	etag := []string{`"v%d"`, `W/"v%d"`, `v%d`, `""v%d""`, ``, `W/"v%d-gzip, (odd) é"`}[n%6]
	if strings.Contains(etag, "%d") {
		etag = fmt.Sprintf(etag, n)
	}
	lastModified := w.start.Add(time.Duration(n) * 4 * time.Hour).UTC().Format("Mon, 2 Jan 2006 15:04:05 GMT") // a day of one digit
	if n%6 == 1 {
		lastModified = ""
	}
	age := []int{1800, 9000, -1, 0, 3600}[n%5]
	ttl := []int{60, 45, 120}[n%3]
	wait := time.Duration(ttl) * time.Minute
	switch {
	case age == 0:
		rw.Header().Set("Cache-Control", "no-cache")
	case age > 0:
		rw.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", age))
		wait = max(wait, time.Duration(age)*time.Second)
	}
	body := fmt.Sprintf(`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>Feed</title>
<ttl>%d</ttl><skipHours><hour>3</hour><hour>4</hour></skipHours>
<atom:link rel="prev-archive" href="/archive/%d.rss"/>
<item><guid>urn:%d</guid><title>Edition %[3]d</title></item>
</channel></rss>`, ttl, n/3, n)
	w.answer(rw, r, d, etag, lastModified, wait, body)
}

// archive serves an archive document, which never changes.
func (w *Watcher) archive(rw http.ResponseWriter, r *http.Request, d *watchedDocument) {
	var n int
	_, err := fmt.Sscanf(r.URL.Path, "/archive/%d.rss", &n)
	exists := err == nil && n >= 0 && n <= w.edition()/3
	if !exists {
		w.Wasted++
	}
	if !exists {
		http.NotFound(rw, r)
		return
	}
	link := ""
	if n > 0 {
		link = fmt.Sprintf(`<atom:link rel="prev-archive" href="/archive/%d.rss"/>`, n-1)
	}
	rw.Header().Set("Cache-Control", "max-age=31536000, immutable")
	w.answer(rw, r, d, fmt.Sprintf(`"archive %d"`, n), "", 365*24*time.Hour, fmt.Sprintf(
		`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel>
<title>Feed</title><fh:archive/>%s<item><guid>urn:old:%d</guid><title>Old</title></item></channel></rss>`, link, n))
}

// answer answers with a document, or a 304 if the visitor has it.
func (w *Watcher) answer(rw http.ResponseWriter, r *http.Request, d *watchedDocument, etag, lastModified string, wait time.Duration, body string) {
	now := time.Now()
	if d.given && !now.Before(d.again) {
		w.shortest(now.Sub(d.asked), d.again.Sub(d.asked))
	}
	d.asked, d.again, d.given = now, now.Add(wait), true
	same := etag != "" && r.Header.Get("If-None-Match") == etag ||
		etag == "" && r.Header.Get("If-None-Match") == "" && lastModified != "" && r.Header.Get("If-Modified-Since") == lastModified
	if !same || w.requests%2 == 0 { // a 304 may leave them out
		if etag != "" {
			rw.Header()["Etag"] = []string{etag}
		}
		if lastModified != "" {
			rw.Header().Set("Last-Modified", lastModified)
		}
	}
	d.etag, d.lastModified = etag, lastModified
	if same {
		w.Unchanged++
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	rw.Header().Set("Content-Type", "application/rss+xml")
	_, _ = io.WriteString(rw, body)
}

// shortest remembers the shortest spacing for the report.
func (w *Watcher) shortest(was, asked time.Duration) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == RuleSpacing })]
	if was-asked < w.margin {
		w.margin = was - asked
		r.note = fmt.Sprintf("good, such as %v where %v was asked for", was, asked)
	}
}
