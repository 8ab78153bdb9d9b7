package feedhistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
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

// A subscriber is a small poll loop, as a user of the package would write it.
type subscriber struct {
	client   *Client
	url      string
	known    map[string]Known
	schedule Schedule
	archives map[string]bool // that have been stored
	entries  map[string]bool
	whole    bool // read the archives as well
}

const halfAnHour = 30 * time.Minute

// run polls until the given time, or until the feed is gone.
func (s *subscriber) run(ctx context.Context, until time.Time) {
	for time.Now().Before(until) {
		next, gone := s.poll(ctx)
		if gone {
			return
		}
		if now := time.Now(); next.Before(now.Add(halfAnHour)) {
			next = s.schedule.Next(Response{Received: now, Fresh: now.Add(halfAnHour)})
		}
		time.Sleep(max(time.Until(next), time.Minute)) // so that a mistake here is seen, and ends
	}
}

// poll asks once, and returns when to ask again.
func (s *subscriber) poll(ctx context.Context) (next time.Time, gone bool) {
	if !s.whole {
		doc, err := s.client.Poll(ctx, s.url, s.known[s.url])
		return s.head(doc, err)
	}
	first := true
	for doc, err := range s.client.Walk(ctx, s.url, &WalkOptions{
		Known:     func(url string) Known { return s.known[url] },
		Processed: func(url string) bool { return s.archives[url] },
	}) {
		if first {
			first = false
			next, gone = s.head(doc, err)
		} else if err == nil {
			s.archives[doc.URL] = true
			s.store(doc)
		}
	}
	return next, gone
}

// head learns from the answer for the feed itself.
func (s *subscriber) head(doc *Document, err error) (next time.Time, gone bool) {
	unchanged, _ := errors.AsType[*Unchanged](err)
	status, _ := errors.AsType[*StatusError](err)
	var resp Response
	known := s.known[s.url]
	switch {
	case err == nil:
		s.store(doc)
		resp, known, s.schedule = doc.Response, doc.Known(), doc.Schedule
	case unchanged != nil:
		resp = unchanged.Response
		known.ETag, known.LastModified = resp.ETag, resp.LastModified
	case status != nil && status.Gone:
		return time.Time{}, true
	case status != nil && !status.At.IsZero():
		return s.schedule.Next(Response{Received: time.Now(), Fresh: status.At}), false
	default:
		return time.Now().Add(time.Hour), false
	}
	if resp.Permanent != "" {
		s.url = resp.Permanent
	}
	s.known[s.url] = known
	return s.schedule.Next(resp), false
}

func (s *subscriber) store(doc *Document) {
	for _, e := range doc.Entries {
		s.entries[e.ID] = true
	}
}

const week = 7 * 24 * time.Hour

// A week of polls is a week of good manners.
func TestEtiquette(t *testing.T) {
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatcher()
			s := &subscriber{
				client: &Client{HTTP: &http.Client{Transport: serve(t, w)}}, url: "http://feed.example" + feedPath,
				known: map[string]Known{}, archives: map[string]bool{}, entries: map[string]bool{}, whole: whole,
			}
			s.run(t.Context(), time.Now().Add(week))
			t.Logf("whole history: %v\n%s", whole, w.report())
			require.Empty(t, w.broken(), "%s", w.report())
			require.Equal(t, "http://feed.example"+movedPath, s.url)
			require.True(t, w.gone)
			require.Greater(t, w.unchanged, 30, "few polls were conditional with success")
			for _, what := range []string{"429", "503", "short 503", "moved"} {
				require.True(t, w.told[what], what)
			}
			for n := range 6 { // what was there at the end of a day or so has come
				require.Equal(t, whole, s.entries[fmt.Sprintf("urn:old:%d", n)])
			}
			require.Greater(t, len(s.entries), 15)
		})
	}
}

// The watcher condemns a loop that just asks each minute.
func TestEtiquetteCondemnsARudePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		client := &http.Client{Transport: serve(t, w)}
		for range int(week / time.Minute) {
			resp, err := client.Get("http://feed.example" + feedPath)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(time.Minute)
		}
		t.Logf("\n%s", w.report())
		require.Equal(t, []string{
			ruleConditional, ruleVerbatim, ruleSpacing, ruleHours, ruleRetryAfter, ruleAgent,
			rulePrivate, // a Referer, after the redirect
			ruleMoved, ruleGone,
		}, w.broken())
	})
}

// And one that asks every three hours, in the belief that it knows better.
func TestEtiquetteCondemnsASlyPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Transport: serve(t, w), Jar: jar}
		etag, lastModified := "", ""
		for range 20 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://feed.example"+feedPath+"?nocache="+url.QueryEscape(time.Now().String()), nil)
			require.NoError(t, err)
			req.Header.Set("User-Agent", "sly/1.0 (+https://sly.example)")
			req.SetBasicAuth("user", "secret")
			if etag != "" {
				req.Header.Set("If-None-Match", strings.TrimPrefix(etag, "W/"))
			}
			if at, err := time.Parse("Mon, 2 Jan 2006 15:04:05 GMT", lastModified); err == nil {
				req.Header.Set("If-Modified-Since", at.Format(http.TimeFormat))
			}
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			etag, lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
			time.Sleep(3 * time.Hour)
		}
		t.Logf("\n%s", w.report())
		broken := w.broken()
		for _, name := range []string{ruleVerbatim, rulePrivate, ruleQuery} {
			require.Contains(t, broken, name)
		}
		for _, name := range []string{ruleAgent, ruleGone} {
			require.NotContains(t, broken, name)
		}
	})
}
