package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A moveCommand is the verb move.
type moveCommand struct {
	database.Location
	Old string `arg:"" name:"FEED" help:"The feed."`
	New string `arg:"" name:"URL" help:"Its address from now on."`

	republishedFlag
}

// Help returns the text of --help before the flags.
func (c *moveCommand) Help() string {
	return "The feed keeps all its entries, with everything the mirror knows about them. The next sync requests the feed at its new address. " +
		"If the old address redirects there permanently, you do not need move: sync follows."
}

// Run moves the feed.
func (c *moveCommand) Run(w *command.World) (err error) {
	if err := terminal.CheckURL(c.New); err != nil {
		return err
	}
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := c.Feed(w.Ctx, store, c.Old, false)
	if err != nil {
		return err
	}
	from, to := f.URL, terminal.FeedName(c.New)
	if from == to {
		return terminal.UsageError("URL is the feed's address already: the same address")
	}
	if _, err := store.Feed(w.Ctx, to); err == nil {
		return fmt.Errorf("%s is already mirrored; feedhistory rm removes one of the two", to)
	} else if !errors.Is(err, mirror.ErrNotFound) {
		return c.Failure(err)
	}
	if f.Importing() {
		return fmt.Errorf("%s: its import is not complete; run the same import again first", terminal.WithoutUser(from))
	}
	f.Address, f.Lost, f.Alias, f.Error, f.Failures, f.Gone = "", "", "", "", 0, false
	f.Next, f.Wait = time.Time{}, time.Time{}
	f.Ledger.Reset(false) // the old address's values mean nothing for the new one
	if err := store.Move(w.Ctx, f, to); err != nil {
		return c.Failure(err)
	}
	keys, err := c.Keyring()
	if err == nil {
		err = keys.Move(from, to)
	}
	if err != nil {
		return err
	}
	for other, err := range store.Feeds(w.Ctx, mirror.FeedQuery{}) {
		if err == nil && other.Alias == from {
			other.Alias = to
			err = store.Commit(w.Ctx, &mirror.Commit{Feed: other})
		}
		if err != nil {
			return c.Failure(err)
		}
	}
	if _, err := c.removeRepublished(c.Location, from); err != nil { // republished documents are named after the old address
		return err
	}
	p := terminal.NewPage(w.Asides())
	p.Para("", "  ", fmt.Sprintf("moved %s and its %s to %s", terminal.WithoutUser(from), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries"), to))
	return p.Err
}
