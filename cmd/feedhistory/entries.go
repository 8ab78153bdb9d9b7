package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// The verb entries.
type entriesCommand struct {
	database
	URL     string `arg:"" optional:"" name:"URL" help:"The feed; without it: all feeds."`
	Feed    string `placeholder:"URL" help:"Likewise."`
	Since   moment `placeholder:"TIME" help:"Only entries of this time or later: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Until   moment `placeholder:"TIME" help:"Only entries from before this time."`
	Search  string `placeholder:"WORDS" help:"Only entries that have all of the words in their title or content."`
	Deleted bool   `help:"Also entries that are no longer part of their feed."`
	Limit   int    `placeholder:"N" help:"As many at most."`
	Long    bool   `short:"l" help:"Show several lines of each entry: when, its id and its link."`
	JSON    bool   `name:"json" help:"Print a JSON object for each entry, one a line."`

	Enclosures bool `xor:"json" help:"Print a line for each file that comes with an entry, such as a podcast's episode: URL, type, length, duration and episode, with tabs between them."`

	pagerFlags
}

// Help is what --help says beyond the flags.
func (c *entriesCommand) Help() string {
	return "Entries come newest first: by when they were updated, else published, else mirrored. " +
		"Each is a line: its day, its title and its id, by which feedhistory entry shows it as text; feedhistory export has them all."
}

// Validate refuses what no entry could fit.
func (c *entriesCommand) Validate() error {
	switch {
	case c.URL != "" && c.Feed != "":
		return errors.New("--feed: one feed, and there is an URL already")
	case c.Limit < 0:
		return errors.New("--limit: at least 1")
	case !c.Until.IsZero() && !c.Since.Before(c.Until.Time):
		return errors.New("--since must be before --until")
	case c.JSON && c.Enclosures:
		return errors.New("--json and --enclosures exclude each other")
	}
	return nil
}

// Run shows the entries.
func (c *entriesCommand) Run(w *world) (err error) {
	c.URL = cmp.Or(c.URL, c.Feed)
	store, err := c.read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	query := mirror.Query{
		Since: c.Since.Time, Until: c.Until.Time, Search: c.Search, Deleted: c.Deleted, Limit: c.Limit,
	}
	if c.URL != "" {
		query.Feed = feedName(c.URL)
		if _, err := store.Feed(w.ctx, query.Feed); err != nil {
			return c.unknown(c.URL, err)
		}
	}
	pager := &pager{Writer: w.stdout}
	if !c.JSON {
		pager = c.pager(w)
	}
	out := bufio.NewWriterSize(pager, 64<<10)
	err = c.show(&page{w: out}, store.Entries(w.ctx, query))
	if errors.Is(err, errors.ErrUnsupported) {
		err = usageError("--search: there is no word in " + strconv.Quote(c.Search))
	}
	return unlessLeft(errors.Join(c.failure(err), out.Flush(), pager.Close()))
}

func (c *entriesCommand) show(p *page, records iter.Seq2[*mirror.Record, error]) error {
	n := 0
	for r, err := range records {
		if err != nil {
			return err
		}
		n++
		if err := c.add(p, r); err != nil {
			return fmt.Errorf("%s: the entry %s: %w", r.Feed, r.ID, err)
		}
	}
	if n == 0 && !c.JSON && !c.Enclosures {
		p.line("There is no such entry.")
	}
	return p.err
}

func (c *entriesCommand) add(p *page, r *mirror.Record) error {
	e, err := r.Entry()
	if err != nil {
		return err
	}
	if c.JSON {
		record, err := recordOf(r)
		if err != nil {
			return err
		}
		return printLine(p.w, record)
	}
	if c.Enclosures {
		return p.enclosures(e)
	}
	if !c.Long {
		p.entryLine(e, r)
		return p.err
	}
	p.entry(e)
	if c.URL == "" {
		p.para("      ", "      ", "of "+r.Feed)
	}
	if d := deletionOf(r); d.Deleted {
		p.para("      ", "      ", strings.TrimSpace("deleted "+timeText(d.When)))
	}
	p.line("")
	return p.err
}

// deletionOf says since when an entry is no longer part of its feed: as its
// tombstone has it, else as the mirror found.
func deletionOf(r *mirror.Record) publish.RecordDeletion {
	switch {
	case r.State == mirror.Live:
		return publish.RecordDeletion{}
	case r.State == mirror.Deleted && !r.Tombstone.When.IsZero():
		return publish.RecordDeletion{Deleted: true, When: r.Tombstone.When}
	}
	return publish.RecordDeletion{Deleted: true, When: r.Changed.UTC()}
}
