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
	keys  *keyring        // the feeds' credentials; nil: there are none

	mu    sync.Mutex
	fresh map[string]bool              // and not in the database before: whether its page is to be looked at for feeds
	found map[string]feedhistory.Links // the feeds of what is not a feed
}

// add notes that an address has come into the database.
func (s *strays) add(url string, asPage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh, s.found = map[string]bool{}, map[string]feedhistory.Links{}
	}
	s.fresh[url] = asPage
}

// look finds out whether a poll has failed because there never was a feed, and, if
// there is a page, which feeds it has.
func (s *strays) look(ctx context.Context, m *mirror.Mirror, url string, failure error) {
	s.mu.Lock()
	asPage, fresh := s.fresh[url]
	s.mu.Unlock()
	if !fresh || !isNoFeed(failure) {
		return
	}
	var feeds feedhistory.Links
	if asPage {
		feeds = feedsOf(ctx, cmp.Or(ownClient(m, url), m.Client), url, failure)
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[url] = feeds
}

// of returns what look has found: whether an address is not a feed's, and the feeds
// of the page that is there.
func (s *strays) of(url string) (feeds feedhistory.Links, stray bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	feeds, stray = s.found[url]
	return feeds, stray
}

// ownClient is the client that a mirror has for a feed alone; nil: none.
func ownClient(m *mirror.Mirror, feed string) *feedhistory.Client {
	if m.ClientFor == nil {
		return nil
	}
	return m.ClientFor(feed)
}

// isNoFeed reports whether what an address answers is that there is no feed.
func isNoFeed(err error) bool {
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed ||
		feedhistory.IsStatus(err, http.StatusNotFound, http.StatusGone)
}

// forget removes an address that is not a feed's from the store, and has the feed
// of its page polled instead. The error is the store's.
func (s *syncing) forget(ctx context.Context, url string, feeds feedhistory.Links) error {
	ctx = context.WithoutCancel(ctx)
	store := s.poller.Mirror.Store
	if err := store.Remove(ctx, url); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	feed := ""
	if len(feeds) > 0 {
		feed = feedName(feeds[0].Href)
	}
	if s.strays.keys != nil {
		if err := s.strays.keys.replace(url, feed); err != nil {
			return err
		}
	}
	if feed == "" {
		return nil
	}
	s.report.found(url, feeds)
	isNew, err := subscribe(ctx, store, feed)
	if err != nil {
		return err
	}
	if isNew {
		s.strays.add(feed, false) // or two pages could name each other
	}
	if !s.report.hasTold(feed) {
		s.poller.Add(&mirror.Feed{URL: feed})
	}
	return nil
}
