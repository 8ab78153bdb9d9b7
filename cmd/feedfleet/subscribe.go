package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

// A subscribeCommand is the verb subscribe.
type subscribeCommand struct {
	database
	URLs []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds for the workers to mirror, or web pages that name one."`
	OPML []string `name:"opml" sep:"none" placeholder:"FILE" help:"Also subscribe to the feeds of a subscription list; - is standard input (repeatable)."`
}

// Help is the text of --help besides the flags.
func (c *subscribeCommand) Help() string {
	return "The command requests each address once. If there is a web page, it subscribes to the feed that the page names; if there is no answer now, " +
		"it subscribes to the address itself. Existing subscriptions do not change, except that feeds which are gone, or dead letters, " +
		"are polled again."
}

// Run subscribes to the feeds.
func (c *subscribeCommand) Run(w *world) error {
	given, err := c.given(w)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		return usageError("give an address, or --opml FILE")
	}
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	added, err := db.Subscribe(w.ctx, given)
	if refused, ok := errors.AsType[*fleet.URLError](err); ok {
		return usageError(refused.Error())
	}
	if err != nil {
		return c.failure(err)
	}
	p := &terminal.Page{W: w.Asides()}
	p.Para("", "  ", fmt.Sprintf("subscribed to %s; %s already", terminal.Count(added, "feed", "feeds"), terminal.Count(len(given)-added, "was", "were")))
	return p.Err
}

// given returns the addresses of the arguments and the lists.
func (c *subscribeCommand) given(w *world) (urls []string, err error) {
	for _, url := range c.URLs {
		url = terminal.WebAddress(url)
		if err := fleet.CheckURL(url); err != nil {
			return nil, usageError(err.Error())
		}
		feed, err := w.feedAt(url)
		if err != nil {
			return nil, err
		}
		urls = append(urls, feed)
	}
	for _, file := range c.OPML {
		feeds, err := w.subscriptions(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, feed := range feeds {
			if err := fleet.CheckURL(feed.URL); err != nil {
				w.Say(fmt.Sprintf("%s: left out: %v", file, err))
				continue
			}
			urls = append(urls, feed.URL)
		}
	}
	if len(urls) == 0 && len(c.OPML) > 0 {
		return nil, errors.New("no feed in the lists can be polled")
	}
	return urls, nil
}

// feedAt returns the feed named by a web page. If the address is a feed's, or does not
// answer now, it returns the address itself.
func (w *world) feedAt(url string) (string, error) {
	feeds, err := w.client(w.Stderr).Discover(w.ctx, url)
	switch {
	case w.ctx.Err() != nil:
		return "", w.ctx.Err()
	case err != nil:
		return url, nil
	case len(feeds) == 0:
		return "", fmt.Errorf("%s: this is not a feed, and it names none", url)
	case slices.ContainsFunc(feeds, func(l feedhistory.Link) bool { return l.Href == url }):
		return url, nil
	case fleet.CheckURL(feeds[0].Href) != nil:
		return "", fmt.Errorf("%s: this is not a feed, and the feed it names cannot be subscribed to: %s", url, feeds[0].Href)
	}
	w.Tell(url + ": a web page; its feed is " + feeds[0].Href)
	return feeds[0].Href, nil
}

// subscriptions reads a subscription list.
func (w *world) subscriptions(file string) ([]readers.Outline, error) {
	in := w.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		defer f.Close()
		in = f
	}
	feeds, err := readers.ReadOPML(in)
	if err == nil && len(feeds) == 0 {
		err = errors.New("there is no feed in it")
	}
	return feeds, err
}
