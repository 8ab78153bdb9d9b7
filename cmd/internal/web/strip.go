package web

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A strip is a small timeline above an entry, which shows the feed's history
// and the entry's place in it.
type strip struct {
	Path     string  // the bars as an SVG path, in units of the strip's viewBox
	At       float64 // the entry's position in percent
	From, To string  // the first and the last year
	Says     string  // the entry's place in words
	List     string  // the URL of the list of the same month
}

// stripHeight is the height of the highest bar. The width is lineWidth.
const stripHeight = 30.0

// mostPlaced is the maximum number of entries to count in order to find an
// entry's number.
const mostPlaced = 500

// stripOf returns the strip of an entry; nil if there is nothing to show around
// it.
func (d *directory) stripOf(ctx context.Context, feed *mirror.Feed, r *mirror.Record) (*strip, error) {
	f, err := d.figuresOf(ctx, feed)
	if err != nil || r.Time().IsZero() || feed.Entries < 2 || len(f.months) == 0 {
		return nil, err
	}
	scale := newScale(f.months, feed, 0)
	p := &strip{
		At:   tenth(100 * scale.x(r.Time()) / lineWidth),
		From: scale.start.Format("2006"), To: scale.end.AddDate(0, 0, -1).Format("2006"),
		List: d.root + "feeds/" + republish.Name(r.Feed) + "?month=" + monthOf(r.Time()).Format("2006-01") + "#entries", Says: r.Time().UTC().Format("January 2006"),
	}
	bins := scale.bins(f.months)
	h := newHeights(bins)
	width := lineWidth / float64(len(bins))
	var path strings.Builder
	for i, n := range bins {
		if n > 0 {
			height := max(tenth(h.of(n)*stripHeight/barsHeight), 1)
			fmt.Fprintf(&path, "M%g %gh%gv%gh-%[3]gz", tenth(float64(i)*width), tenth(stripHeight-height), math.Max(tenth(width*.8), .5), height)
		}
	}
	p.Path = path.String()
	n, all, err := d.placeOf(ctx, r, f)
	if n > 0 {
		p.Says = "Entry " + count(n) + " of " + count(all) + ", " + p.Says
	}
	return p, err
}

// placeOf returns the number of an entry among all entries of the feed, the
// oldest being 1. It returns zero if the entry is not one of them, or if too
// many are in the same month.
func (d *directory) placeOf(ctx context.Context, r *mirror.Record, f figures) (n, all int64, err error) {
	month := monthOf(r.Time())
	for _, m := range f.months {
		if all += m.Entries; m.Start.Before(month) {
			n += m.Entries
		} else if m.Start.Equal(month) && m.Entries > mostPlaced {
			return 0, 0, nil
		}
	}
	if r.State != mirror.Live {
		return 0, 0, nil
	}
	query := mirror.Query{Feed: r.Feed, Since: month, Until: month.AddDate(0, 1, 0), Oldest: true}
	for other, err := range d.store.Entries(ctx, query) {
		if err != nil {
			return 0, 0, err
		}
		if n++; other.ID == r.ID {
			return n, all, nil
		}
	}
	return 0, 0, nil // it has just been changed
}
