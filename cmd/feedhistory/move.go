package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A moveCommand is the verb move.
type moveCommand struct {
	database
	Old string `arg:"" name:"OLD" help:"The feed's address in the mirror."`
	New string `arg:"" name:"NEW" help:"Its address from now on."`

	republishedFlag
}

// Help returns the text of --help that precedes the flags.
func (c *moveCommand) Help() string {
	return "The feed keeps all its entries, with everything that the mirror knows about them. The next sync requests the feed at its new address. " +
		"If the old address redirects there permanently, you do not need move: sync follows."
}

// Run moves the feed.
func (c *moveCommand) Run(w *world) (err error) {
	if err := checkURL(c.New); err != nil {
		return err
	}
	store, err := c.open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	from, to := feedName(c.Old), feedName(c.New)
	f, err := store.Feed(w.ctx, from)
	if err != nil {
		return c.unknown(c.Old, err)
	}
	if from == to {
		return usageError("OLD and NEW are the same address")
	}
	if _, err := store.Feed(w.ctx, to); err == nil {
		return fmt.Errorf("%s is already mirrored; feedhistory rm removes one of the two", to)
	} else if !errors.Is(err, mirror.ErrNotFound) {
		return c.failure(err)
	}
	if f.Importing() {
		return fmt.Errorf("%s: its import is not complete; run the same import again first", withoutUser(from))
	}
	f.Address, f.Lost, f.Alias, f.Error, f.Failures, f.Gone = "", "", "", "", 0, false
	f.Next, f.Wait = time.Time{}, time.Time{}
	f.Known.ETag, f.Known.LastModified, f.Known.Digest = "", "", "" // the old address's values mean nothing for the new one
	if err := store.Move(w.ctx, f, to); err != nil {
		return c.failure(err)
	}
	keys, err := c.keyring()
	if err == nil {
		err = keys.move(from, to)
	}
	if err != nil {
		return err
	}
	for other, err := range store.Feeds(w.ctx, mirror.FeedQuery{}) {
		if err == nil && other.Alias == from {
			other.Alias = to
			err = store.Commit(w.ctx, &mirror.Change{Feed: other})
		}
		if err != nil {
			return c.failure(err)
		}
	}
	if _, err := c.removeRepublished(c.database, from); err != nil { // republished documents are named after the old address
		return err
	}
	p := newPage(w.Asides())
	p.Para("", "  ", fmt.Sprintf("moved %s and its %s to %s", withoutUser(from), count(int(f.Entries+f.Deleted), "entry", "entries"), to))
	return p.Err
}
