package web

import (
	"context"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A period is a part of the period a list shows, with a link to its entries.
type period struct {
	Says    string
	Entries int64
	Query   string // the query of the list
	Chosen  bool
}

// mostDays is the maximum number of entries of a month to read for finding its days.
const mostDays = 500

// periodsOf returns the months of the year a list shows, or the days of its
// month; none if it shows another period.
func (d *directory) periodsOf(ctx context.Context, v *entriesView, feed *mirror.Feed, f figures) ([]period, error) {
	months := f.months
	if v.hits != nil {
		months = v.hits
	}
	switch {
	case v.Span == 12 && v.From.Month() == time.January:
		return monthsOf(v, months), nil
	case v.Span != 1:
		return nil, nil
	}
	for _, m := range months {
		if m.Start.Equal(monthOf(v.From)) && m.Entries <= mostDays {
			return d.daysOf(ctx, v, feed, m)
		}
	}
	return nil, nil
}

func monthsOf(v *entriesView, months []mirror.Month) (all []period) {
	for _, m := range months {
		if m.Start.Year() == v.From.Year() {
			all = append(all, period{Says: m.Start.Format("January"), Entries: m.Entries, Query: v.period(m.Start, 1)})
		}
	}
	return all
}

// daysOf returns the days of a month with entries.
func (d *directory) daysOf(ctx context.Context, v *entriesView, feed *mirror.Feed, m mirror.Month) (all []period, err error) {
	query := mirror.Query{Feed: feed.URL, Since: m.Start, Until: m.Start.AddDate(0, 1, 0), Search: v.Search, Prefix: isBeginning(v.Search), Gone: v.Gone, Oldest: true, Limit: mostDays}
	for record, err := range portions(ctx, d.store, query) {
		if err != nil {
			return nil, err
		}
		day := record.Time().UTC().Day()
		if n := len(all); n == 0 || all[n-1].Says != strconv.Itoa(day) {
			list := v.selection
			list.Month, list.Span, list.Day = m.Start.Format("2006-01"), 1, day
			all = append(all, period{Says: strconv.Itoa(day), Query: list.page(""), Chosen: v.Day == day})
		}
		all[len(all)-1].Entries++
	}
	return all, nil
}
