package web

import (
	"context"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
	"github.com/feedhistory/feedhistory/republish"
)

type feedPage struct {
	*feedView
	Entries   *entriesView
	Timeline  template.HTML // "" if there is nothing to draw
	Progress  string
	Site      string   // the publisher's website; "" if unknown
	Source    string   // the URL of the feed, if it can be a link
	Published string   // the path under which the feed is published again
	Periods   []period // the months of the year, or the days of the month, in the list
	Older     string   // how to look for older entries; "" if there is nothing to look for
	Said      string
	Found     feedhistory.Links // the feeds of the page, if it is not a feed
}

// refresh reports whether the page must be loaded again, because the feed is
// being polled.
func (p *feedPage) refresh() bool { return p.Busy() }

// alternates are the links by which browsers and readers find the feed.
func (p *feedPage) alternates() []address {
	if p.Fresh() {
		return nil
	}
	return []address{
		{p.Published + "/index.atom", p.Title() + ", whole history (Atom)", "application/atom+xml"},
		{p.Published + "/index.rss", p.Title() + ", whole history (RSS)", "application/rss+xml"},
	}
}

// showFeed shows a feed: its timeline, its gaps, its entries.
func (s *Server) showFeed(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	v, figures, err := s.view(r.Context(), feed)
	if err != nil {
		return err
	}
	p := &feedPage{feedView: v, Progress: progressOf(feed, v.Waits), Site: republish.Site(feed), Source: webLink(feed.URL), Older: s.olderHint(feed)}
	name, err := s.published.Name(r.Context(), feed.URL)
	if err != nil {
		return err
	}
	p.Published, p.Said = s.at("/feeds/"+name), said[r.URL.Query().Get("said")]
	if feed.Head == "" {
		p.Found, _ = s.adder.found.Get(feed.URL)
	}
	if p.Entries, err = s.entries(r, feed); err != nil {
		return err
	}
	if p.Periods, err = s.feeds.periodsOf(r.Context(), p.Entries, feed, figures); err != nil {
		return err
	}
	if !v.Fresh() {
		if p.Timeline, err = s.timeline(r.Context(), v, figures, p.Entries); err != nil {
			return err
		}
	}
	return s.render(w, r, http.StatusOK, "feed", v.Title(), p)
}

// olderHint says how to look for older entries of a feed, in the server's database.
func (s *Server) olderHint(feed *mirror.Feed) string {
	return capitalised(strings.Replace(command.OlderHintOf(feed), "feedhistory sync", s.Hints.Command("sync"), 1))
}

// Lang returns the language of the feed, according to its newest entry.
func (p *feedPage) Lang() string {
	if len(p.Entries.Items) == 0 {
		return ""
	}
	return p.Entries.Items[0].Lang
}

// mostTimelines is the number of timelines, and of lists of documents, to keep.
// Those of large feeds have some hundred kilobytes.
const mostTimelines = 32

// Here describes the period of the entries in a list; "" if it has none.
func (v *entriesView) Here() string {
	if len(v.Items) == 0 {
		return ""
	}
	newest, oldest := day(v.Items[0].Time), day(v.Items[len(v.Items)-1].Time)
	if v.Oldest {
		newest, oldest = oldest, newest
	}
	if newest == oldest {
		return newest
	}
	return oldest + " – " + newest
}

func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// A gapView is a gap of a feed, as a page shows it.
type gapView struct {
	Number  int
	What    string // the missing part
	Message string // why it is missing
	Advice  string // the remedy
	Receipt string // what closes it
	URL     string // the URL of the document
	From    string // the document linking to it
	Shown   string // the URL without userinfo
	Found   time.Time
	Retry   time.Time // when to try again; zero means at the next poll, or never
	Reason  feedhistory.Reason
	Todo    bool // whether the document is only still to be read
}

// gapsOf returns the gaps of a feed.
func gapsOf(feed *mirror.Feed) (views []gapView) {
	for i, debt := range feed.Ledger.Debts() {
		gap := debt.Gap
		v := gapView{
			Number: i + 1, What: "An archive document could not be retrieved", Message: gap.Err.Error(), Advice: gap.Reason.Advice(),
			URL: webLink(gap.URL), From: gap.From, Shown: feedhistory.Redact(gap.URL), Found: gap.Found, Reason: gap.Reason,
			Receipt: debt.Receipt, Retry: debt.Retry,
		}
		switch {
		case gap.Reason == feedhistory.ReasonMissedWindow:
			v.What = "Entries may have come and gone between two polls"
		case gap.Reason == feedhistory.ReasonInterrupted:
			v.What, v.Todo = "A document has not been read yet", feed.Unfinished || feed.More
		case gap.Reason == feedhistory.ReasonLoop:
			v.What = "The chain of documents leads back into itself"
		case feed.Kind == feedhistory.KindPaged:
			v.What = "A page could not be retrieved"
		}
		views = append(views, v)
	}
	return views
}

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

func monthsOf(v *entriesView, months []month) (all []period) {
	for _, m := range months {
		if m.Start.Year() == v.From.Year() {
			all = append(all, period{Says: m.Start.Format("January"), Entries: m.Entries, Query: v.period(m.Start, 1)})
		}
	}
	return all
}

// daysOf returns the days of a month with entries.
func (d *directory) daysOf(ctx context.Context, v *entriesView, feed *mirror.Feed, m month) (all []period, err error) {
	query := mirror.Query{Feed: feed.URL, Since: m.Start, Until: m.Start.AddDate(0, 1, 0), Search: v.Search, Prefix: words.IsBeginning(v.Search), States: v.states(), Reverse: true, Limit: mostDays}
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
