package republish

import (
	"context"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Readers that follow no archives know only the subscription document. It shows at
// least leastShown entries, as many as the publisher's own document, and all from the
// latest polls, as long as it is not too large.
const (
	leastShown = 20
	mostShown  = 1000 // of a feed whose own document the mirror does not count
	recentTime = 72 * time.Hour
	recentPoll = 10
	mostBytes  = 4 << 20 // of entries also in archives
)

// shownEntries says how many entries a subscription document shows.
type shownEntries struct {
	Source int        `json:"source,omitzero"` // number of entries the publisher's document shows, or may show
	Added  []addition `json:"added,omitempty"` // oldest first; the last one belongs to the present update
}

// An addition is the entries added by one update.
type addition struct {
	Poll    int64     `json:"poll"` // number of polls of the feed
	At      time.Time `json:"at"`
	Entries int       `json:"entries"`
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
	var recent []addition
	for _, a := range s.Added {
		if a.Entries > 0 && (now.Sub(a.At) < recentTime || feed.Polls-a.Poll < recentPoll) {
			recent = append(recent, a)
		}
	}
	s.Added = append(recent, addition{Poll: feed.Polls, At: now.UTC().Truncate(time.Second)})
}

// add counts entries added by the present update.
func (s *shownEntries) add(n int) { s.Added[len(s.Added)-1].Entries += n }

// count returns the number of entries to show.
func (s *shownEntries) count() int {
	n := max(leastShown, s.Source)
	for _, a := range s.Added {
		n += a.Entries
	}
	return n
}

// finish writes the subscription document with its head.
func (p *publication) finish(ctx context.Context, head *feedhistory.Document) error {
	publisher := p.publisher(head)
	for {
		if err := publisher.Append(ctx); err != nil {
			return err
		}
		size := len(p.out.files[indexName(p.format)])
		if size <= mostBytes || publisher.Recent == leastShown {
			return nil
		}
		publisher.Recent = max(leastShown, min(publisher.Recent*3/4, publisher.Recent*mostBytes/size))
	}
}
