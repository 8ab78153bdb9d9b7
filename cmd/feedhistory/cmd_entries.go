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
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An entriesCommand is the verb entries.
type entriesCommand struct {
	database.Location
	Feeds   []string        `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	Feed    []string        `sep:"none" placeholder:"FEED" help:"Another way to name a feed (repeatable)."`
	Since   terminal.Moment `placeholder:"TIME" help:"Show only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Until   terminal.Moment `placeholder:"TIME" help:"Show only entries from before this time."`
	Search  string          `placeholder:"WORDS" help:"Show only entries with all of these words in their title or content."`
	Deleted bool            `help:"Also show entries no longer part of their feed."`
	Limit   int             `least:"0" placeholder:"N" help:"Show at most N entries (default: 0, for all)."`
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

// Validate refuses incompatible flags.
func (c *entriesCommand) Validate() error {
	switch {
	case !c.Until.IsZero() && !c.Since.Before(c.Until.Time):
		return errors.New("--since must be before --until")
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
	feeds, err := c.Location.Feeds(w.Ctx, store, slices.Concat(c.Feeds, c.Feed))
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
	err = c.show(w.Ctx, &terminal.Page{W: out, Width: terminal.Width(w.Stdout)}, database.EntriesOfFeeds(w.Ctx, store, query, database.URLs(feeds)), len(feeds) != 1)
	if errors.Is(err, errors.ErrUnsupported) {
		err = terminal.UsageError("--search: there is no word in " + strconv.Quote(c.Search))
	}
	return cmp.Or(terminal.UnlessLeft(cmp.Or(c.Failure(err), out.Flush(), pager.Close())), c.damaged.say(w))
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
		record := show.LineOfRecord(r, e)
		record.Private = c.private.Has(ctx, r.Feed)
		return terminal.WriteJSON(p.W, record)
	case c.Enclosures:
		return show.Enclosures(p, e, r.Time())
	case !c.Long:
		feed, mark := "", ""
		if several {
			feed = r.Feed
		}
		if r.State != mirror.Live {
			mark = "(deleted) "
		}
		p.Line(show.Row(p, e, r, feed, mark))
		return p.Err
	}
	show.PrintEntry(p, e)
	if several {
		p.Para("      ", "      ", "of "+r.Feed)
	}
	if d := show.DeletionOf(r); d.Deleted {
		p.Para("      ", "      ", strings.TrimSpace("deleted "+terminal.Time(d.When)))
	}
	p.Line("")
	return p.Err
}

// An entryCommand is the verb entry.
type entryCommand struct {
	database.Location
	ID   string `arg:"" name:"ID" help:"The entry's id, as feedhistory entries shows it, or its beginning if no other id begins so, or … and its end."`
	Feed string `placeholder:"FEED" help:"The entry's feed, if several have an entry with this id."`

	terminal.JSONFlag `set:"record=the entry"`

	terminal.PagerFlags
}

// Run shows the entry.
func (c *entryCommand) Run(w *command.World) (err error) {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r, err := c.find(w.Ctx, store)
	if err != nil {
		return c.Failure(err)
	}
	if c.JSON {
		return show.PrintRecord(w.Stdout, r)
	}
	e, err := r.Entry()
	if err != nil {
		return err
	}
	out := c.Pager(w.Stdout)
	buffered := bufio.NewWriter(out)
	p := &terminal.Page{W: buffered, Width: terminal.Width(w.Stdout)}
	show.Article(p, e, r)
	return terminal.UnlessLeft(cmp.Or(p.Err, buffered.Flush(), out.Close()))
}

// find returns the entry, which must be in one feed only.
func (c *entryCommand) find(ctx context.Context, store mirror.Store) (found *mirror.Record, err error) {
	feeds, err := c.AddressesOf(ctx, store, c.Feed, false)
	if err != nil {
		return nil, err
	}
	if c.ID, err = database.ID(ctx, store, feeds, c.ID); err != nil {
		return nil, err
	}
	var with []string
	for _, feed := range feeds {
		r, err := recordWith(ctx, store, feed, c.ID)
		if err != nil {
			return nil, err
		}
		if r != nil {
			found, with = r, append(with, feed)
		}
	}
	switch len(with) {
	case 0:
		return nil, errors.New("there is no entry with the id " + terminal.Clean(c.ID) + " in " + c.Place() + "; feedhistory entries shows the ids")
	case 1:
		return found, nil
	}
	return nil, terminal.UsageError("several feeds have an entry with this id: choose one with --feed: " + strings.Join(with, ", "))
}

// recordWith returns the entry of a feed with an id, with its content; nil if the feed has
// no such entry, or if the mirror knows only its deletion.
func recordWith(ctx context.Context, store mirror.Store, feed, id string) (*mirror.Record, error) {
	known, err := store.Records(ctx, feed, []string{id})
	if err != nil || known[id] == nil {
		return nil, err
	}
	at := known[id].Time()
	for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Since: at, Until: at.Add(time.Microsecond), Deleted: true}) {
		if err != nil || r.ID == id {
			return r, err
		}
	}
	return nil, nil
}
