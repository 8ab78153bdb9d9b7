package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A listing is a selection of feeds in an order.
type listing struct {
	Search string
	Show   string // a key of parts; "" means all
	Sort   string // a key of orders; "" means the usual order
	Folder string // a folder's path, with slashes; "" means all
}

// folderKey returns a folder's path as it is in addresses. A folder also has the feeds of
// the folders in it.
func folderKey(path []string) string { return strings.Join(path, "/") }

// isIn reports whether the listing's folder has a feed.
func (l listing) isIn(feed *mirror.Feed) bool {
	return l.Folder == "" || slices.ContainsFunc(feed.Folders, func(path []string) bool {
		return strings.HasPrefix(folderKey(path)+"/", l.Folder+"/")
	})
}

// A choice is a choice in a form.
type choice struct{ Key, Says string }

var (
	parts = []choice{
		{"", "All feeds"}, {"partial", "Something is missing"}, {"lossy", "Paged, may have lost some"}, {"window", "Latest entries only"}, {"whole", "Whole"},
		{"silent", "Silent for a year"}, {"failing", "Last poll failed"},
	}
	orders = []choice{
		{"", "By title"}, {"partial", "Partial first"}, {"entries", "Most entries first"}, {"newest", "Newest entry first"}, {"silent", "Longest silent first"},
	}
)

// Parts and Orders are the choices of the form.
func (l listing) Parts() []choice  { return parts }
func (l listing) Orders() []choice { return orders }

// Asked reports whether the listing differs from the usual list.
func (l listing) Asked() bool { return l != listing{} }

// listingOf reads the query of a URL. It ignores unknown values.
func listingOf(q url.Values) listing {
	one := func(key string, of []choice) string {
		if slices.ContainsFunc(of, func(c choice) bool { return c.Key == q.Get(key) }) {
			return q.Get(key)
		}
		return ""
	}
	return listing{Search: strings.TrimSpace(q.Get("q")), Show: one("show", parts), Sort: one("sort", orders), Folder: strings.Trim(q.Get("folder"), "/")}
}

// page returns the query of the page from a place on.
func (l listing) page(at string) string {
	q := url.Values{}
	for key, value := range map[string]string{"q": l.Search, "show": l.Show, "sort": l.Sort, "folder": l.Folder, "after": at} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "?" + q.Encode()
}

// silence is the time without new entries after which a feed counts as silent.
const silence = 365 * 24 * time.Hour

// has reports whether the listing selects a feed. Newest is the time of its
// newest entry.
func (l listing) has(feed *mirror.Feed, newest, now time.Time) bool {
	switch l.Show {
	case "":
		return true
	case "silent":
		return !newest.IsZero() && now.Sub(newest) > silence
	case "failing":
		return feed.Error != ""
	}
	return !isFresh(feed) && feed.Verdict.String() == l.Show
}

// A row is a feed in the list, with its sort keys.
type row struct {
	url, title string
	missing    int // how much may be missing: the worse the verdict, the more
	entries    int64
	newest     time.Time
}

// compare orders rows; equal ones by title.
func (l listing) compare(a, b row) int {
	order := 0
	switch l.Sort {
	case "partial":
		order = cmp.Compare(b.missing, a.missing)
	case "entries":
		order = cmp.Compare(b.entries, a.entries)
	case "newest":
		order = b.newest.Compare(a.newest)
	case "silent": // feeds without entries come last
		order = cmp.Or(compareBool(a.newest.IsZero(), b.newest.IsZero()), a.newest.Compare(b.newest))
	}
	return cmp.Or(order, cmp.Compare(a.title, b.title), cmp.Compare(a.url, b.url))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// rows returns the feeds of a listing in its order.
func (s *Server) rows(ctx context.Context, l listing) ([]row, error) {
	words := strings.Fields(strings.ToLower(l.Search))
	dated := l.Show == "silent" || l.Sort == "silent" || l.Sort == "newest"
	if dated {
		s.feeds.summing.Lock()
		defer s.feeds.summing.Unlock()
	}
	var rows []row
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		title := strings.ToLower(titleOf(feed))
		text := title + " " + strings.ToLower(feed.URL)
		for _, path := range feed.Folders {
			text += " " + strings.ToLower(folderKey(path))
		}
		if !l.isIn(feed) || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		r := row{url: feed.URL, title: title, missing: int(feed.Verdict), entries: feed.Entries}
		if isFresh(feed) {
			r.missing = -1 // unknown
		}
		if dated {
			if r.newest, err = s.feeds.newestOf(ctx, feed); err != nil {
				return nil, err
			}
		}
		if l.has(feed, r.newest, s.now()) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, l.compare)
	return rows, nil
}

// pageOf returns the rows on the page after a feed, and the feed after which the next
// page begins; "" if there is none.
func pageOf(rows []row, after string) (page []row, next string) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.url == after }) + 1
	page = rows[at:min(len(rows), at+feedsPerPage)]
	if at+len(page) < len(rows) {
		next = page[len(page)-1].url
	}
	return page, next
}
