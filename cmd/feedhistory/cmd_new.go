package main

import (
	"bufio"
	"errors"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A newCommand is the verb new.
type newCommand struct {
	database.Location
	Feeds []string `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	As    string   `default:"new" placeholder:"NAME" help:"The name under which the entries count as printed (default: ${default})."`
	Once  bool     `help:"Count the entries as printed before they are printed, so that none is ever printed twice."`

	terminal.JSONFlag `set:"record=each entry"`
}

// Help returns the text of --help before the flags.
func (c *newCommand) Help() string {
	return "new prints the entries that it has not printed before under the same name: the first time all entries, and nothing if there are none. " +
		"It goes by the order in which the mirror has stored them, so entries with an old date are new, too. An entry that changes is not new.\n\n" +
		"Entries count as printed after all of them have been written: if that fails, the next run prints them again. With --once, it does not. " +
		"To mail what is new: feedhistory sync -q; feedhistory new | mail -E -s news you@example.org"
}

// Run prints the new entries, feed by feed, the first stored first.
func (c *newCommand) Run(w *command.World) (err error) {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	private, err := c.PrivateFeeds(store)
	if err != nil {
		return err
	}
	marks := &database.Printed{DB: store.DB, Name: c.As}
	after, err := marks.Read(w.Ctx)
	if err != nil {
		return c.Failure(err)
	}
	list, err := c.FeedsOrAll(w.Ctx, store, c.Feeds)
	if err != nil {
		return err
	}
	var feeds []*mirror.Feed // as they are now
	for f, err := range list {
		if err != nil {
			return c.Failure(err)
		}
		feeds = append(feeds, f)
	}
	write := func() error { return c.Failure(marks.Write(w.Ctx, feeds)) }
	if c.Once {
		if err := write(); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	p := &terminal.Page{W: out, Width: terminal.Width(w.Stdout)}
	var damaged readableEntries
	for _, f := range feeds {
		from := after[f.URL]
		if from > f.Commits { // the feed has been removed and added again
			from = 0
		}
		for r, err := range store.Entries(w.Ctx, mirror.Query{Feed: f.URL, AfterCommit: &from}) {
			if err != nil {
				return c.Failure(err)
			}
			if r.FirstCommit <= from || r.FirstCommit > f.Commits { // it has changed, or another run prints it
				continue
			}
			e, err := r.Entry()
			if err != nil {
				damaged.note(r, err)
				continue
			}
			if c.JSON {
				line := show.LineOfRecord(r, e)
				line.Private = private.Has(w.Ctx, r.Feed)
				err = terminal.WriteJSON(out, line)
			} else {
				p.Line(show.Line(p, e, r.Time(), r.ID) + "  " + terminal.Clean(f.URL))
				err = p.Err
			}
			if err != nil {
				return &terminal.OutputError{Err: err}
			}
		}
	}
	if err := out.Flush(); err != nil {
		return &terminal.OutputError{Err: err}
	}
	if !c.Once {
		if err := write(); err != nil {
			return err
		}
	}
	return damaged.say(w)
}
