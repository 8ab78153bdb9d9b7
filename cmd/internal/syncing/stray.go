package syncing

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
)

// strays are the addresses named by the command line and new in the database. If one of
// them turns out not to be the address of a feed, sync removes it again; if it is the
// address of a web page, the page's feed replaces it.
type strays struct {
	Named map[string]bool // addresses on the command line
	Keys  *logins.Keyring // the feeds' credentials; nil if there are none

	mu    sync.Mutex
	fresh map[string]bool              // new addresses, and whether to look for feeds on their pages
	found map[string]feedhistory.Links // addresses of no feed, with the feeds of the web pages there
}

// add records an address new in the database.
func (s *strays) add(url string, asPage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh, s.found = map[string]bool{}, map[string]feedhistory.Links{}
	}
	s.fresh[url] = asPage
}

// look finds out whether a poll of a new address failed because there is no feed and, if
// there is a web page, which feeds the page has.
func (s *strays) look(ctx context.Context, m *mirror.Mirror, url string, failure error) {
	s.mu.Lock()
	asPage, fresh := s.fresh[url]
	s.mu.Unlock()
	if !fresh || !isNoFeed(failure) {
		return
	}
	var feeds feedhistory.Links
	if asPage {
		feeds = command.FeedsOf(ctx, cmp.Or(ownClient(m, url), m.Client), url, failure)
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[url] = feeds
}

// of returns the findings of look: whether an address is not a feed's, and the feeds of
// the web page at the address.
func (s *strays) of(url string) (feeds feedhistory.Links, stray bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	feeds, stray = s.found[url]
	return feeds, stray
}

// ownClient returns a mirror's client for one feed only; nil if there is none.
func ownClient(m *mirror.Mirror, feed string) *feedhistory.Client {
	if m.ClientFor == nil {
		return nil
	}
	return m.ClientFor(feed)
}

// isNoFeed reports whether an error means an address is not a feed's.
func isNoFeed(err error) bool {
	parse, ok := errors.AsType[*feedhistory.ParseError](err)
	return ok && parse.Reason == feedhistory.ReasonNotFeed ||
		feedhistory.IsStatus(err, http.StatusNotFound, http.StatusGone)
}

// pass copies the credentials of a feed to the other feed it has become, if the latter
// has none, and queues the other feed again: without credentials, its poll may have
// failed. It returns an error of the keyring.
func (s *Sync) pass(o *Outcome) error {
	if o.Report == nil || o.Report.Alias == "" || s.Strays.Keys == nil {
		return nil
	}
	passed, err := s.Strays.Keys.Pass(o.URL, o.Report.Alias)
	if passed {
		s.Poller.Add(&mirror.Feed{URL: o.Report.Alias})
	}
	return err
}

// forget removes an address other than a feed's from the store, and queues the feed of the
// web page at the address instead, if there is one. It returns an error of the store or of
// the keyring.
func (s *Sync) forget(ctx context.Context, url string, feeds feedhistory.Links) error {
	ctx = context.WithoutCancel(ctx)
	store := s.Poller.Mirror.Store
	feed := ""
	if len(feeds) > 0 {
		feed = argument.FeedName(feeds[0].Href)
	}
	if s.Strays.Keys != nil {
		if err := s.Strays.Keys.Replace(url, feed); err != nil {
			return err
		}
	}
	if err := store.Remove(ctx, url); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	if feed == "" {
		return nil
	}
	s.Report.found(url, feeds)
	isNew, err := subscribe(ctx, store, opml.Outline{URL: feed})
	if err != nil {
		return err
	}
	if isNew {
		s.Strays.add(feed, false) // false, because two pages could name each other
	}
	if !s.Report.hasTold(feed) {
		s.Poller.Add(&mirror.Feed{URL: feed})
	}
	return nil
}
