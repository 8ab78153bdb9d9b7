package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory/mirror"
)

// The verb rm.
type rmCommand struct {
	database
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds to remove, with everything that is known of them."`

	republishedFlag
}

// Help is what --help says beyond the flags.
func (c *rmCommand) Help() string {
	return "This removes their entries, too, and what the history server keeps of them on this machine; feedhistory export makes a copy first."
}

// Run removes the feeds. It reports those that the mirror does not have, and goes on.
func (c *rmCommand) Run(w *world) error {
	store, err := c.open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	p := newPage(w.Asides())
	missing := false
	for _, url := range c.URLs {
		name := feedName(url)
		f, err := store.Feed(w.ctx, name)
		if err == nil {
			err = store.Remove(w.ctx, name)
		}
		if err == nil || errors.Is(err, mirror.ErrNotFound) { // what an earlier rm may have left
			_, left := c.removeRepublished(c.database, name)
			err = cmp.Or(left, err)
		}
		if err = c.unknown(url, err); isUnknown(err) {
			w.Say(err.Error())
			missing = true
			continue
		}
		if err != nil {
			return err
		}
		p.Para("", "  ", fmt.Sprintf("removed %s and its %s", withoutUser(name), count(int(f.Entries+f.Deleted), "entry", "entries")))
	}
	if missing {
		return statusError(exitFailed)
	}
	return p.Err
}
