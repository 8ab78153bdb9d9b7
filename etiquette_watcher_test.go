package feedhistory

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// A watcher is a website with one feed, and its archives, that notes how
// visitors behave. In a week the feed changes now and then, and so do its
// validators and what it says about freshness. Twice the server asks to be
// left alone, once the feed moves, and in the end it is gone.
type watcher struct {
	mu    sync.Mutex
	start time.Time
	told  map[string]bool // what happens but once, and has

	documents map[string]*watched // by path, where the feed was first
	alone     time.Time           // the host wants no request before
	moved     bool                // a 301 has been given
	gone      bool                // a 410 has

	requests, unchanged int
	rules               []rule
	margin              time.Duration // the shortest by which a visitor came later than it might
}

// A watched document, and what its last reader was told.
type watched struct {
	etag, lastModified string    // as given last; "" for none
	given              bool      // it has been given at all
	asked, again       time.Time // when it was asked for, and may be again
}

// A rule is a line of the report.
type rule struct {
	name  string
	kept  int
	wrong []string
	note  string // what it came to
}

const (
	ruleConditional = "at most one unconditional request per URL"
	ruleVerbatim    = "validators echoed exactly"
	ruleSpacing     = "spacing as Cache-Control and ttl ask"
	ruleHours       = "skipHours kept"
	ruleRetryAfter  = "Retry-After kept"
	ruleAgent       = "User-Agent with a URL"
	rulePrivate     = "no Cookie, Referer or Authorization"
	ruleQuery       = "no URL that was not published"
	ruleMoved       = "permanent redirect remembered"
	ruleGone        = "no request after 410"
)

var allRules = []string{
	ruleConditional, ruleVerbatim, ruleSpacing, ruleHours, ruleRetryAfter, ruleAgent, rulePrivate, ruleQuery, ruleMoved, ruleGone,
}

func newWatcher() *watcher {
	w := &watcher{start: time.Now(), margin: 1 << 62, told: map[string]bool{}, documents: map[string]*watched{}}
	for _, name := range allRules {
		w.rules = append(w.rules, rule{name: name})
	}
	return w
}

// require notes whether a request kept a rule.
func (w *watcher) require(name string, kept bool, format string, args ...any) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == name })]
	if kept {
		r.kept++
		return
	}
	r.wrong = append(r.wrong, w.elapsed().String()+": "+fmt.Sprintf(format, args...))
}

// broken returns the names of the rules that were not kept, or that nothing
// tested.
func (w *watcher) broken() (names []string) {
	for _, r := range w.rules {
		if len(r.wrong) > 0 || r.kept == 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// report is the table for people.
func (w *watcher) report() string {
	var b strings.Builder
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%d requests in %v, %d of them answered with 304\n", w.requests, w.elapsed(), w.unchanged)
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

func (w *watcher) elapsed() time.Duration { return time.Since(w.start) }

// once reports whether something that happens but once, after some hours, is
// to happen now.
func (w *watcher) once(what string, hours int) bool {
	if w.told[what] || w.elapsed() < time.Duration(hours)*time.Hour {
		return false
	}
	w.told[what] = true
	return true
}

const (
	feedPath  = "/feed.rss"
	movedPath = "/moved/feed.rss"
)

// ServeHTTP implements http.Handler.
func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	name := r.URL.Path
	if name == movedPath {
		name = feedPath
	}
	d := w.documents[name]
	if d == nil {
		d = new(watched)
		w.documents[name] = d
	}
	w.watch(r, d)
	rw.Header().Set("Set-Cookie", "visitor=1; Path=/; Max-Age=31536000") // not to come back
	switch {
	case time.Now().Before(w.alone):
		w.leaveAlone(rw, http.StatusTooManyRequests, "3600")
	case name != feedPath:
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
		w.gone = true
		http.Error(rw, "withdrawn", http.StatusGone)
	case r.URL.Path == feedPath && (w.moved || w.once("moved", 100)):
		w.moved = true
		rw.Header().Set("Location", movedPath)
		rw.WriteHeader(http.StatusMovedPermanently)
	default:
		w.feed(rw, r, d)
	}
}

func (w *watcher) leaveAlone(rw http.ResponseWriter, status int, retryAfter string) {
	rw.Header().Set("Retry-After", retryAfter)
	http.Error(rw, "busy", status)
}

// watch notes what a request keeps, and what not.
func (w *watcher) watch(r *http.Request, d *watched) {
	now := time.Now()
	etag, since := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
	if d.given && (d.etag != "" || d.lastModified != "") {
		w.require(ruleConditional, etag+since != "", "%s, though its validators are known", r.URL)
		w.require(ruleVerbatim, etag == d.etag && since == d.lastModified, "%s with %q and %q, which should be %q and %q",
			r.URL, etag, since, d.etag, d.lastModified)
	} else {
		w.require(ruleVerbatim, etag+since == "", "%s with %q and %q, which are of no answer", r.URL, etag, since)
	}
	w.require(ruleSpacing, !now.Before(d.again), "%s after %v, though %v was asked for", r.URL, now.Sub(d.asked), d.again.Sub(d.asked))
	w.require(ruleRetryAfter, !now.Before(w.alone), "%v before the time that it gave", w.alone.Sub(now))
	if r.URL.Path == feedPath || r.URL.Path == movedPath {
		hour := now.UTC().Hour()
		w.require(ruleHours, hour != 3 && hour != 4 || !d.given, "%s at %v", r.URL, now.UTC())
		w.require(ruleMoved, !w.moved || r.URL.Path == movedPath, "%s, which has moved", r.URL)
		w.require(ruleGone, !w.gone, "%s, which is gone", r.URL)
	}
	agent := r.UserAgent()
	w.require(ruleAgent, strings.Contains(agent, "/") && strings.Contains(agent, "(+https://"), "%q", agent)
	for _, name := range []string{"Cookie", "Referer", "Authorization"} {
		w.require(rulePrivate, r.Header.Get(name) == "", "%s: %q", name, r.Header.Get(name))
	}
	published := r.URL.Path == feedPath || r.URL.Path == movedPath && w.moved || strings.HasPrefix(r.URL.Path, "/archive/")
	w.require(ruleQuery, published && r.URL.RawQuery == "", "%s", r.URL)
}

// edition is how often the feed has changed: at first all four hours, then all
// eleven.
func (w *watcher) edition() int {
	hours := int(w.elapsed().Hours())
	return 1 + min(hours, 40)/4 + max(hours-40, 0)/11
}

// feed serves the feed as it is now.
func (w *watcher) feed(rw http.ResponseWriter, r *http.Request, d *watched) {
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
func (w *watcher) archive(rw http.ResponseWriter, r *http.Request, d *watched) {
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/archive/%d.rss", &n); err != nil || n < 0 || n > w.edition()/3 {
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

// answer gives a document to a visitor, or the news that it is the same.
func (w *watcher) answer(rw http.ResponseWriter, r *http.Request, d *watched, etag, lastModified string, wait time.Duration, body string) {
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
		w.unchanged++
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	rw.Header().Set("Content-Type", "application/rss+xml")
	_, _ = io.WriteString(rw, body)
}

// shortest keeps the shortest spacing for the report.
func (w *watcher) shortest(was, asked time.Duration) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == ruleSpacing })]
	if was-asked < w.margin {
		w.margin = was - asked
		r.note = fmt.Sprintf("good, such as %v where %v was asked for", was, asked)
	}
}

// serve puts a handler on a network of pipes, and returns the transport to it.
// All of it lives in the bubble of the test.
func serve(t *testing.T, handler http.Handler) *http.Transport {
	conns := make(pipes)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(conns) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return transport
}

// pipes are a net.Listener.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }
