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

// A listing is what the list of feeds is asked for: a part of them, in an order.
type listing struct {
	Search string
	Show   string // a key of parts; "": all
	Sort   string // a key of orders; "": as they come
}

// A choice is one that a form offers.
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

// Asked reports whether anything but the usual list is asked for.
func (l listing) Asked() bool { return l != listing{} }

// listingOf reads what a URL's query asks for; what there is not is as if it was
// not asked for.
func listingOf(q url.Values) listing {
	one := func(key string, of []choice) string {
		if slices.ContainsFunc(of, func(c choice) bool { return c.Key == q.Get(key) }) {
			return q.Get(key)
		}
		return ""
	}
	return listing{Search: strings.TrimSpace(q.Get("q")), Show: one("show", parts), Sort: one("sort", orders)}
}

// page returns the query of the page that begins at a place.
func (l listing) page(at string) string {
	q := url.Values{}
	for key, value := range map[string]string{"q": l.Search, "show": l.Show, "sort": l.Sort, "after": at} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "?" + q.Encode()
}

// silence is how long a feed that is called silent has had no entry.
const silence = 365 * 24 * time.Hour

// has reports whether a feed is in the part. Newest is the time of its newest
// entry.
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

// A row is a feed of the list, as far as its order goes.
type row struct {
	url, title string
	missing    int // how much may be: the worse the verdict, the more
	entries    int64
	newest     time.Time
}

// compare orders rows; those that agree are by title.
func (l listing) compare(a, b row) int {
	order := 0
	switch l.Sort {
	case "partial":
		order = cmp.Compare(b.missing, a.missing)
	case "entries":
		order = cmp.Compare(b.entries, a.entries)
	case "newest":
		order = b.newest.Compare(a.newest)
	case "silent": // those that have nothing are last
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

// rows returns the feeds of a listing, in its order.
func (s *Server) rows(ctx context.Context, l listing) ([]row, error) {
	words := strings.Fields(strings.ToLower(l.Search))
	dated := l.Show == "silent" || l.Sort == "silent" || l.Sort == "newest"
	if dated {
		s.feeds.summing.Lock()
		defer s.feeds.summing.Unlock()
	}
	var rows []row
	for feed, err := range s.Store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		title := strings.ToLower(titleOf(feed))
		text := title + " " + strings.ToLower(feed.URL)
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		r := row{url: feed.URL, title: title, missing: int(feed.Verdict), entries: feed.Entries}
		if isFresh(feed) {
			r.missing = -1 // nobody knows
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

// pageOf returns those of the rows that are on the page which begins after a
// feed, and after which the next one begins; "" if there is none.
func pageOf(rows []row, after string) (page []row, next string) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.url == after }) + 1
	page = rows[at:min(len(rows), at+feedsPerPage)]
	if at+len(page) < len(rows) {
		next = page[len(page)-1].url
	}
	return page, next
}
