package main

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/mirror"
)

// The verb subscribe.
type subscribeCommand struct {
	fleetDatabase
	URLs []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds that workers are to keep current."`
	OPML []string `name:"opml" sep:"none" placeholder:"FILE" help:"Those of a subscription list, too; - is standard input (repeatable)."`

	networkFlags
}

// Help is what --help says beyond the flags.
func (c *subscribeCommand) Help() string {
	return "Feeds that are subscribed to already stay as they are, but for those that were polled no more, as they are gone " +
		"or dead letters: they are polled again. Of a page, its feed is subscribed to; an address where there is no feed is refused, unless it is on a list."
}

// Run subscribes to the feeds.
func (c *subscribeCommand) Run(w *world) error {
	given, err := (&syncCommand{OPML: c.OPML}).given(w)
	if err != nil {
		return err
	}
	named, err := (&syncCommand{URLs: c.URLs}).given(w)
	if err != nil {
		return err
	}
	if len(given)+len(named) == 0 {
		return usageError("give an address, or --opml FILE")
	}
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, url := range named {
		if url, err = c.feedAt(w, db, url); err != nil {
			return err
		}
		given = append(given, url)
	}
	added, err := db.Subscribe(w.ctx, given)
	if refused, ok := errors.AsType[*fleet.URLError](err); ok {
		return usageError(refused.Error())
	}
	if err != nil {
		return c.database().failure(err)
	}
	p := &page{w: w.asides()}
	p.para("", "  ", fmt.Sprintf("subscribed to %s; %s already", count(added, "feed", "feeds"), count(len(given)-added, "was", "were")))
	return p.err
}

// feedAt returns the address of the feed that an argument names: where there is a
// page, its feed's. The error says that there is no feed; if that cannot be told,
// the address is returned, for the workers to try.
func (c *subscribeCommand) feedAt(w *world, db *fleet.Database, url string) (string, error) {
	switch _, err := db.Store.Feed(w.ctx, url); {
	case err == nil:
		return url, nil // it is known
	case !errors.Is(err, mirror.ErrNotFound):
		return "", c.database().failure(err)
	}
	client := w.client(w.stderr)
	defer client.CloseIdle()
	feed, err := w.resolve(client, url, func(address string) error {
		_, err := client.Get(w.ctx, address)
		return err
	})
	switch {
	case w.ctx.Err() != nil:
		return "", failure(url, w.ctx.Err())
	case err != nil && isNoFeed(err):
		return "", failure(feed, err)
	}
	return feed, nil
}
