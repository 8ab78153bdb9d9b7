package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/weblink"
)

// feedsOf returns the feeds of the page at an address, given the error of reading it:
// those that it names, else those at the well-known places; nil if the error is
// another one, or there are none.
func feedsOf(ctx context.Context, client *feedhistory.Client, address string, err error) feedhistory.Links {
	page, ok := errors.AsType[*feedhistory.NotFeedError](err)
	if !ok || !page.Page {
		return nil
	}
	feeds := page.Feeds
	if len(feeds) == 0 {
		feeds, err = client.Discover(ctx, address)
		if err != nil {
			return nil // the page's own error says more
		}
	}
	var others feedhistory.Links
	for _, feed := range feeds {
		if feed.Href != feedName(address) && checkURL(feed.Href) == nil {
			others = append(others, feed)
		}
	}
	return others
}

// tellFeeds says which feed of a page is read, and which others it has.
func (w *world) tellFeeds(page string, feeds feedhistory.Links) {
	w.Tell(withoutUser(page) + ": a web page; its feed is " + feeds[0].Href)
	for _, other := range feeds[1:] {
		w.Tell(otherFeed(other))
	}
}

// otherFeed names another feed of a page.
func otherFeed(feed feedhistory.Link) string {
	text := "it also has " + feed.Href
	title := cut(clean(feed.Title), columns/2)
	switch {
	case title != "":
		text += fmt.Sprintf(" (%s)", title)
	case weblink.IsOfComments(feed.Title, feed.Href):
		text += " (comments)"
	}
	return text
}

// resolve returns the address of the feed that an argument names: of the page at
// it, if there is one. The document is read by read, which returns the error.
func (w *world) resolve(client *feedhistory.Client, address string, read func(address string) error) (string, error) {
	err := read(address)
	feeds := feedsOf(w.ctx, client, address, err)
	if len(feeds) == 0 {
		return address, err
	}
	w.tellFeeds(address, feeds)
	return feeds[0].Href, read(feeds[0].Href)
}
