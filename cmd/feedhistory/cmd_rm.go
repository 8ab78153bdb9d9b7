package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An rmCommand is the verb rm.
type rmCommand struct {
	database.Location
	Feeds []string `arg:"" sep:"none" name:"FEED" help:"Feeds to remove, by their whole address or title, with everything the mirror knows about them."`

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
	var feeds []*mirror.Feed
	var names []string
	status := error(nil)
	for _, arg := range c.Feeds {
		f, err := c.Location.Feed(w.Ctx, store, arg, true)
		switch {
		case database.IsUnknown(err):
			w.Say(err.Error())
			status = terminal.StatusError(terminal.ExitFailed)
			names = append(names, terminal.FeedName(arg)) // an earlier rm may have left documents
		case err != nil:
			return err
		case !slices.Contains(names, f.URL):
			feeds, names = append(feeds, f), append(names, f.URL)
		}
	}
	if goOn, err := c.plan(w, feeds); err != nil || !goOn {
		return cmp.Or(err, status)
	}
	p := terminal.NewPage(w.Asides())
	for _, f := range feeds {
		if err = c.Failure(store.Remove(w.Ctx, f.URL)); err != nil {
			break
		}
		p.Para("", "  ", "removed "+contents(f))
	}
	if dir := marks(); dir != "" {
		_ = os.RemoveAll(dir) // another import of the removed feeds begins at its beginning
	}
	_, left := c.removeRepublished(c.Location, names...)
	return cmp.Or(err, left, status, p.Err)
}

// plan prints the feeds to be removed, for --dry-run or for the question on a terminal, and
// reports whether to remove them.
func (c *rmCommand) plan(w *command.World, feeds []*mirror.Feed) (bool, error) {
	if !c.DryRun && (!c.asks(w) || len(feeds) == 0) {
		return true, nil
	}
	p := terminal.NewPage(w.Stderr)
	if c.DryRun {
		p = terminal.NewPage(w.Stdout)
	}
	for _, f := range feeds {
		p.Para("", "  ", contents(f))
	}
	return c.confirm(w, p)
}

// contents names a feed and how much the mirror has of it.
func contents(f *mirror.Feed) string {
	return fmt.Sprintf("%s and its %s", terminal.WithoutUser(f.URL), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries"))
}
