package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/opml"
)

// The verb subscribe.
type subscribeCommand struct {
	database
	URLs []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds that workers are to keep current."`
	OPML []string `name:"opml" sep:"none" placeholder:"FILE" help:"Those of a subscription list, too; - is standard input (repeatable)."`
}

// Help is what --help says beyond the flags.
func (c *subscribeCommand) Help() string {
	return "Feeds that are subscribed to already stay as they are, but for those that were polled no more, as they are gone " +
		"or dead letters: they are polled again."
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
	p := &page{w: w.stderr}
	p.para("", "  ", fmt.Sprintf("subscribed to %s; %s already", count(added, "feed", "feeds"), count(len(given)-added, "was", "were")))
	return p.err
}

// given returns the addresses of the arguments and the lists.
func (c *subscribeCommand) given(w *world) (urls []string, err error) {
	for _, url := range c.URLs {
		if err := fleet.CheckURL(url); err != nil {
			return nil, usageError(err.Error())
		}
		urls = append(urls, url)
	}
	for _, file := range c.OPML {
		feeds, err := w.subscriptions(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, feed := range feeds {
			if err := fleet.CheckURL(feed.URL); err != nil {
				w.say(fmt.Sprintf("%s: left out: %v", file, err))
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

// subscriptions reads a subscription list.
func (w *world) subscriptions(file string) ([]opml.Outline, error) {
	in := w.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		defer f.Close()
		in = f
	}
	feeds, err := opml.Read(in)
	if err == nil && len(feeds) == 0 {
		err = errors.New("there is no feed in it")
	}
	return feeds, err
}
