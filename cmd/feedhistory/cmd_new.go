package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A newCommand is the verb new.
type newCommand struct {
	database.Location
	Feeds []string `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	As    string   `default:"new" placeholder:"NAME" help:"The name under which the entries count as printed (default: ${default})."`
	Once  bool     `help:"Count the entries as printed before they are printed, so that none is ever printed twice."`

	Maildir string `placeholder:"DIR" help:"Deliver each entry as a mail to a Maildir, which is created if necessary, and print nothing."`

	terminal.JSONFlag `set:"record=each entry"`
}

// Validate refuses two outputs.
func (c *newCommand) Validate() error {
	if c.JSON && c.Maildir != "" {
		return errors.New("--json and --maildir exclude each other")
	}
	return nil
}

// Help returns the text of --help before the flags.
func (c *newCommand) Help() string {
	return "new prints the entries that it has not printed before under the same name: the first time all entries, and nothing if there are none. " +
		"It goes by the order in which the mirror has stored them, so entries with an old date are new, too. An entry that changes is not new.\n\n" +
		"Entries count as printed after all of them have been written: if that fails, the next run prints them again. With --once, it does not. " +
		"To mail what is new: feedhistory sync -q; feedhistory new | mail -E -s news you@example.org\n\n" +
		"With --maildir, each entry is a mail of its own, with its content as text and as HTML, for mutt, Dovecot and others; an entry delivered twice has the same Message-ID."
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
	take, err := c.output(w, out, private)
	if err != nil {
		return err
	}
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
			if err := take(f, r, e); err != nil {
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

// output returns the function that takes each entry.
func (c *newCommand) output(w *command.World, out io.Writer, private *database.PrivateFeeds) (func(*mirror.Feed, *mirror.Record, *feedhistory.Entry) error, error) {
	if c.Maildir != "" {
		return deliverer(w, c.Maildir)
	}
	p := &terminal.Page{W: out, Width: terminal.Width(w.Stdout)}
	return func(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) error {
		if c.JSON {
			line := show.LineOfRecord(r, e)
			line.Private = private.Has(w.Ctx, r.Feed)
			return terminal.WriteJSON(out, line)
		}
		p.Line(show.Row(p, e, r, f.URL, ""))
		return p.Err
	}, nil
}

// deliverer returns the function that delivers an entry to a Maildir: durably, under a name
// that mail programs pass over until the file is complete.
func deliverer(w *command.World, dir string) (func(*mirror.Feed, *mirror.Record, *feedhistory.Entry) error, error) {
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return nil, fmt.Errorf("--maildir: %w", err)
		}
	}
	inbox := publish.Dir{Path: filepath.Join(dir, "new")}
	return func(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) error {
		name, message, err := show.Mail(f, r, e)
		if err != nil {
			return err
		}
		return inbox.Put(w.Ctx, name, message)
	}, nil
}
