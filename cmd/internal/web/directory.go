package web

import (
	"context"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// A directory finds feeds by their addresses, and has the figures of feeds.
type directory struct {
	store     mirror.Store
	published *republish.Handler
	root      string // the path of the server, with a final slash

	mu   sync.Mutex
	read time.Time // when all feeds were last looked at

	alike      map[string]string // the URL of a feed, by the likeness of its addresses
	successors map[string]string // the name of a feed, by the name of another it replaced

	figures publish.Cache[string, figures] // by URL

	summing sync.Mutex                        // held while looking at the entries of all feeds
	newest  publish.Cache[string, newestTime] // by URL; small, so the values of all feeds fit
	years   publish.Cache[string, yearsOf]    // by URL, also small
}

// forget forgets the figures of a removed feed: if it is added again,
// its versions have the same numbers.
func (d *directory) forget(url string) {
	d.figures.Drop(url)
	d.newest.Drop(url)
	d.years.Drop(url)
}

// keptSmall is the minimum number of small figures to keep.
const keptSmall = 20_000

// A newestTime is the time of a feed's newest entry, at a version of the feed.
type newestTime struct {
	version int64
	newest  time.Time
}

// newestOf returns the time of a feed's newest entry; zero if there is none.
func (d *directory) newestOf(ctx context.Context, feed *mirror.Feed) (time.Time, error) {
	if known, ok := d.newest.Get(feed.URL); ok && known.version == feed.Commits {
		return known.newest, nil
	}
	now := newestTime{version: feed.Commits}
	if feed.Entries > 0 {
		for r, err := range d.store.Entries(ctx, mirror.Query{Feed: feed.URL, Limit: 1}) {
			if err != nil {
				return time.Time{}, err
			}
			now.newest = r.Time()
		}
	}
	d.newest.Put(feed.URL, now)
	return now.newest, nil
}

// A yearsOf is the number of a feed's entries in each year, at a version of the
// feed.
type yearsOf struct {
	version int64
	counts  []yearCount // oldest first
}

type yearCount struct {
	year    int
	entries int64
}

// yearsOf returns the number of a feed's entries in each year.
func (d *directory) yearsOf(ctx context.Context, feed *mirror.Feed) ([]yearCount, error) {
	if known, ok := d.years.Get(feed.URL); ok && known.version == feed.Commits {
		return known.counts, nil
	}
	now := yearsOf{version: feed.Commits}
	if feed.Entries > 0 {
		months, err := mirror.Months(ctx, d.store, mirror.Query{Feed: feed.URL})
		if err != nil {
			return nil, err
		}
		for _, m := range months {
			if m.Start.IsZero() {
				continue // these have no time
			}
			if n := len(now.counts); n == 0 || now.counts[n-1].year != m.Start.Year() {
				now.counts = append(now.counts, yearCount{year: m.Start.Year()})
			}
			now.counts[len(now.counts)-1].entries += m.Entries
		}
	}
	d.years.Put(feed.URL, now)
	return now.counts, nil
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

// figures are the numbers on pages about all entries of a feed.
type figures struct {
	version int64          // the version of the feed
	months  []mirror.Month // the months with entries, oldest first
	newest  time.Time
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
	if known, ok := d.figures.Get(feed.URL); ok && known.version == feed.Commits {
		return known, nil
	}
	f := figures{version: feed.Commits}
	if feed.Entries == 0 {
		return f, nil
	}
	var err error
	if f.newest, err = d.newestOf(ctx, feed); err != nil {
		return f, err
	}
	if f.months, err = mirror.Months(ctx, d.store, mirror.Query{Feed: feed.URL}); err == nil {
		d.figures.Put(feed.URL, f)
	}
	return f, err
}

// monthOf returns the beginning of the month of a time.
func monthOf(t time.Time) time.Time {
	year, m, _ := t.UTC().Date()
	return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
}
