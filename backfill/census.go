package backfill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A census is a server's own count: how many entries at one moment, and which ones, as
// listed then or later.
//
// No listing shows everything at one moment, because entries come and go between its
// pages. But an entry received before the count, and listed after it, existed when the
// server counted. If there are as many such entries as the server counted, they are
// all of the kind it counts; and if the feed had as many just before, all of the feed's.
type census struct {
	at     time.Time // when the server counted
	total  int
	steady bool         // it gave the same total with each part of the list
	posts  []listedPost // in the order of the feed's pages
}

// A listedPost is a post in the server's list.
type listedPost struct {
	names    []string // by which the feed may know the post; the first is its guid
	modified string
	id       int
}

// compare compares the list with the entries that have come. It returns the guids of the
// posts still missing, and reports whether all counted entries have come.
func (c *census) compare(has func([]string) map[string]bool) (missing []string, proven bool) {
	confirmed := set{}
	for part := range slices.Chunk(c.posts, listSize) {
		var names []string
		for _, p := range part {
			names = append(names, p.names...)
		}
		found := has(names)
		for _, p := range part {
			if at := slices.IndexFunc(p.names, func(name string) bool { return found[name] }); at >= 0 {
				confirmed[p.names[at]] = true
			} else {
				missing = append(missing, p.names[0])
			}
		}
	}
	return missing, c.total > 0 && len(confirmed) == c.total
}

// equal reports whether another census, nil if there was none, had the same entries.
func (c *census) equal(d *census) bool {
	return d != nil && c.total == d.total &&
		slices.EqualFunc(c.posts, d.posts, func(a, b listedPost) bool { return a.names[0] == b.names[0] })
}

// gap returns the gap for posts listed that have not come, or counted that are not listed;
// nil if there are none, or so many that the list or the count seems to be of another feed, or
// the list to name its posts otherwise: most posts are missing, and most of the entries that came
// in this walk are not listed either.
func (c *census) gap(counter string, missing []string, came int) *feedhistory.Gap {
	var err error
	listed := len(c.posts) - len(missing)
	switch {
	case len(missing) > listed && 2*listed < came, 2*len(c.posts) < c.total:
		return nil
	case len(missing) > 0:
		some := strings.Join(missing[:min(len(missing), 3)], ", ")
		if len(missing) > 3 {
			some += ", …"
		}
		err = fmt.Errorf("%d of the %d entries that the server lists have not come: %s", len(missing), len(c.posts), some)
	case c.total > len(c.posts) && c.steady:
		err = fmt.Errorf("the server counts %d entries, but lists %d", c.total, len(c.posts))
	default:
		return nil
	}
	return newGap(counter, "", feedhistory.ReasonDeclared, err)
}

// pagesOf returns the numbers of the posts' pages, for pages of a size: last page
// first, each once.
func (c *census) pagesOf(guids []string, size int) (pages []int) {
	for i, p := range slices.Backward(c.posts) {
		n := i/size + 1
		if slices.Contains(guids, p.names[0]) && (len(pages) == 0 || pages[len(pages)-1] != n) {
			pages = append(pages, n)
		}
	}
	return pages
}

// postsURL returns the URL of the list of posts in the REST API, to which
// parameters can be added. It returns "" if there is none, or if the feed does
// not have all posts.
func (s *source) postsURL(h http.Header) string {
	root, ok := apiRoot(h)
	if !ok || !mainFeed(s.doc.URL, root) {
		return ""
	}
	query := "?"
	if strings.Contains(root, "?") { // without permalinks: ?rest_route=/
		query = "&"
	}
	return root + "wp/v2/posts" + query
}

// counterURL returns the URL of the shortest answer with the count.
func counterURL(posts string) string {
	if posts == "" {
		return ""
	}
	return posts + "per_page=1&_fields=id"
}

// count asks how many posts there are; 0 if the server does not say.
func (s *source) count(url string) int {
	if url == "" {
		return 0
	}
	_, total, _ := s.list(url)
	return total
}

// listSize is the maximum number of posts in one list of the API, mostListed in a census.
const (
	listSize   = 100
	mostListed = 1_000_000
)

// census requests the list of all posts, with the count, and hardly more pages than the
// count needs.
func (s *source) census(posts string) (*census, error) {
	c := &census{steady: true}
	seen := map[int]bool{}
	for n := 1; n <= c.total/listSize+mostClosing; n++ { // posts may come meanwhile
		url := posts + "_fields=id,guid,link,modified&orderby=id&order=asc&per_page=" + strconv.Itoa(listSize) + "&page=" + strconv.Itoa(n)
		page, total, err := s.list(url)
		if errors.Is(err, &feedhistory.FetchError{Status: http.StatusBadRequest}) && n > 1 {
			break // beyond the last page
		}
		if err != nil {
			return nil, err
		}
		if total = min(total, mostListed); n == 1 {
			c.total = total
		}
		c.steady = c.steady && total == c.total
		before := len(c.posts)
		for _, p := range page {
			if !seen[p.ID] {
				seen[p.ID] = true
				c.posts = append(c.posts, p.listed())
			}
		}
		if len(page) < listSize || len(c.posts) == before {
			break
		}
	}
	slices.SortFunc(c.posts, func(a, b listedPost) int {
		return cmp.Or(strings.Compare(a.modified, b.modified), cmp.Compare(a.id, b.id))
	})
	return c, nil
}

// An apiPost is a post in the REST API.
type apiPost struct {
	ID   int `json:"id"`
	GUID struct {
		Rendered string `json:"rendered"`
	} `json:"guid"`
	Link     string `json:"link"`
	Modified string `json:"modified"`
}

func (p apiPost) listed() listedPost {
	guid := html.UnescapeString(p.GUID.Rendered)
	names := slices.DeleteFunc([]string{guid, html.UnescapeString(p.Link), otherScheme(guid)}, func(name string) bool { return name == "" })
	return listedPost{names: names, modified: p.Modified, id: p.ID}
}

// list requests posts, and the total number of posts.
func (s *source) list(url string) (posts []apiPost, total int, err error) {
	client, done := settings.Cloned(s.c)
	defer done()
	text, resp, err := settings.Read(s.ctx, client, url, http.Header{"Accept": {"application/json"}})
	if err == nil {
		err = json.Unmarshal(text, &posts)
	}
	if err != nil {
		return nil, 0, err
	}
	total, err = strconv.Atoi(resp.Header.Get("X-WP-Total"))
	if err != nil || total < 0 {
		return nil, 0, fmt.Errorf("%s: %w", url, errNoCount)
	}
	return posts, total, nil
}

var errNoCount = errors.New("the server does not say how many posts it has")
