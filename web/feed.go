package web

import (
	"net/http"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

type feedPage struct {
	*feedView
	Entries   *entriesView
	Timeline  *timeline // nil: there is nothing to draw
	Progress  progress
	Site      string // of the publisher; "" if it is not known
	Source    string // the feed's own URL, if it can be a link
	Published string // the path below which it is published again
}

// refresh has the page loaded again while the feed is polled.
func (p *feedPage) refresh() bool { return p.Busy() }

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
	p.Published = "/feeds/" + name
	if p.Entries, err = s.entries(r, feed); err != nil {
		return err
	}
	if !v.Fresh() {
		var documents []*mirror.Document
		for d, err := range s.Store.Documents(r.Context(), feed.URL) {
			if err != nil {
				return err
			}
			documents = append(documents, d)
		}
		p.Timeline = newTimeline(feed, figures.months, documents, v.Missing)
	}
	return s.render(w, r, http.StatusOK, "feed", v.Title(), p)
}

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
