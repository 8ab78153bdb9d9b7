package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An entriesCommand is the verb entries.
type entriesCommand struct {
	database.Location
	URLs    []string        `arg:"" optional:"" sep:"none" name:"URL" help:"The feeds (default: all feeds of the mirror)."`
	Feed    []string        `sep:"none" placeholder:"URL" help:"Another way to name a feed (repeatable)."`
	Since   argument.Moment `placeholder:"TIME" help:"Show only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Until   argument.Moment `placeholder:"TIME" help:"Show only entries from before this time."`
	Search  string          `placeholder:"WORDS" help:"Show only entries with all of these words in their title or content."`
	Deleted bool            `help:"Also show entries no longer part of their feed."`
	Limit   int             `placeholder:"N" help:"Show at most N entries (default: 0, for all)."`
	Long    bool            `short:"l" help:"Show several lines for each entry: its title, time, id and link."`

	terminal.JSONFlag `set:"record=each entry"`

	Enclosures bool `xor:"json" help:"Print a line for each file of an entry, such as a podcast's episode: URL, type, length, duration, episode, date and title, with tabs between them."`

	terminal.PagerFlags

	damaged readableEntries
	private *database.PrivateFeeds
}

// Help returns the text of --help before the flags.
func (c *entriesCommand) Help() string {
	return "The newest entries come first. An entry's time is when it was updated, else when it was published, else when it was mirrored. " +
		"Each line has the day, the title and the id of an entry and, if there are several feeds, the feed. feedhistory entry ID shows the entry as text; feedhistory export prints entries with their content."
}

// Validate refuses incompatible flags, and a negative limit.
func (c *entriesCommand) Validate() error {
	switch {
	case c.Limit < 0:
		return errors.New("--limit: a number cannot be negative")
	case !c.Until.IsZero() && !c.Since.Before(c.Until.Time):
		return errors.New("--since must be before --until")
	case c.JSON && c.Enclosures:
		return errors.New("--json and --enclosures exclude each other")
	case c.Long && (c.JSON || c.Enclosures):
		return errors.New("--long is for text: it excludes --json and --enclosures")
	}
	return nil
}

// Run shows the entries.
func (c *entriesCommand) Run(w *command.World) (err error) {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	feeds, err := c.feeds(w.Ctx, store)
	if err != nil {
		return err
	}
	if c.private, err = c.PrivateFeeds(store); err != nil {
		return err
	}
	query := mirror.Query{
		Since: c.Since.Time, Until: c.Until.Time, Search: c.Search, Deleted: c.Deleted, Limit: c.Limit,
	}
	pager := &terminal.Pager{Writer: w.Stdout}
	if !c.JSON {
		pager = c.Pager(w.Stdout)
	}
	out := bufio.NewWriterSize(pager, 64<<10)
	err = c.show(w.Ctx, &terminal.Page{W: out, Width: terminal.Width(w.Stdout)}, database.EntriesOfFeeds(w.Ctx, store, query, feeds), len(feeds) != 1)
	if errors.Is(err, errors.ErrUnsupported) {
		err = exit.UsageError("--search: there is no word in " + strconv.Quote(c.Search))
	}
	return cmp.Or(terminal.UnlessLeft(cmp.Or(c.Failure(err), out.Flush(), pager.Close())), c.damaged.say(w))
}

// feeds returns the names of the feeds the arguments ask for, each once. The mirror must
// have these feeds.
func (c *entriesCommand) feeds(ctx context.Context, store mirror.Store) (names []string, err error) {
	for _, url := range slices.Concat(c.URLs, c.Feed) {
		name := argument.FeedName(url)
		if _, err := store.Feed(ctx, name); err != nil {
			return nil, c.Unknown(url, err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// show shows the entries, each with its feed if there are several.
func (c *entriesCommand) show(ctx context.Context, p *terminal.Page, records iter.Seq2[*mirror.Record, error], several bool) error {
	n := 0
	for r, err := range records {
		if err != nil {
			return err
		}
		n++
		e, err := r.Entry()
		if err != nil {
			c.damaged.note(r, err)
			continue
		}
		if err := c.add(ctx, p, r, e, several); err != nil {
			return err
		}
	}
	if n == 0 && !c.JSON && !c.Enclosures {
		p.Line("There is no such entry.")
	}
	return p.Err
}

func (c *entriesCommand) add(ctx context.Context, p *terminal.Page, r *mirror.Record, e *feedhistory.Entry, several bool) error {
	switch {
	case c.JSON:
		record := schema.LineOfRecord(r, e)
		record.Private = c.private.Has(ctx, r.Feed)
		return terminal.WriteJSON(p.W, record)
	case c.Enclosures:
		return show.Enclosures(p, e, r.Time())
	case !c.Long:
		line := show.Line(p, e, r.Time(), r.ID)
		if several {
			line += "  " + terminal.Clean(r.Feed)
		}
		if r.State != mirror.Live {
			line = strings.Replace(line, "  ", "  (deleted) ", 1)
		}
		p.Line(line)
		return p.Err
	}
	show.Entry(p, e)
	if several {
		p.Para("      ", "      ", "of "+r.Feed)
	}
	if d := schema.DeletionOf(r); d.Deleted {
		p.Para("      ", "      ", strings.TrimSpace("deleted "+terminal.Time(d.When)))
	}
	p.Line("")
	return p.Err
}
