package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

type feedPage struct {
	*feedView
	Entries   *entriesView
	Timeline  template.HTML // "": there is nothing to draw
	Progress  progress
	Site      string // of the publisher; "" if it is not known
	Source    string // the feed's own URL, if it can be a link
	Published string // the path below which it is published again
	Said      string
	Found     feedhistory.Links // the feeds that the page has, if it is no feed
}

// refresh has the page loaded again while the feed is polled.
func (p *feedPage) refresh() bool { return p.Busy() }

// alternates are what browsers and readers find the feed by.
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
	p := &feedPage{feedView: v, Progress: progressOf(feed, v.Waits, v.Runs), Site: siteOf(feed), Source: webLink(feed.URL)}
	name, err := s.published.name(r.Context(), feed.URL)
	if err != nil {
		return err
	}
	p.Published, p.Said = "/feeds/"+name, said[r.URL.Query().Get("said")]
	if feed.Head == "" {
		p.Found, _ = s.found.get(feed.URL)
	}
	if p.Entries, err = s.entries(r, feed); err != nil {
		return err
	}
	if !v.Fresh() {
		if p.Timeline, err = s.timeline(r.Context(), v, figures, p.Entries); err != nil {
			return err
		}
	}
	return s.render(w, r, http.StatusOK, "feed", v.Title(), p)
}

// Lang is the language of the feed, as far as its newest entry tells it.
func (p *feedPage) Lang() string {
	if len(p.Entries.Items) == 0 {
		return ""
	}
	return p.Entries.Items[0].Lang
}

// mostTimelines is how many timelines, and lists of documents, are kept: those
// of large feeds have some hundred kilobytes.
const mostTimelines = 32

// timeline returns the drawing of a feed with what a list shows. As a rule it is
// what it was, and as large as all the rest of the page.
func (s *Server) timeline(ctx context.Context, v *feedView, f figures, list *entriesView) (template.HTML, error) {
	key := fmt.Sprintf("%s\n%s\n%s\n%s", v.URL, stateOf(v.Feed), list.Newest, list.Here())
	if drawn, ok := s.timelines.get(key); ok {
		return drawn, nil
	}
	documents, err := s.documentsOf(ctx, v.Feed)
	if err != nil {
		return "", err
	}
	t := newTimeline(v.Feed, f.months, documents, v.Missing, list)
	if n := len(list.Items); n > 0 {
		from, to := list.Items[n-1].Time, list.Items[0].Time
		if list.Oldest {
			from, to = to, from
		}
		t.here(from, to, list.Here())
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "timeline.html", t); err != nil {
		return "", err
	}
	drawn := template.HTML(b.String()) // written by a template
	s.timelines.put(key, drawn)
	return drawn, nil
}

// known documents are those of a feed at a version.
type knownDocuments struct {
	version int64
	list    []*mirror.Document
}

// documentsOf returns what timelines need to know of a feed's documents.
func (s *Server) documentsOf(ctx context.Context, feed *mirror.Feed) ([]*mirror.Document, error) {
	if known, ok := s.documents.get(feed.URL); ok && known.version == feed.Version {
		return known.list, nil
	}
	var list []*mirror.Document
	for d, err := range s.Store.Documents(ctx, feed.URL) {
		if err != nil {
			return nil, err
		}
		list = append(list, &mirror.Document{URL: d.URL, Names: d.Names, Entries: d.Entries, Oldest: d.Oldest, Newest: d.Newest})
	}
	s.documents.put(feed.URL, knownDocuments{feed.Version, list})
	return list, nil
}

// Here says from when the entries are that a list shows; "" if it shows none.
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

// siteOf returns the URL of the website that a feed belongs to; "" if it is not
// known.
func siteOf(feed *mirror.Feed) string {
	head, err := feed.Document()
	if err != nil {
		return ""
	}
	link, _ := head.Links.Rel(feedhistory.RelAlternate)
	return webLink(link.Href)
}
