package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A welcome is the part of the first page before the feeds: it invites to read.
type welcome struct {
	Places  []welcomePlace
	Shelves []*shelf
}

// A shelf is a few entries.
type shelf struct {
	Says     string
	Items    []entryItem
	Snippets bool
	More     address // where there are more
}

// A welcomePlace is where the visitor was in a feed.
type welcomePlace struct {
	*readingPlace
	Name, Of string // of the feed
	Strip    *strip // nil if there is nothing to show around the entry
}

// How much a welcome has, and how far back it looks for this day.
const (
	mostPlaces = 3
	mostShelf  = 4 // entries
	mostYears  = 30
)

// welcome returns the welcome for a visitor, with the old entry of one of these feeds.
func (s *Server) welcome(r *http.Request, feeds []*mirror.Feed) (*welcome, error) {
	p := &welcome{}
	if err := s.addPlaces(r, p); err != nil {
		return nil, err
	}
	ctx, now, titles := r.Context(), s.now().UTC(), map[string]string{}
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
	p.Shelves = []*shelf{today, old, latest}
	return p, s.fill(ctx, latest, titles, mirror.Query{Limit: mostShelf})
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

// addPlaces adds the places in the feeds in which the visitor was last.
func (s *Server) addPlaces(r *http.Request, p *welcome) error {
	latest, err := s.latestFeeds(r, mostPlaces)
	if err != nil {
		return err
	}
	for _, url := range latest {
		feed, err := s.store.Feed(r.Context(), url)
		if errors.Is(err, mirror.ErrNotFound) {
			continue // it has just been removed
		}
		if err != nil {
			return err
		}
		figures, err := s.feeds.figuresOf(r.Context(), feed)
		if err != nil {
			return err
		}
		places, err := s.places(r, feed, figures)
		if err != nil {
			return err
		}
		for _, place := range places {
			strip, err := s.stripOf(r, feed, place.record)
			if err != nil {
				return err
			}
			p.Places = append(p.Places, welcomePlace{place, republish.Name(feed.URL), titleOf(feed), strip})
		}
	}
	return nil
}
