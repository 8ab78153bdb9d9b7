package main

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/fleet"
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
		"or dead letters: they are polled again."
}

// Run subscribes to the feeds.
func (c *subscribeCommand) Run(w *world) error {
	given, err := (&syncCommand{URLs: c.URLs, OPML: c.OPML}).given(w)
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
		return c.database().failure(err)
	}
	p := &page{w: w.stderr}
	p.para("", "  ", fmt.Sprintf("subscribed to %s; %s already", count(added, "feed", "feeds"), count(len(given)-added, "was", "were")))
	return p.err
}
