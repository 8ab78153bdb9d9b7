package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An rmCommand is the verb rm.
type rmCommand struct {
	database.Location
	URLs []string `arg:"" sep:"none" name:"URL" help:"Feeds to remove, with everything the mirror knows about them."`

	//lint:ignore SA5008 kong takes one tag for each variable
	removalFlags `set:"removed=feeds" set:"verb=rm"`
	republishedFlag
}

// removalFlags are the flags of the verbs that remove things for good.
type removalFlags struct {
	Yes    bool `short:"y" help:"Do not ask. Without a terminal, ${verb} never asks."`
	DryRun bool `help:"Print the ${removed} to be removed, and remove nothing."`
}

// asks reports whether the verb asks before it removes anything.
func (f *removalFlags) asks(w *command.World) bool {
	return !f.Yes && !f.DryRun && terminal.IsTerminal(w.Stderr) && w.FromTerminal()
}

// confirm reports whether to remove the things that plan names.
func (f *removalFlags) confirm(w *command.World, plan *terminal.Page) (bool, error) {
	switch {
	case f.DryRun:
		w.Tell("a dry run: nothing was removed")
		return false, plan.Err
	case f.asks(w) && !w.Confirm("remove for good? [y/N] "):
		w.Say("nothing was removed")
		return false, terminal.StatusError(terminal.ExitFailed)
	}
	return true, plan.Err
}

// Help returns the text of --help before the flags.
func (c *rmCommand) Help() string {
	return "rm also removes the feeds' entries, and the documents the history server has republished on this machine. To keep a copy, run feedhistory export --raw first."
}

// Run removes the feeds. It reports the feeds missing from the mirror, and continues with
// the others.
func (c *rmCommand) Run(w *command.World) error {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := c.ask(w, store); err != nil || c.DryRun {
		return err
	}
	p := terminal.NewPage(w.Asides())
	missing := false
	var names []string
	var failed error
	for _, url := range c.URLs {
		name := terminal.FeedName(url)
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
		p.Para("", "  ", "removed "+contents(f))
	}
	if dir := marks(); dir != "" {
		_ = os.RemoveAll(dir) // another import of the removed feeds begins at its beginning
	}
	_, left := c.removeRepublished(c.Location, names...)
	if err := cmp.Or(failed, left); err != nil {
		return err
	}
	if missing {
		return terminal.StatusError(terminal.ExitFailed)
	}
	return p.Err
}

// contents names a feed and how much the mirror has of it.
func contents(f *mirror.Feed) string {
	return fmt.Sprintf("%s and its %s", terminal.WithoutUser(f.URL), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries"))
}

// ask prints the things to be removed, for --dry-run, or asks on a terminal whether to
// remove them.
func (c *rmCommand) ask(w *command.World, store mirror.Store) error {
	if !c.DryRun && !c.asks(w) {
		return nil
	}
	missing := false
	found := 0
	p := terminal.NewPage(w.Stderr)
	if c.DryRun {
		p = terminal.NewPage(w.Stdout)
	}
	for _, url := range c.URLs {
		f, err := store.Feed(w.Ctx, terminal.FeedName(url))
		if err = c.Unknown(url, err); database.IsUnknown(err) {
			missing = true
			if c.DryRun {
				w.Say(err.Error())
			}
			continue
		}
		if err != nil {
			return err
		}
		found++
		p.Para("", "  ", contents(f))
	}
	if c.DryRun && missing {
		return terminal.StatusError(terminal.ExitFailed)
	}
	if found == 0 && !c.DryRun {
		return nil
	}
	_, err := c.confirm(w, p)
	return err
}
