package republish

import (
	"context"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/mirror"
)

// mostShown is the number of entries shown of a feed whose own document the mirror
// does not count.
const mostShown = 1000

// shownEntries says how many entries a subscription document shows: as many as
// the publisher's own, and in addition those of recent polls.
type shownEntries struct {
	Source int                `json:"source,omitzero"` // number of entries the publisher's document shows, or may show
	Added  feedtime.Additions `json:"added,omitempty"` // by the numbers of polls; the last one belongs to the present update
}

// begin begins an update.
func (s *shownEntries) begin(feed *mirror.Feed, now time.Time) {
	switch n := int(min(feed.Entries, mostShown)); {
	case feed.Kind == feedhistory.Complete:
		s.Source = int(feed.Entries)
	case feed.Kind == feedhistory.Archived:
		s.Source = len(feed.Shown)
	case s.Source == 0:
		s.Source = n
	}
	s.Added = s.Added.Begin(feed.Polls, now)
}

// count returns the number of entries to show.
func (s *shownEntries) count() int { return max(feedtime.LeastShown, s.Source) + s.Added.Entries() }

// finish writes the subscription document with its head.
func (p *publication) finish(ctx context.Context, head *feedhistory.Document) error {
	publisher := p.publisher(head)
	for {
		if err := publisher.Append(ctx); err != nil {
			return err
		}
		size := len(p.out.files[indexName(p.format)])
		if size <= feedtime.MostShown || publisher.Recent == feedtime.LeastShown {
			return nil
		}
		publisher.Recent = max(feedtime.LeastShown, min(publisher.Recent*3/4, publisher.Recent*feedtime.MostShown/size))
	}
}
