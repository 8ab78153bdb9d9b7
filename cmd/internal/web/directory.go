package web

import (
	"context"
	"errors"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/feedhistory/feedhistory/republish"
)

// A directory finds feeds by their addresses, and has the figures of feeds.
type directory struct {
	store     mirror.Store
	published *republish.Handler

	mu   sync.Mutex
	read time.Time // when all feeds were last looked at

	alike      map[string]string // the URL of a feed, by the likeness of its addresses
	successors map[string]string // the name of a feed, by the name of another it replaced

	figures   perFeed[figures]
	documents perFeed[[]*mirror.DocumentRecord] // as far as timelines need them
	timelines serve.Cache[string, template.HTML]

	summing sync.Mutex             // held while looking at the entries of all feeds
	newest  perFeed[time.Time]     // small, so the values of all feeds fit
	years   perFeed[map[int]int64] // also small
}

// forget forgets the figures of a removed feed: if it is added again,
// its versions have the same numbers.
func (d *directory) forget(url string) {
	d.figures.Drop(url)
	d.newest.Drop(url)
	d.years.Drop(url)
	d.documents.Drop(url)
}

// keptSmall is the minimum number of small figures to keep.
const keptSmall = 20_000

// A perFeed has a value for each feed, made anew after the feed has changed.
type perFeed[V any] struct {
	serve.Cache[string, feedValue[V]] // by URL
}

// A feedValue is a value at a version of a feed.
type feedValue[V any] struct {
	version int64
	value   V
}

// of returns the value for a feed in its present state.
func (c *perFeed[V]) of(feed *mirror.Feed, made func() (V, error)) (V, error) {
	if known, ok := c.Get(feed.URL); ok && known.version == feed.Commits {
		return known.value, nil
	}
	value, err := made()
	if err == nil {
		c.Put(feed.URL, feedValue[V]{feed.Commits, value})
	}
	return value, err
}

// newestOf returns the time of a feed's newest entry; zero if there is none.
func (d *directory) newestOf(ctx context.Context, feed *mirror.Feed) (time.Time, error) {
	return d.newest.of(feed, func() (at time.Time, err error) {
		if feed.Entries == 0 {
			return at, nil
		}
		r, err := lastOf(ctx, d.store, mirror.Query{Feed: feed.URL, Limit: 1})
		if r != nil {
			at = r.Time()
		}
		return at, err
	})
}

// yearsOf returns the number of a feed's entries in each year, without those that have no
// time.
func (d *directory) yearsOf(ctx context.Context, feed *mirror.Feed) (map[int]int64, error) {
	return d.years.of(feed, func() (map[int]int64, error) {
		if feed.Entries == 0 {
			return nil, nil
		}
		years := map[int]int64{}
		months, err := mirror.Months(ctx, d.store, mirror.Query{Feed: feed.URL})
		for start, n := range months {
			if !start.IsZero() {
				years[start.Year()] += n
			}
		}
		return years, err
	})
}

// look reads all feeds.
func (d *directory) look(ctx context.Context) error {
	d.read, d.alike = time.Now(), map[string]string{}
	for feed, err := range d.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			d.read = time.Time{}
			return err
		}
		d.resemble(feed.URL, feed.URL)
		d.resemble(feed.Address, feed.URL)
	}
	return nil
}

// add prepares for a new feed. It refuses a feed whose
// name another feed has.
func (d *directory) add(ctx context.Context, url string) error {
	if err := d.published.Reserve(ctx, url); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return err
		}
	}
	d.resemble(url, url)
	return nil
}

// A month is the number of entries in a calendar month.
type month struct {
	Start   time.Time // its first instant, in UTC
	Entries int64
}

// sortedMonths returns counts by month as a list, the oldest first.
func sortedMonths(counts map[time.Time]int64) (months []month) {
	for start, n := range counts {
		months = append(months, month{start, n})
	}
	slices.SortFunc(months, func(a, b month) int { return a.Start.Compare(b.Start) })
	return months
}

// figures are the numbers on pages about all entries of a feed.
type figures struct {
	months []month // the months with entries, oldest first
	newest time.Time
}

// oldest returns the month of the oldest entry; the zero time if there is none.
func (f figures) oldest() time.Time {
	if len(f.months) == 0 {
		return time.Time{}
	}
	return f.months[0].Start
}

// figuresOf returns the figures of a feed in its present state.
func (d *directory) figuresOf(ctx context.Context, feed *mirror.Feed) (figures, error) {
	return d.figures.of(feed, func() (f figures, err error) {
		if feed.Entries == 0 {
			return f, nil
		}
		if f.newest, err = d.newestOf(ctx, feed); err == nil {
			var counts map[time.Time]int64
			counts, err = mirror.Months(ctx, d.store, mirror.Query{Feed: feed.URL})
			f.months = sortedMonths(counts)
		}
		return f, err
	})
}

// monthOf returns the beginning of the month of a time.
func monthOf(t time.Time) time.Time {
	year, m, _ := t.UTC().Date()
	return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
}

// This file recognises a feed already here under a different address,
// and finds the feeds of a page.

// likeness returns the same text for addresses that nearly always lead to the same
// feed: they differ only in http and https, in a final slash, or in whether characters
// are escaped.
func likeness(address string) string {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return address
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "80" || port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return host + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery
}

// resemble records an address of a feed.
func (d *directory) resemble(address, feed string) {
	if address == "" {
		return
	}
	if _, ok := d.alike[likeness(address)]; !ok {
		d.alike[likeness(address)] = feed
	}
}

// like returns the feed an address probably leads to, or nil.
func (d *directory) like(ctx context.Context, address string) (*mirror.Feed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return nil, err
		}
	}
	if feed, err := d.store.Feed(ctx, address); !errors.Is(err, mirror.ErrNotFound) {
		return feed, err
	}
	known, ok := d.alike[likeness(address)]
	if !ok {
		return nil, nil
	}
	feed, err := d.store.Feed(ctx, known)
	if errors.Is(err, mirror.ErrNotFound) {
		delete(d.alike, likeness(address))
		return nil, nil
	}
	return feed, err
}

// replaced records a feed as removed because of another one.
func (d *directory) replaced(feed, by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.successors == nil {
		d.successors = map[string]string{}
	}
	d.successors[republish.Name(feed)] = republish.Name(by)
}

// successor returns the name of the feed in the place of another one; "" if
// there is none.
func (d *directory) successor(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.successors[name]
}
