package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// FeedsOf returns the feeds of the web page at an address, given the error of reading the
// address: the feeds named by the page or, if it names none, the feeds at well-known
// places. It returns nil if the error does not mean there is a page, or if there are no
// feeds.
func FeedsOf(ctx context.Context, client *feedhistory.Client, address string, err error) feedhistory.Links {
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
		if feed.Href != argument.FeedName(address) && argument.CheckURL(feed.Href) == nil {
			others = append(others, feed)
		}
	}
	return others
}

// TellFeeds says which feed of a page the command reads, and which others the page has.
func (w *World) TellFeeds(page string, feeds feedhistory.Links) {
	w.Tell(argument.WithoutUser(page) + ": a web page; its feed is " + feeds[0].Href)
	for _, other := range feeds[1:] {
		w.Tell(OtherFeed(other))
	}
}

// OtherFeed names another feed of a page.
func OtherFeed(feed feedhistory.Link) string {
	text := "it also has " + feed.Href
	title := terminal.Cut(terminal.Clean(feed.Title), terminal.Columns/2)
	switch {
	case title != "":
		text += fmt.Sprintf(" (%s)", title)
	case feed.IsOfComments():
		text += " (comments)"
	}
	return text
}

// Resolve calls read with an address. If there is a web page, it calls read again with
// the address of the page's feed. It returns the last address, and the last error of
// read.
func (w *World) Resolve(client *feedhistory.Client, address string, read func(address string) error) (string, error) {
	err := read(address)
	feeds := FeedsOf(w.Ctx, client, address, err)
	if len(feeds) == 0 {
		return address, err
	}
	w.TellFeeds(address, feeds)
	return feeds[0].Href, read(feeds[0].Href)
}
