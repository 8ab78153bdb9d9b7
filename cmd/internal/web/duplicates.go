package web

import (
	"context"
	"errors"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// This file recognises a feed already here under a different address,
// and finds the feeds of a page.

// likeness returns the same text for addresses that nearly always lead to the same
// feed: they differ only in http and https, in a final slash, or in whether characters
// are escaped.
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

// resemble records an address of a feed.
func (d *directory) resemble(address, feed string) {
	if address == "" {
		return
	}
	if _, ok := d.alike[likeness(address)]; !ok {
		d.alike[likeness(address)] = feed
	}
}

// like returns the feed an address probably leads to, or nil.
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

// replaced records a feed as removed because of another one.
func (d *directory) replaced(feed, by string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.successors == nil {
		d.successors = map[string]string{}
	}
	d.successors[republish.Name(feed)] = republish.Name(by)
}

// successor returns the name of the feed in the place of another one; "" if
// there is none.
func (d *directory) successor(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.successors[name]
}
