package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// strays are the addresses that were named at the command line and were not in the
// database before. One that never was a feed's leaves no trace there; where it is a
// page's, the page's feed takes its place.
type strays struct {
	named map[string]bool // at the command line

	mu    sync.Mutex
	fresh map[string]bool // and not in the database before: whether its page is to be looked at for feeds
}

// add notes that an address has come into the database.
func (s *strays) add(url string, asPage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh = map[string]bool{}
	}
	s.fresh[url] = asPage
}

// look finds out whether a poll has failed because there never was a feed, and, if
// there is a page, which feeds it has.
func (s *strays) look(ctx context.Context, m *mirror.Mirror, o *outcome) {
	s.mu.Lock()
	asPage, fresh := s.fresh[o.feed]
	s.mu.Unlock()
	if !fresh || o.kind != failed || !o.forget || !isNoFeed(o.err) {
		return
	}
	if asPage {
		client := m.Client
		if m.ClientFor != nil {
			client = cmp.Or(m.ClientFor(o.feed), client)
		}
		o.found = feedsOf(ctx, client, o.feed, o.err)
	}
	o.stray = ctx.Err() == nil
}

// isNoFeed reports whether what an address answers is that there is no feed.
func isNoFeed(err error) bool {
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed ||
		feedhistory.IsStatus(err, http.StatusNotFound, http.StatusGone)
}

// forget removes an address that is not a feed's from the store, and has the feed
// of its page polled instead. The error is the store's.
func (s *syncing) forget(o outcome) error {
	ctx := context.Background()
	if err := s.mirror.Store.Remove(ctx, o.feed); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	feed := ""
	if len(o.found) > 0 {
		feed = feedName(o.found[0].Href)
	}
	if s.keys != nil {
		if err := s.keys.replace(o.feed, feed); err != nil {
			return err
		}
	}
	if feed == "" {
		return nil
	}
	s.report.found(o)
	isNew, err := s.subscribeOne(ctx, feed)
	if err != nil {
		return err
	}
	if isNew {
		s.strays.add(feed, false) // or two pages could name each other
	}
	if _, told := s.report.told[feed]; !told {
		s.lanes.add(feed, (&mirror.Feed{URL: feed}).Host())
	}
	return nil
}
