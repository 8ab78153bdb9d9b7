package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// An adder adds feeds, and finds out which feed an address leads to.
type adder struct {
	store    mirror.Store
	feeds    *directory
	polls    *mirror.Poller
	log      *slog.Logger
	replaced func(feed string) // called after another feed has replaced one

	found    publish.Cache[string, feedhistory.Links] // the feeds of added pages, by the URLs of the pages
	failures publish.Cache[string, error]             // the failures of last polls, by the URLs of feeds
	outcomes publish.Cache[string, string]            // messages for the next page, by random keys
}

// dropPage removes an added page, because one of its feeds was chosen.
func (a *adder) dropPage(ctx context.Context, name, chosen string) error {
	page, err := a.feeds.published.Feed(ctx, name)
	if errors.Is(err, mirror.ErrNotFound) || err == nil && (page.Head != "" || page.URL == chosen) {
		return nil
	}
	if err != nil {
		return err
	}
	a.polls.Forget(page.URL)
	return a.replace(ctx, page.URL, chosen)
}

// add adds a feed to the store, under the title and in the folders of a list; it is due
// at once.
func (a *adder) add(ctx context.Context, address string, listed opml.Outline) (added bool, err error) {
	if err := a.feeds.add(ctx, address); err != nil {
		return false, err
	}
	feed := mirror.NewFeed(address)
	listed.Apply(feed)
	switch err := a.store.Commit(ctx, &mirror.Commit{Feed: feed}); {
	case errors.Is(err, mirror.ErrConflict):
		return false, nil // it is there already
	case err != nil:
		return false, err
	}
	a.polls.Hurry(feed)
	return true, nil
}

// polled is called at the end of a poll. A feed read for the first
// time may redirect to another one, or may be a page with a feed.
func (a *adder) polled(ctx context.Context, before *mirror.Feed, err error) {
	if a.failures.Drop(before.URL); err != nil {
		a.failures.Put(before.URL, err)
	}
	feed, failed := a.store.Feed(ctx, before.URL)
	if failed != nil {
		return
	}
	if err == nil {
		failed = a.recognise(ctx, feed, before.Polls == 0)
	} else if _, ok := errors.AsType[*feedhistory.ParseError](err); ok && feed.Head == "" {
		failed = a.discover(ctx, feed)
	}
	if failed != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "a feed's other addresses cannot be determined", "feed", feed.URL, "err", failed)
	}
}

// recognise removes a new feed with a permanent redirect to one of ours.
func (a *adder) recognise(ctx context.Context, feed *mirror.Feed, isNew bool) error {
	address := cmp.Or(feed.Alias, feed.Address)
	if address == "" {
		return nil
	}
	other, err := a.feeds.like(ctx, address)
	if err != nil {
		return err
	}
	if other == nil || other.URL == feed.URL {
		a.feeds.mu.Lock()
		defer a.feeds.mu.Unlock()
		a.feeds.resemble(address, feed.URL)
		return nil
	}
	if !isNew {
		return nil // it has its own history
	}
	return a.replace(ctx, feed.URL, other.URL)
}

// discover looks for the feeds of a page. If there is one, it replaces the
// page; if there are several, a person chooses.
func (a *adder) discover(ctx context.Context, page *mirror.Feed) error {
	if came, _ := a.found.Get(page.URL); came != nil {
		return nil // it was looked at before, or came from another page: circular links are not followed
	}
	client := a.polls.Mirror.Client
	if client == nil {
		client = &feedhistory.Client{}
	}
	a.found.Put(page.URL, feedhistory.Links{})
	links, err := client.Discover(ctx, page.URL)
	if err != nil {
		return err
	}
	var feeds feedhistory.Links
	for _, link := range links {
		if address, wrong := feedAddress(link.Href); wrong == "" && address != page.URL {
			link.Href = address
			feeds = append(feeds, link)
		}
	}
	if articles := slices.DeleteFunc(slices.Clone(feeds), feedhistory.Link.IsOfComments); len(articles) == 1 {
		feeds = articles // hardly anybody means the comments
	}
	if len(feeds) != 1 {
		a.found.Put(page.URL, append(feedhistory.Links{}, feeds...))
		return nil
	}
	only := feeds[0].Href
	if known, err := a.feeds.like(ctx, only); err != nil {
		return err
	} else if known != nil {
		return a.replace(ctx, page.URL, known.URL)
	}
	a.found.Put(only, feedhistory.Links{})
	if _, err := a.add(ctx, only, opml.Outline{}); err != nil {
		return err
	}
	return a.replace(ctx, page.URL, only)
}

// replace removes a feed without entries because another one has them.
func (a *adder) replace(ctx context.Context, feed, by string) error {
	a.feeds.replaced(feed, by)
	a.log.InfoContext(ctx, "replaced", "feed", feed, "by", by)
	if old, err := a.store.Feed(ctx, feed); err == nil {
		if err := (opml.Outline{Text: old.Named, Folders: old.Folders}).Keep(ctx, a.store, by); err != nil {
			return err
		}
	}
	if err := a.store.Remove(ctx, feed); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	a.feeds.forget(feed)
	a.replaced(feed)
	return nil
}

// remember keeps a message for the next page, and returns its key.
func (a *adder) remember(message string) (key string) {
	key = rand.Text()
	a.outcomes.Put(key, message)
	return key
}
