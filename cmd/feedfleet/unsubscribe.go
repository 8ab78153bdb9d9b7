package main

import (
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

// An unsubscribeCommand is the verb unsubscribe.
type unsubscribeCommand struct {
	database
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds that the workers should no longer poll."`
}

// Help is the text of --help besides the flags.
func (c *unsubscribeCommand) Help() string {
	return "This removes the feeds with everything known about them; feedhistory export makes a copy first."
}

// Run unsubscribes from the feeds, and says how many were not subscribed to.
func (c *unsubscribeCommand) Run(w *world) error {
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	removed, err := db.Unsubscribe(w.ctx, show.Each(c.URLs, terminal.WebAddress))
	if refused, ok := errors.AsType[*fleet.URLError](err); ok {
		return usageError(refused.Error())
	}
	if err != nil {
		return c.failure(err)
	}
	p := &terminal.Page{W: w.Asides()}
	p.Para("", "  ", "unsubscribed from "+terminal.Count(removed, "feed", "feeds"))
	if missing := len(c.URLs) - removed; missing > 0 {
		w.Say(fmt.Sprintf("%s not subscribed to", terminal.Count(missing, "was", "were")))
		return errors.Join(p.Err, errSaid)
	}
	return p.Err
}
