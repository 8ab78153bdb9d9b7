package web

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// A crawler follows every address a server offers: in its pages, in lists of feeds and in
// feeds.
type crawler struct {
	t      *testing.T
	base   string // of the server, with a final slash
	get    func(address string) (status int, body string, header http.Header)
	wants  int            // the status allowed besides 200; zero for none
	seen   map[string]int // the status of each address
	alike  map[string]int // how many addresses of one form have been followed
	queued []string
}

// mostAlike is how many addresses are followed with different values alone, such as the
// months of a timeline.
const mostAlike = 6

var names = regexp.MustCompile(`[0-9a-f]{12,}|[0-9]+`)

// offer queues an address of a document.
func (c *crawler) offer(from, address string) {
	at, err := url.Parse(from)
	require.NoError(c.t, err)
	to, err := at.Parse(address)
	require.NoError(c.t, err, "%s offers %q", from, address)
	if to.Fragment, to.RawFragment = "", ""; !strings.HasPrefix(to.String(), c.base) {
		return
	}
	q, err := url.ParseQuery(to.RawQuery)
	require.NoError(c.t, err, "%s offers %s", from, address)
	form := fmt.Sprint(names.ReplaceAllString(to.Path, "N"), slices.Sorted(maps.Keys(q)))
	if _, known := c.seen[to.String()]; known || c.alike[form] >= mostAlike {
		return
	}
	c.alike[form]++
	c.seen[to.String()] = 0
	c.queued = append(c.queued, to.String())
}

// crawl follows all addresses from the first page on.
func (c *crawler) crawl(starts ...string) {
	c.seen, c.alike = map[string]int{}, map[string]int{}
	for _, start := range append(starts, "") {
		c.offer(c.base, start)
	}
	for len(c.queued) > 0 {
		at := c.queued[0]
		c.queued = c.queued[1:]
		status, body, header := c.get(at)
		for status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" { // a large feed's document is being made
			time.Sleep(100 * time.Millisecond)
			status, body, header = c.get(at)
		}
		c.seen[at] = status
		kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
		switch {
		case status == http.StatusSeeOther || status == http.StatusPermanentRedirect || status == http.StatusTemporaryRedirect:
			c.offer(at, header.Get("Location"))
		case c.wants != 0 && status == c.wants:
		case strings.Contains(at, "/pictures/") && status == http.StatusNotFound: // of another site
		default:
			require.Equal(c.t, http.StatusOK, status, "%s: %s", at, body)
		}
		switch kind {
		case "text/html", "text/x-opml":
			c.read(at, body)
		case "application/atom+xml", "application/rss+xml":
			doc, err := feedhistory.Parse(strings.NewReader(body), at)
			require.NoError(c.t, err, at)
			for _, link := range doc.Links {
				c.offer(at, link.Href)
			}
			if strings.Contains(at, "/slice.") {
				require.NotEmpty(c.t, doc.Entries, at)
			}
		}
	}
}

// read offers the addresses of a page or of a list of feeds, and those of its GET forms.
func (c *crawler) read(at, body string) {
	for z := html.NewTokenizer(strings.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			require.ErrorIs(c.t, z.Err(), io.EOF)
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tag, is := z.Token(), map[string]string{}
			for _, a := range tag.Attr {
				is[a.Key] = a.Val
			}
			for _, name := range []string{"href", "src", "xmlurl", "htmlurl"} {
				if address, ok := is[name]; ok {
					c.offer(at, address)
				}
			}
			if tag.Data == "form" && is["method"] != "post" {
				c.offer(at, is["action"])
			}
		}
	}
}

// paths returns the paths of the addresses with a status, each form once.
func (c *crawler) paths(status int) (found []string) {
	for at, s := range c.seen {
		if u, err := url.Parse(at); err == nil && s == status {
			found = append(found, names.ReplaceAllString(path.Base(u.Path), "N"))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// serveLargeFeed serves a feed of some megabytes, for several slices.
func serveLargeFeed(w http.ResponseWriter, _ *http.Request) {
	head := &feedhistory.Document{
		ID: "urn:large", Title: "Soundings", Updated: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC), Authors: []feedhistory.Person{{Name: "Ada"}},
		Format: feedhistory.FormatAtom,
	}
	for n := range 30 {
		e, err := compose.Draft{
			ID: fmt.Sprint("urn:large:", n), Title: feedhistory.Text{Body: fmt.Sprint("Sounding ", n)},
			Updated: time.Date(2020, time.Month(1+n%24), 3, 8, 0, 0, 0, time.UTC), Content: feedhistory.Text{Body: strings.Repeat("eight fathoms ", 9000)},
		}.Entry()
		if err == nil {
			head.Entries = append(head.Entries, e)
		}
	}
	w.Header().Set("Content-Type", "application/atom+xml")
	_ = compose.WriteAtom(w, head)
}

// Every address the server offers answers, to whoever sees it: without a token, to those
// who do not have it, and to the owner of a public and of a private server.
func TestCrawl(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		token, shown string
		private      bool
		path         string
		needs        []string // the pages in need of the token
	}{
		"no token":          {},
		"below a path":      {path: "feeds/"},
		"without the token": {token: "open sesame"},
		"the token":         {token: "open sesame", shown: "open sesame"},
		"private":           {token: "open sesame", shown: "open sesame", private: true},
		"private, without":  {token: "open sesame", private: true, needs: []string{"/", "entries", "overview"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *Server) {
				s.Token, s.Private = test.token, test.private
				s.Base += test.path
			})
			w.token = test.token
			w.write(2003, 2006)
			w.lose("feed/3-")
			w.extra.Store(new(http.Handler(http.HandlerFunc(serveLargeFeed))))
			for _, feed := range []string{"/blog/feed.atom", "/news.rss", "/tides.atom", "/pod.rss", "/odd.atom", "/hostile.atom", "/page.html", "/blog.html", "/large.atom"} {
				w.add(feed)
			}
			w.poll(w.feedURL("/tides.atom"))
			w.poll(w.feedURL("/news.rss"))
			c := &crawler{t: t, base: w.Base, get: func(address string) (int, string, http.Header) {
				r := httptestRequest(t.Context(), http.MethodGet, "/"+strings.TrimPrefix(address, w.url), nil)
				if test.shown != "" {
					r.Header.Set("Authorization", "Bearer "+test.shown)
				}
				return answer(t, w.Server, r)
			}}
			if len(test.needs) > 0 {
				c.wants = http.StatusUnauthorized
				c.crawl()
				require.Equal(t, test.needs, c.paths(http.StatusUnauthorized))
				require.Subset(t, c.paths(http.StatusOK), []string{"token"})
				return
			}
			large := "feeds/" + w.nameOf("/large.atom")
			c.crawl("?show=whole&sort=entries", large+"/subscribe?size=1", "feeds/"+w.nameOf("/blog/feed.atom")+"/subscribe?start=2026-12-01&every=2d")
			require.Subset(t, c.paths(http.StatusOK), []string{"complete.atom", "day", "entry", "feeds.opml", "index.atom", "index.rss", "overview", "remove", "replay.atom", "replay.rss", "slice.atom", "slice.rss", "subscribe"})
			require.Condition(t, func() bool {
				for at, status := range c.seen {
					if strings.Contains(at, "/pictures/") && status == http.StatusOK {
						return true
					}
				}
				return false
			}, "the chart of the day")
			slices := 0
			for at := range c.seen {
				if strings.Contains(at, large+"/slice.atom?") {
					slices++
				}
			}
			require.Greater(t, slices, 2)
		})
	}
}
