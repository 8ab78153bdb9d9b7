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
	"github.com/feedhistory/feedhistory/republish"
)

type feedPage struct {
	*feedView
	Entries   *entriesView
	Timeline  template.HTML // "" if there is nothing to draw
	Progress  progress
	Site      string // the publisher's website; "" if unknown
	Source    string // the URL of the feed, if it can be a link
	Published string // the path under which the feed is published again
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

// timeline returns the drawing of a feed, with what a list shows marked in it.
// It is cached, because it rarely changes and is as large as the rest of the
// page.
func (s *Server) timeline(ctx context.Context, v *feedView, f figures, list *entriesView) (template.HTML, error) {
	key := fmt.Sprintf("%s\n%d %d\n%s\n%s", v.URL, v.Version, v.Feed.Changed.UnixNano(), list.Newest, list.Here())
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

// knownDocuments are the documents of a feed at a version.
type knownDocuments struct {
	version int64
	list    []*mirror.Document
}

// documentsOf returns what timelines need to know about a feed's documents.
func (s *Server) documentsOf(ctx context.Context, feed *mirror.Feed) ([]*mirror.Document, error) {
	if known, ok := s.documents.get(feed.URL); ok && known.version == feed.Version {
		return known.list, nil
	}
	var list []*mirror.Document
	for d, err := range s.store.Documents(ctx, feed.URL) {
		if err != nil {
			return nil, err
		}
		list = append(list, &mirror.Document{URL: d.URL, Names: d.Names, Entries: d.Entries, Oldest: d.Oldest, Newest: d.Newest})
	}
	s.documents.put(feed.URL, knownDocuments{feed.Version, list})
	return list, nil
}

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
