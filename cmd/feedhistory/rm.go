package main

import (
	"cmp"
	"fmt"
)

// An rmCommand is the verb rm.
type rmCommand struct {
	database
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds to remove, with everything that the mirror knows about them."`

	republishedFlag
}

// Help returns the text of --help that precedes the flags.
func (c *rmCommand) Help() string {
	return "rm also removes the feeds' entries, and the documents that the history server has republished on this machine. To keep a copy, run feedhistory export --raw first."
}

// Run removes the feeds. It reports the feeds that the mirror does not have, and continues
// with the others.
func (c *rmCommand) Run(w *world) error {
	store, err := c.open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	p := newPage(w.Asides())
	missing := false
	var names []string
	var failed error
	for _, url := range c.URLs {
		name := feedName(url)
		f, err := store.Feed(w.ctx, name)
		if err == nil {
			err = store.Remove(w.ctx, name)
		}
		err = c.unknown(url, err)
		if err != nil && !isUnknown(err) {
			failed = err
			break
		}
		names = append(names, name) // an unknown feed, too: an earlier rm may have left documents
		if err != nil {
			w.Say(err.Error())
			missing = true
			continue
		}
		p.Para("", "  ", fmt.Sprintf("removed %s and its %s", withoutUser(name), count(int(f.Entries+f.Deleted), "entry", "entries")))
	}
	_, left := c.removeRepublished(c.database, names...)
	if err := cmp.Or(failed, left); err != nil {
		return err
	}
	if missing {
		return statusError(exitFailed)
	}
	return p.Err
}
