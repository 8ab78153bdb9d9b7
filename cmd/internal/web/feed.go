package web

import (
	"html/template"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/republish"
)

type feedPage struct {
	*feedView
	Entries   *entriesView
	Timeline  template.HTML // "" if there is nothing to draw
	Progress  progress
	Site      string   // the publisher's website; "" if unknown
	Source    string   // the URL of the feed, if it can be a link
	Published string   // the path under which the feed is published again
	Periods   []period // the months of the year, or the days of the month, in the list
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
func (s *Server) showFeed(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	v, figures, err := s.view(r.Context(), feed)
	if err != nil {
		return err
	}
	p := &feedPage{feedView: v, Progress: progressOf(feed, v.Waits, v.Runs), Site: republish.Site(feed), Source: webLink(feed.URL)}
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
		if p.Timeline, err = s.drawings.timeline(r.Context(), v, figures, p.Entries); err != nil {
			return err
		}
	}
	return s.render(w, r, http.StatusOK, "feed", v.Title(), p)
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
