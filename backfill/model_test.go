package backfill

import (
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// A post is a post on a model server.
type post struct {
	id                  int
	published, modified time.Time
	text                string
	podcast             bool // of a kind that the feed shows, and the API neither counts nor lists
	withheld            bool // of a kind that the API counts and lists, and the feed leaves out
}

// A site is what the models of real servers have in common: posts, a log of
// requests, and something that happens before each request.
type site struct {
	mu       sync.Mutex
	now      time.Time
	posts    map[int]post
	next     int
	requests []string
	before   func(n int) // called before the nth request; nil: nothing happens
	moments  []set       // the posts at each request, by guid
	guids    func(post) string
	podcasts bool // whether change publishes podcasts
	handler  http.HandlerFunc
	url      string
}

func newSite(n int) *site {
	s := &site{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), posts: map[int]post{}}
	for range n {
		s.publish()
	}
	return s
}

// serve answers on the loopback interface, at url.
func (s *site) serve(t testing.TB, handler http.HandlerFunc) {
	s.handler = handler
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(server.Close)
}

// ServeHTTP logs a request, lets things happen, and answers.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	if s.before != nil {
		s.before(len(s.requests))
	}
	if s.guids != nil {
		s.moments = append(s.moments, s.there())
	}
	w.Header().Set("Date", s.now.Add(time.Hour).Format(http.TimeFormat))
	s.handler(w, r)
}

// there returns the guids of the present posts.
func (s *site) there() set {
	all := set{}
	for _, p := range s.posts {
		all[s.guids(p)] = true
	}
	return all
}

// RoundTrip answers without a network, in the caller's goroutine.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// fetch fetches a feed without a network.
func (s *site) fetch(t require.TestingT, handler http.HandlerFunc, path string, methods ...Method) *Recovery {
	s.handler, s.url = handler, "http://example.org"
	c := &feedhistory.Client{AllowPrivate: true, Transport: s, Tries: 1}
	b := Backfill{HTTP: c, Methods: methods}
	r, err := b.Fetch(context.Background(), s.url+path, Probe{})
	require.NoError(t, err)
	return r
}

func (s *site) publish() {
	s.next++
	s.now = s.now.Add(time.Minute)
	s.posts[s.next] = post{id: s.next, published: s.now, modified: s.now, text: fmt.Sprintf("post %d", s.next)}
}

// schedule publishes a post that was written long ago: it is the newest by
// publication, but others were modified later.
func (s *site) schedule(age time.Duration) {
	s.publish()
	p := s.posts[s.next]
	p.modified = s.now.Add(-age)
	s.posts[s.next] = p
}

// backdate publishes a post that has an old date in every respect.
func (s *site) backdate(age time.Duration) {
	s.schedule(age)
	p := s.posts[s.next]
	p.published = p.modified
	s.posts[s.next] = p
}

func (s *site) edit(id int) {
	p, ok := s.posts[id]
	if !ok {
		return
	}
	s.now = s.now.Add(time.Minute)
	p.modified, p.text = s.now, p.text+", edited"
	s.posts[id] = p
}

// sorted returns the posts, newest first.
func (s *site) sorted(by func(post) time.Time) []post {
	return slices.SortedFunc(maps.Values(s.posts), func(a, b post) int {
		if c := by(b).Compare(by(a)); c != 0 {
			return c
		}
		return b.id - a.id
	})
}

func published(p post) time.Time { return p.published }
func modified(p post) time.Time  { return p.modified }

// window returns part of a list.
func window(posts []post, from, most int) []post {
	from = min(max(from, 0), len(posts))
	return posts[from:min(from+most, len(posts))]
}

func (p post) guid(site string) string { return fmt.Sprintf("%s/?p=%d", site, p.id) }

// rss writes a feed as RSS.
func rss(posts []post, site, head string, guid func(post) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:openSearch="http://a9.com/-/spec/opensearchrss/1.0/"><channel><title>A site</title><link>%s</link>%s`, site, head)
	for _, p := range posts {
		fmt.Fprintf(&b, "\n<item><title>%s</title><link>%s/%d</link><guid isPermaLink=\"false\">%s</guid><pubDate>%s</pubDate></item>",
			p.text, site, p.id, html.EscapeString(guid(p)), p.published.Format(time.RFC1123Z))
	}
	b.WriteString("\n</channel></rss>\n")
	return b.String()
}

// lastBuild returns the channel's element, as WordPress computes it.
func lastBuild(posts []post) string {
	var last time.Time
	for _, p := range posts {
		if p.modified.After(last) {
			last = p.modified
		}
	}
	return "<lastBuildDate>" + last.Format(time.RFC1123Z) + "</lastBuildDate>"
}

// private returns a client that may send requests to the models.
func private(t testing.TB) *feedhistory.Client {
	c := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(c.CloseIdle)
	return c
}

// recover fetches a feed with all methods.
func (s *site) recover(t testing.TB, path string, methods ...Method) *Recovery {
	b := Backfill{HTTP: private(t), Methods: methods}
	r, err := b.Fetch(t.Context(), s.url+path, Probe{})
	require.NoError(t, err)
	return r
}

// has checks that a history has each of the site's posts once, in its present
// version.
func (s *site) has(t require.TestingT, h *feedhistory.History, guid func(post) string) {
	got := map[string]string{}
	for _, e := range h.Entries {
		require.NotContains(t, got, e.ID)
		got[e.ID] = e.Title().Plain()
	}
	for _, p := range s.posts {
		require.Contains(t, got, guid(p), "%s", strings.Join(s.requests, "\n"))
		require.Equal(t, p.text, got[guid(p)], "%s", strings.Join(s.requests, "\n"))
	}
}
