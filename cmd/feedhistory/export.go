package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/handover"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// An exportCommand is the verb export.
type exportCommand struct {
	database.Location
	URLs    []string        `arg:"" optional:"" sep:"none" name:"URL" help:"The feeds (default: all feeds of the mirror)."`
	Format  string          `default:"jsonl" enum:"jsonl,json,atom,rss,csv,opml,greader,nextcloud" placeholder:"FORMAT" help:"jsonl: the entries with their content, one a line (the default); json: one feed, as fetch prints it; atom, rss: one feed; csv: a table; opml: the list of feeds; greader: Google Reader's JSON, for FreshRSS; nextcloud: articles.json of Nextcloud News."`
	Raw     bool            `help:"With jsonl: write everything the mirror knows, for import."`
	Since   argument.Moment `placeholder:"TIME" help:"Only entries from this time on: 2003-12-13, 2003-12-13T18:30:02Z, or how long ago, such as 7d or 48h."`
	Until   argument.Moment `placeholder:"TIME" help:"Only entries from before this time."`
	Status  string          `default:"read" enum:"read,unread" placeholder:"STATUS" help:"With greader and nextcloud: mark the entries as read (the default) or unread."`
	Starred bool            `help:"With greader and nextcloud: star the entries."`
	Deleted bool            `help:"With jsonl and csv: also write a deletion for each entry no longer part of its feed."`
}

// Help returns the text of --help before the flags.
func (c *exportCommand) Help() string {
	return "With json, atom and rss, give one URL. If the history is whole, the feed is marked as complete; " +
		"otherwise, additional entries tell readers about the gaps.\n\n" +
		"The exit status is 3 if a feed is known to be incomplete. With --raw and with opml it is 0: " +
		"the one copies the mirror together with its gaps, the other lists feeds.\n\n" +
		"In csv, an apostrophe precedes text that a spreadsheet would take for a formula."
}

// Validate refuses flags unsuitable for the format.
func (c *exportCommand) Validate() error {
	switch {
	case slices.Contains([]string{"json", "atom", "rss"}, c.Format) && len(c.URLs) != 1:
		return errors.New("--format " + c.Format + ": give one feed's URL")
	case c.Format != "jsonl" && c.Format != "csv" && c.Deleted:
		return errors.New("--deleted is for jsonl and csv: a feed lists deletions anyway, a list of feeds has no entries, and readers import no deletions")
	case c.Format != "jsonl" && c.Raw:
		return errors.New("--raw is for jsonl")
	case !slices.Contains(readerFormats, c.Format) && (c.Starred || c.Status != "read"):
		return errors.New("--status and --starred are for greader and nextcloud")
	case c.isPart() && (c.Raw || c.Format == "opml"):
		return errors.New("--since and --until are for entries: --raw copies whole feeds, and opml lists feeds")
	case !c.Until.IsZero() && !c.Since.Before(c.Until.Time):
		return errors.New("--since must be before --until")
	case c.Deleted && c.Raw:
		return errors.New("--raw includes deletions anyway")
	}
	return nil
}

// Run exports the feeds.
func (c *exportCommand) Run(w *command.World) (err error) {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	feeds, err := c.feeds(w, store)
	if err != nil {
		return err
	}
	private, err := c.PrivateFeeds(store)
	if err != nil {
		return err
	}
	readable := &readableEntries{Store: store}
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	switch c.Format {
	case "opml":
		err = exportOPML(w, out, feeds)
	case "greader":
		err = (&handover.Export{Store: readable, Query: c.query(""), Status: c.Status, Starred: c.Starred}).GoogleReader(w.Ctx, out, feeds)
	case "nextcloud":
		err = (&handover.Export{Store: readable, Query: c.query(""), Status: c.Status, Starred: c.Starred}).NextcloudNews(w.Ctx, out, feeds)
	case "json":
		err = c.exportObject(w.Ctx, out, readable, feeds)
	case "atom":
		err = c.exportFeed(w.Ctx, out, readable, feeds, feedhistory.Atom)
	case "rss":
		err = c.exportFeed(w.Ctx, out, readable, feeds, feedhistory.RSS)
	case "csv":
		err = schema.PrintTable(out, c.records(w.Ctx, readable))
	default:
		if c.Raw { // with the damaged entries as they are
			err = c.exportRaw(w.Ctx, out, store, feeds)
		} else {
			err = c.exportLines(w.Ctx, out, readable, private)
		}
	}
	if err := cmp.Or(c.Failure(err), out.Flush()); err != nil || c.Raw || c.Format == "opml" {
		return err
	}
	return cmp.Or(c.lacking(w, feeds), readable.say(w))
}

// isPart reports whether the flags ask for a part of the entries.
func (c *exportCommand) isPart() bool { return !c.Since.IsZero() || !c.Until.IsZero() }

// query returns the query for the entries the flags ask for, of a feed or of all feeds.
func (c *exportCommand) query(feed string) mirror.Query {
	return mirror.Query{Feed: feed, Since: c.Since.Time, Until: c.Until.Time, Deleted: c.Deleted}
}

// verdict returns the verdict on the exported part of a feed: a part is never whole.
func (c *exportCommand) verdict(f *mirror.Feed) feedhistory.Verdict {
	if c.isPart() {
		return feedhistory.Worse(f.Verdict, feedhistory.Window)
	}
	return f.Verdict
}

// lacking names the feeds known to be incomplete, and returns the exit status for them.
func (c *exportCommand) lacking(w *command.World, feeds iter.Seq2[*mirror.Feed, error]) error {
	var partial []string
	for f, err := range feeds {
		if err != nil {
			return c.Failure(err)
		}
		if f.Verdict == feedhistory.Partial && f.Alias == "" {
			partial = append(partial, f.URL)
		}
	}
	switch len(partial) {
	case 0:
		return nil
	case 1:
		w.Say(partial[0] + ": something is missing; feedhistory list " + partial[0] + " shows what")
	default:
		w.Say(terminal.Count(len(partial), "feed lacks", "feeds lack") + " something; feedhistory list --partial shows them")
	}
	return exit.StatusError(exit.Partial)
}

// feeds returns the feeds the arguments ask for. It returns an error, before anything is
// printed, if the mirror does not have one of them.
func (c *exportCommand) feeds(w *command.World, store mirror.Store) (iter.Seq2[*mirror.Feed, error], error) {
	if len(c.URLs) == 0 {
		return store.Feeds(w.Ctx, mirror.FeedQuery{}), nil
	}
	for _, url := range c.URLs {
		if _, err := store.Feed(w.Ctx, argument.FeedName(url)); err != nil {
			return nil, c.Unknown(url, err)
		}
	}
	return func(yield func(*mirror.Feed, error) bool) {
		for _, url := range c.URLs {
			if f, err := store.Feed(w.Ctx, argument.FeedName(url)); !yield(f, err) || err != nil {
				return
			}
		}
	}, nil
}

func exportOPML(w *command.World, out io.Writer, feeds iter.Seq2[*mirror.Feed, error]) error {
	list, err := opml.NewWriter(out, time.Now())
	private := 0
	for f, e := range feeds {
		if err = errors.Join(err, e); err != nil {
			return err
		}
		site := feedhistory.Link{}
		if head, e := f.Document(); e == nil {
			site, _ = head.Links.Rel(feedhistory.RelAlternate)
		}
		feed := opml.OutlineOf(f, terminal.Clean(f.Title), site.Href)
		if f.Private {
			private++
		}
		err = list.Add(feed)
	}
	if private > 0 {
		w.Tell("the list has the addresses of " + terminal.Count(private, "private feed", "private feeds") + ": keep it to yourself")
	}
	return cmp.Or(err, list.Close())
}

// exportLines writes the entries as lines. Those of private feeds say so.
func (c *exportCommand) exportLines(ctx context.Context, out io.Writer, store mirror.Store, private *database.PrivateFeeds) error {
	for record, err := range c.records(ctx, store) {
		if err == nil {
			record.Private = private.Has(ctx, record.Feed)
			err = terminal.WriteJSON(out, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// records yields the entries, feed by feed. For an entry no longer part of its feed, it
// yields the deletion.
func (c *exportCommand) records(ctx context.Context, store mirror.Store) iter.Seq2[*publish.Line, error] {
	queries := []mirror.Query{c.query("")}
	if len(c.URLs) > 0 {
		queries = nil
	}
	for _, url := range c.URLs {
		queries = append(queries, c.query(argument.FeedName(url)))
	}
	return func(yield func(*publish.Line, error) bool) {
		for _, query := range queries {
			for r, err := range store.Entries(ctx, query) {
				var record *publish.Line
				if err == nil {
					record, err = exportRecord(r)
				}
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

func exportRecord(r *mirror.Record) (*publish.Line, error) {
	if d := schema.DeletionOf(r); d.Deleted {
		return &publish.Line{Feed: r.Feed, EntryJSON: feedhistory.EntryJSON{ID: r.ID}, Deleted: d}, nil
	}
	record, err := schema.RecordOf(r)
	if err != nil {
		return nil, fmt.Errorf("%s: the entry %s: %w", r.Feed, r.ID, err)
	}
	return record, nil
}

// exportObject writes the first of the feeds as one JSON object, which it builds in
// memory.
func (c *exportCommand) exportObject(ctx context.Context, w io.Writer, store *readableEntries, feeds iter.Seq2[*mirror.Feed, error]) error {
	for f, err := range feeds {
		if err == nil {
			f, err = store.declare(ctx, f)
		}
		if err != nil {
			return err
		}
		j := schema.History{URL: f.URL, Kind: f.Kind.String(), Verdict: c.verdict(f).String(), Documents: int(f.Documents),
			Entries: []*publish.Line{}, Gaps: schema.Each(f.Missing(), schema.NewGap)}
		for r, err := range store.Entries(ctx, c.query(f.URL)) {
			if err != nil {
				return err
			}
			record, err := schema.RecordOf(r)
			if err != nil {
				return fmt.Errorf("the entry %s: %w", r.ID, err)
			}
			j.Entries = append(j.Entries, record)
		}
		deleted, err := tombstones(ctx, store, f.URL, f.Deleted)
		if err != nil {
			return err
		}
		j.Deleted = schema.Each(deleted, schema.NewTombstone)
		return terminal.WriteJSON(w, j)
	}
	return nil
}
