package web

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A shelf is a few entries.
type shelf struct {
	Says     string
	Items    []entryItem
	Snippets bool
	More     address // where there are more
}

// The entries of a shelf, and how far back it looks for this day.
const (
	mostShelf = 4
	mostYears = 30
)

// welcome returns the shelves of the first page, before the feeds. The old entry is of one
// of these.
func (s *Server) welcome(ctx context.Context, feeds []*mirror.Feed) ([]*shelf, error) {
	now, titles := s.now().UTC(), map[string]string{}
	today := &shelf{Says: "On this day"}
	for year := now.Year() - 1; year > now.Year()-mostYears && len(today.Items) < mostShelf; year-- {
		since := time.Date(year, now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
		if err := s.fill(ctx, today, titles, mirror.Query{Since: since, Until: since.AddDate(0, 0, 1), Limit: 1}); err != nil {
			return nil, err
		}
	}
	old, err := s.oldShelf(ctx, feeds, now.Unix()/int64(24*time.Hour/time.Second))
	if err != nil {
		return nil, err
	}
	latest := &shelf{Says: "New", More: address{Says: "All entries, the newest first", URL: "entries"}}
	return []*shelf{today, old, latest}, s.fill(ctx, latest, titles, mirror.Query{Limit: mostShelf})
}

// fill adds the entries of a query to a shelf.
func (s *Server) fill(ctx context.Context, p *shelf, titles map[string]string, q mirror.Query) error {
	for record, err := range s.store.Entries(ctx, q) {
		if err != nil {
			return err
		}
		title, err := titled(ctx, s.store, titles, record.Feed)
		if err != nil {
			return err
		}
		p.add(s.item(record, nil), title)
	}
	return nil
}

func (p *shelf) add(item entryItem, feed string) {
	item.Of = feed
	p.Items = append(p.Items, item)
}

// scatter is a large prime, so the numbers of neighbouring days are far apart.
const scatter = 1_000_003

// oldShelf returns a shelf with one old entry, another one each day.
func (s *Server) oldShelf(ctx context.Context, feeds []*mirror.Feed, day int64) (*shelf, error) {
	p := &shelf{Says: "From the past", Snippets: true}
	for i := range feeds {
		feed := feeds[(day*scatter+int64(i))%int64(len(feeds))]
		if feed.Entries <= mostShelf { // all of it may be new
			continue
		}
		old, err := s.pick(ctx, feed, func(all int64) int64 { return day * scatter % max(all*3/4, 1) })
		if errors.Is(err, mirror.ErrNotFound) {
			continue // it has just been removed
		}
		if err != nil {
			return nil, err
		}
		p.More = address{Says: "Another one of this feed", URL: "feeds/" + republish.Name(feed.URL) + "/random"}
		p.add(s.item(old, nil), titleOf(feed))
		break
	}
	return p, nil
}
