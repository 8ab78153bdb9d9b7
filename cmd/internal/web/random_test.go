package web

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

var requests = flag.Int("requests", feedtest.Count(24_000), "how many random requests TestRandomRequests makes")

// A vocabulary has the parts of random requests.
type vocabulary struct {
	random *rand.Rand
	feeds  []string
}

func (v *vocabulary) one(of ...string) string { return of[v.random.IntN(len(of))] }

// value returns a value that some parameter takes, or one that none does.
func (v *vocabulary) value() string {
	return v.one("", "1", "0", "-1", "2003", "2003-05", "2003-05-04", "2003-05-04T07:30:00Z", "1d", "1w", "atom", "rss", "complete", "mirrored", "fog", `"a%20b`, "-", "OR",
		"%00", "%ff", "%E2%80%A8", "..%2f..", "<script>", "urn:1", "tag:lighthouse.example,2003:2003/5/1", "99999999999999999999", strings.Repeat("a", 5000), "dark", "large", "https://a.example/", "//a.example")
}

// path returns the path of a page, or something like it.
func (v *vocabulary) path() string {
	feed := "/feeds/" + v.one(append(v.feeds, v.feeds[0][:12], "0123", "%00", "..", "")...)
	path := v.one("/", "/entries", "/overview", "/feeds.opml", "/token", "/token/forget", "/readers", "/readers/revoke", "/look", "/feeds", "/static/style.css", "/static/..%2f",
		"/favicon.ico", "/robots.txt", "//", "/%", feed, feed+"/entry", feed+"/random", feed+"/month", feed+"/day", feed+"/remove", feed+"/subscribe", feed+"/poll", feed+"/images",
		feed+"/index.atom", feed+"/index.rss", feed+"/index/"+v.value(), feed+"/complete.atom", feed+"/slice.atom", feed+"/slice.rss", feed+"/replay.atom", feed+"/replay.rss", feed+"/"+v.value())
	names := []string{"q", "feed", "show", "sort", "id", "month", "day", "at", "page", "before", "after", "since", "until", "start", "every", "size", "reader", "url", "token", "name", "images", "look", "back", v.value()}
	for separator := "?"; v.random.IntN(3) > 0; separator = "&" {
		path += separator + v.one(names...) + "=" + v.value()
	}
	return path
}

var takesForms = regexp.MustCompile(`^/(token|readers|look|feeds/?(\?|$)|feeds/.*/(poll|remove|images))`)

// request returns a random request; nil if its address is none.
func (v *vocabulary) request(t *testing.T, host string) *http.Request {
	path, method, body := v.path(), v.one("GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS", "FOO"), ""
	if takesForms.MatchString(path) && v.random.IntN(2) == 0 {
		method = "POST"
	}
	if method == "POST" {
		body = v.one("", "url=a", "url=https%3A%2F%2Fa.example%2F&all-the-same=1", "token=open+sesame", "token=", "name=a", "theme=dark&size=large", "%zz", strings.Repeat("a=b&", 3000), `{"a":1}`)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+path, strings.NewReader(body))
	if err != nil {
		return nil
	}
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), v.one("127.0.0.1:1", "192.0.2.1:2", "[2001:db8::1]:3")
	if v.random.IntN(4) > 0 { // somebody with the token, and a browser
		r.Header.Set("Authorization", "Bearer open sesame")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for range v.random.IntN(4) {
		r.Header.Add(v.one("Authorization", "Cookie", "If-None-Match", "If-Modified-Since", "If-Range", "Range", "Accept-Encoding", "A-IM", "Accept", "Origin", "Sec-Fetch-Site", "Referer", "Content-Type", "X-Forwarded-For"),
			v.one("", "Bearer open sesame", "Bearer x", "Basic eDp5", "*", `"x"`, `W/"x", "y"`, "Mon, 01 Jan 2035 00:00:00 GMT", "bytes=0-", "bytes=-5", "bytes=9-1,2-3", "gzip", "gzip;q=0, *", "feed", "same-origin", "cross-site", "http://"+host, "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "192.0.2.7, x", strings.Repeat("a", 4000)))
	}
	if v.random.IntN(50) == 0 {
		r.Host = v.one("a.example", "", "127.0.0.1", "[::1]")
	}
	return r
}

// isAborted reports whether a server has broken off its answer: the feed was removed meanwhile, say.
func isAborted(s http.Handler, answer http.ResponseWriter, r *http.Request) (is bool) {
	defer func() {
		if fault := recover(); fault == http.ErrAbortHandler {
			is = true
		} else if fault != nil {
			panic(fault)
		}
	}()
	s.ServeHTTP(answer, r)
	return false
}

// Whatever somebody requests, several at a time, the server answers, and not that it has failed.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	n := *requests
	if testing.Short() {
		n /= 10
	}
	for _, private := range []bool{false, true} {
		t.Run(fmt.Sprint("private=", private), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *Server) { s.Token, s.Private, s.Output = "open sesame", private, &publish.MemoryOutput{} })
			w.token = "open sesame"
			w.write(2003, 2005)
			var feeds []string
			for _, feed := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/pod.rss", "/hostile.atom"} {
				w.add(feed)
				feeds = append(feeds, w.nameOf(feed))
			}
			var all sync.WaitGroup
			var answers feedtest.List[int]
			const workers = 4
			for worker := range workers {
				all.Go(func() {
					v := &vocabulary{rand.New(rand.NewPCG(5005, uint64(worker))), feeds}
					for range n / 2 / workers {
						r := v.request(t, strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/"))
						if r == nil || r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/remove") || strings.HasSuffix(r.URL.Path, "/poll")) && v.random.IntN(20) > 0 {
							continue // so that feeds are left
						}
						answer := httptest.NewRecorder()
						if isAborted(w.Server, answer, r) {
							continue
						}
						answers.Add(answer.Code)
						isRefusal := answer.Code == http.StatusServiceUnavailable && answer.Header().Get("Retry-After") != ""
						if answer.Code >= 500 && !isRefusal && answer.Code != http.StatusNotImplemented {
							t.Errorf("%s %s %v: %d %s", r.Method, r.RequestURI, r.Header, answer.Code, answer.Body)
						}
					}
				})
			}
			all.Wait()
			counts := map[int]int{}
			for _, code := range answers.All() {
				counts[code]++
			}
			require.Positive(t, counts[http.StatusOK])
			t.Log(counts)
		})
	}
}
