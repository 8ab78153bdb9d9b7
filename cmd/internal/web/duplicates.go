package web

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// This file recognises a feed that is here already under a different address,
// and finds the feeds of a page.

// likeness returns the same text for addresses that nearly always lead to the
// same feed: those that differ only in http and https, in a final slash, or in
// whether characters are escaped.
func likeness(address string) string {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return address
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "80" || port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return host + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + u.RawQuery
}

// resemble records an address that leads to a feed.
func (d *directory) resemble(address, feed string) {
	if address == "" {
		return
	}
	if _, ok := d.alike[likeness(address)]; !ok {
		d.alike[likeness(address)] = feed
	}
}

// like returns the feed that an address probably leads to, or nil.
func (d *directory) like(ctx context.Context, address string) (*mirror.Feed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read.IsZero() {
		if err := d.look(ctx); err != nil {
			return nil, err
		}
	}
	if feed, err := d.store.Feed(ctx, address); !errors.Is(err, mirror.ErrNotFound) {
		return feed, err
	}
	known, ok := d.alike[likeness(address)]
	if !ok {
		return nil, nil
	}
	feed, err := d.store.Feed(ctx, known)
	if errors.Is(err, mirror.ErrNotFound) {
		delete(d.alike, likeness(address))
		return nil, nil
	}
	return feed, err
}

// replaced records that a feed was removed because another one replaced it.
func (d *directory) replaced(feed, by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.successors == nil {
		d.successors = map[string]string{}
	}
	d.successors[republish.Name(feed)] = republish.Name(by)
}

// successor returns the name of the feed that has replaced another one; "" if
// there is none.
func (d *directory) successor(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.successors[name]
}

// polled is called at the end of a poll. A feed that was read for the first
// time may redirect to another one, or may be a page that has a feed.
func (s *Server) polled(ctx context.Context, before *mirror.Feed, err error) {
	feed, failed := s.store.Feed(ctx, before.URL)
	if failed != nil {
		return
	}
	if err == nil {
		failed = s.recognise(ctx, feed, before.Polls == 0)
	} else if _, ok := errors.AsType[*feedhistory.ParseError](err); ok && feed.Head == "" {
		failed = s.discover(ctx, feed)
	}
	if failed != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "a feed's other addresses cannot be determined", "feed", feed.URL, "err", failed)
	}
}

// recognise removes a new feed that permanently redirects to one that is here.
func (s *Server) recognise(ctx context.Context, feed *mirror.Feed, isNew bool) error {
	address := cmp.Or(feed.Alias, feed.Address)
	if address == "" {
		return nil
	}
	other, err := s.feeds.like(ctx, address)
	if err != nil {
		return err
	}
	if other == nil || other.URL == feed.URL {
		s.feeds.mu.Lock()
		defer s.feeds.mu.Unlock()
		s.feeds.resemble(address, feed.URL)
		return nil
	}
	if !isNew {
		return nil // it has its own history
	}
	return s.replace(ctx, feed.URL, other.URL)
}

// discover looks for the feeds of a page. If there is one, it replaces the
// page; if there are several, a person chooses.
func (s *Server) discover(ctx context.Context, page *mirror.Feed) error {
	if came, _ := s.found.get(page.URL); came != nil {
		return nil // it was looked at before, or came from another page: circular links are not followed
	}
	client := s.polls.Mirror.Client
	if client == nil {
		client = &feedhistory.Client{}
	}
	s.found.put(page.URL, feedhistory.Links{})
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
		feeds = articles // comments are hardly what the user means
	}
	if len(feeds) != 1 {
		s.found.put(page.URL, append(feedhistory.Links{}, feeds...))
		return nil
	}
	only := feeds[0].Href
	if known, err := s.feeds.like(ctx, only); err != nil {
		return err
	} else if known != nil {
		return s.replace(ctx, page.URL, known.URL)
	}
	s.found.put(only, feedhistory.Links{})
	if _, err := s.add(ctx, only); err != nil {
		return err
	}
	return s.replace(ctx, page.URL, only)
}

// replace removes a feed without entries because another one has them.
func (s *Server) replace(ctx context.Context, feed, by string) error {
	s.feeds.replaced(feed, by)
	s.Logger.InfoContext(ctx, "replaced", "feed", feed, "by", by)
	if err := s.store.Remove(ctx, feed); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	s.feeds.forget(feed)
	s.documents.drop(feed)
	return nil
}
