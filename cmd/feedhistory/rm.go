package main

import (
	"cmp"
	"fmt"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// An rmCommand is the verb rm.
type rmCommand struct {
	database.Location
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds to remove, with everything that the mirror knows about them."`

	republishedFlag
}

// Help returns the text of --help that precedes the flags.
func (c *rmCommand) Help() string {
	return "rm also removes the feeds' entries, and the documents that the history server has republished on this machine. To keep a copy, run feedhistory export --raw first."
}

// Run removes the feeds. It reports the feeds that the mirror does not have, and continues
// with the others.
func (c *rmCommand) Run(w *command.World) error {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	p := terminal.NewPage(w.Asides())
	missing := false
	var names []string
	var failed error
	for _, url := range c.URLs {
		name := argument.FeedName(url)
		f, err := store.Feed(w.Ctx, name)
		if err == nil {
			err = store.Remove(w.Ctx, name)
		}
		err = c.Unknown(url, err)
		if err != nil && !database.IsUnknown(err) {
			failed = err
			break
		}
		names = append(names, name) // an unknown feed, too: an earlier rm may have left documents
		if err != nil {
			w.Say(err.Error())
			missing = true
			continue
		}
		p.Para("", "  ", fmt.Sprintf("removed %s and its %s", argument.WithoutUser(name), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries")))
	}
	_, left := c.removeRepublished(c.Location, names...)
	if err := cmp.Or(failed, left); err != nil {
		return err
	}
	if missing {
		return exit.StatusError(exit.Failed)
	}
	return p.Err
}
