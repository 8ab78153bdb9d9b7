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
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// An exportCommand is the verb export.
type exportCommand struct {
	database.Location
	Feeds  []string `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	Format string   `default:"jsonl" enum:"jsonl,json,atom,rss,csv,opml,greader,nextcloud" placeholder:"FORMAT" help:"jsonl: the entries with their content, one a line (the default); json: one feed, as fetch prints it; atom, rss: one feed; csv: a table; opml: the list of feeds; greader: Google Reader's JSON, for FreshRSS; nextcloud: articles.json of Nextcloud News."`
	Output string   `short:"o" placeholder:"FILE" help:"Write to a file instead of standard output. The file appears only when it is complete."`
	Raw    bool     `help:"With jsonl: write everything the mirror knows, for import."`

	terminal.Period `set:"choice=Only entries"`

	Status  string `default:"" enum:",read,unread" placeholder:"STATUS" help:"With greader and nextcloud: mark the entries as read or unread (default: unread)."`
	Starred bool   `help:"With greader and nextcloud: star the entries."`
	Deleted bool   `help:"With jsonl and csv: also write a deletion for each entry no longer part of its feed."`
}

// Help returns the text of --help before the flags.
func (c *exportCommand) Help() string {
	return "With json, atom and rss, give one feed. If the history is whole, the feed is marked as complete; " +
		"otherwise, additional entries tell readers about the gaps.\n\n" +
		"The exit status is 3 if a feed is known to be incomplete. With --raw and with opml it is 0: " +
		"the one copies the mirror together with its gaps, the other lists feeds.\n\n" +
		"In csv, an apostrophe precedes text that a spreadsheet would take for a formula."
}

// Validate refuses flags unsuitable for the format.
func (c *exportCommand) Validate() error {
	switch {
	case slices.Contains([]string{"json", "atom", "rss"}, c.Format) && len(c.Feeds) != 1:
		return errors.New("--format " + c.Format + ": give one feed")
	case c.Format != "jsonl" && c.Format != "csv" && c.Deleted:
		return errors.New("--deleted is for jsonl and csv: a feed lists deletions anyway, a list of feeds has no entries, and readers import no deletions")
	case c.Format != "jsonl" && c.Raw:
		return errors.New("--raw is for jsonl")
	case !slices.Contains(readerFormats, c.Format) && (c.Starred || c.Status != ""):
		return errors.New("--status and --starred are for greader and nextcloud")
	case c.isPart() && (c.Raw || c.Format == "opml"):
		return errors.New("--since and --until are for entries: --raw copies whole feeds, and opml lists feeds")
	}
	return nil
}

// Run exports the feeds.
func (c *exportCommand) Run(w *command.World) (err error) {
	file, err := w.Output(c.Output)
	if err != nil {
		return err
	}
	defer file.Discard()
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	feeds, err := c.FeedsOrAll(w.Ctx, store, c.Feeds)
	if err != nil {
		return err
	}
	private, err := c.PrivateFeeds(w.Ctx, store)
	if err != nil {
		return err
	}
	readable := &readableEntries{Store: store}
	out := bufio.NewWriterSize(file, 64<<10)
	switch c.Format {
	case "opml":
		err = exportOPML(w, out, feeds)
	case "greader", "nextcloud":
		err = (&readers.Export{Store: readable, Query: c.query(""), Status: c.Status, Starred: c.Starred}).Write(w.Ctx, out, c.Format, feeds)
	case "json":
		err = c.exportObject(w.Ctx, out, readable, feeds)
	case "atom":
		err = c.exportFeed(w.Ctx, out, readable, feeds, feedhistory.FormatAtom)
	case "rss":
		err = c.exportFeed(w.Ctx, out, readable, feeds, feedhistory.FormatRSS)
	case "csv":
		err = show.PrintTable(out, c.records(w.Ctx, readable, feeds))
	default:
		if c.Raw { // with the damaged entries as they are
			err = c.exportRaw(w.Ctx, out, store, feeds)
		} else {
			err = exportLines(w.Ctx, out, readable, c.records(w.Ctx, readable, feeds), private)
		}
	}
	if err := cmp.Or(c.Failure(err), out.Flush(), file.Commit()); err != nil || c.Raw || c.Format == "opml" {
		return err
	}
	return cmp.Or(c.lacking(w, feeds), readable.say(w))
}

// isPart reports whether the flags ask for a part of the entries.
func (c *exportCommand) isPart() bool { return !c.Since.IsZero() || !c.Until.IsZero() }

// query returns the query for the entries the flags ask for, of a feed or of all feeds.
func (c *exportCommand) query(feed string) mirror.Query {
	return mirror.Query{Feed: feed, Since: c.Since.Time, Until: c.Until.Time, States: statesOf(c.Deleted)}
}

// statesOf returns the kinds of entries a flag asks for.
func statesOf(deleted bool) mirror.States {
	if deleted {
		return mirror.Current | mirror.Former
	}
	return mirror.Current
}

// verdict returns the verdict on the exported part of a feed: a part is never whole.
func (c *exportCommand) verdict(f *mirror.Feed) feedhistory.Verdict {
	if c.isPart() {
		return min(f.Verdict, feedhistory.VerdictWindow)
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
		if f.Verdict == feedhistory.VerdictPartial && f.Alias == "" {
			partial = append(partial, show.Address(f.URL))
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
	return terminal.StatusError(terminal.ExitPartial)
}

// exportOPML writes the list of the feeds.
func exportOPML(w *command.World, out io.Writer, feeds iter.Seq2[*mirror.Feed, error]) error {
	var list []readers.Outline
	private := 0
	for f, err := range feeds {
		if err != nil {
			return err
		}
		if f.Alias != "" {
			continue // it is the other feed, which the list has
		}
		site := feedhistory.Link{}
		if head, err := f.Document(); err == nil {
			site, _ = head.Links.Rel("alternate")
		}
		list = append(list, readers.OutlineOf(f, terminal.Clean(f.Title), site.Href))
		if f.Private {
			private++
		}
	}
	if private > 0 {
		w.Tell("the list has the addresses of " + terminal.Count(private, "private feed", "private feeds") + ": keep it to yourself")
	}
	return readers.WriteOPML(out, time.Now(), list)
}

// exportLines writes the entries as lines. Those of private feeds say so, and the first of each
// feed describes it.
func exportLines(ctx context.Context, out io.Writer, store mirror.Store, records iter.Seq2[*publish.Line, error], private func(feed string) bool) error {
	described := map[string]bool{}
	for record, err := range records {
		if err != nil {
			return err
		}
		line := show.FirstLine{Line: record}
		if !described[record.Feed] {
			f, err := store.Feed(ctx, record.Feed)
			if err != nil {
				return err
			}
			described[record.Feed], line.Head = true, headOf(f)
		}
		record.Private = private(record.Feed)
		if err := terminal.WriteJSON(out, line); err != nil {
			return err
		}
	}
	return nil
}

// headOf returns the description of a mirrored feed; nil if it was never read.
func headOf(f *mirror.Feed) *show.Head {
	head, err := f.Document()
	if err != nil {
		return nil
	}
	return show.NewHead(head)
}

// records yields the entries of the feeds the arguments ask for, feed by feed, or those of
// all feeds by their time. For an entry no longer part of its feed, it yields the deletion.
func (c *exportCommand) records(ctx context.Context, store mirror.Store, feeds iter.Seq2[*mirror.Feed, error]) iter.Seq2[*publish.Line, error] {
	if len(c.Feeds) == 0 {
		feeds = func(yield func(*mirror.Feed, error) bool) { yield(&mirror.Feed{}, nil) }
	}
	return func(yield func(*publish.Line, error) bool) {
		for f := range feeds {
			for r, err := range store.Entries(ctx, c.query(f.URL)) {
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
	if d := show.DeletionOf(r); d.Deleted {
		return &publish.Line{Feed: r.Feed, EntryJSON: compose.EntryJSON{ID: r.ID}, Deleted: d}, nil
	}
	record, err := show.RecordOf(r)
	if err != nil {
		return nil, fmt.Errorf("%s: the entry %s: %w", show.Address(r.Feed), r.ID, err)
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
		j := show.History{URL: f.URL, Kind: show.KindName(f.Kind), Verdict: c.verdict(f).String(), Documents: int(f.Documents), Head: headOf(f),
			Entries: []*publish.Line{}, Gaps: show.Each(f.Ledger.Gaps(), show.NewGap)}
		for r, err := range store.Entries(ctx, c.query(f.URL)) {
			if err != nil {
				return err
			}
			record, err := show.RecordOf(r)
			if err != nil {
				return fmt.Errorf("the entry %s: %w", r.ID, err)
			}
			j.Entries = append(j.Entries, record)
		}
		deleted, err := tombstones(ctx, store, f.URL, f.Deleted)
		if err != nil {
			return err
		}
		j.Deleted = show.Each(deleted, show.NewTombstone)
		return terminal.WriteJSON(w, j)
	}
	return nil
}

// exportFeed writes the first of the feeds as the document compose.History would
// return, in Atom or RSS. It never has more than one entry in memory.
func (c *exportCommand) exportFeed(ctx context.Context, w io.Writer, store *readableEntries, feeds iter.Seq2[*mirror.Feed, error], format feedhistory.Format) error {
	for f, err := range feeds {
		if err == nil {
			f, err = store.declare(ctx, f)
		}
		if err != nil {
			return err
		}
		doc, err := c.exportHead(ctx, store, f)
		if err != nil {
			return err
		}
		out := compose.NewWriter(w, format, doc)
		for r, err := range store.Entries(ctx, c.query(f.URL)) {
			if err != nil {
				return err
			}
			if f.Private {
				r = r.Redacted()
			}
			e, err := r.Entry()
			if err != nil {
				return fmt.Errorf("the entry %s: %w", r.ID, err)
			}
			if e.Changed().IsZero() {
				e.Updated = r.Time() // when the mirror first saw it
			}
			if err := out.Add(e); err != nil {
				return err
			}
		}
		return out.Close()
	}
	return nil
}

// exportHead returns the document without the feed's entries. The only
// entries in it describe gaps.
func (c *exportCommand) exportHead(ctx context.Context, store mirror.Store, f *mirror.Feed) (*feedhistory.Document, error) {
	url := f.URL
	if f.Private {
		f = f.Redacted()
	}
	head, err := f.Document()
	switch {
	case errors.Is(err, mirror.ErrNotFound) && f.Entries > 0: // only a part of its document could be read
		if head = (&feedhistory.Document{Format: feedhistory.FormatAtom, URL: f.URL}); f.Private {
			head.URL, head.ID = "", "urn:sha256:"+republish.Name(f.URL)
		}
	case errors.Is(err, mirror.ErrNotFound):
		return nil, errors.New(show.Address(f.URL) + ": the feed could not be read yet: " + f.Error)
	case err != nil:
		return nil, err
	}
	history := feedhistory.History{Head: head, Kind: f.Kind, Gaps: f.Ledger.Gaps()}
	if history.Deleted, err = tombstones(ctx, store, url, f.Deleted); err != nil {
		return nil, err
	}
	doc := compose.History(&history)
	doc.Entries = compose.PseudoEntries(&history)
	if doc.Complete = c.verdict(f) == feedhistory.VerdictWhole; !doc.Complete || !f.WholeAsOf().IsZero() {
		doc.Coverage = f.Coverage()
	}
	if c.isPart() {
		if doc.Coverage == nil {
			doc.Coverage = &feedhistory.Coverage{Of: f.URL, Kind: f.Kind}
		}
		doc.Coverage.Verdict = c.verdict(f)
	}
	if f.Private && doc.Coverage != nil {
		doc.Coverage.Of = ""
	}
	if doc.Updated.IsZero() {
		doc.Updated = f.Changed.UTC()
	}
	return doc, nil
}

// tombstones returns the deletions of the entries that are no longer part of a feed, given
// their number.
func tombstones(ctx context.Context, store mirror.Store, feed string, n int64) (deleted []feedhistory.Tombstone, err error) {
	if n == 0 {
		return nil, nil
	}
	for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, States: mirror.Current | mirror.Former}) {
		if err != nil {
			return nil, err
		}
		if d := show.DeletionOf(r); d.Deleted {
			deleted = append(deleted, feedhistory.Tombstone{Ref: r.ID, When: d.When})
		}
	}
	return deleted, nil
}

// exportRaw writes everything a mirror knows about feeds, for import.
func (c *exportCommand) exportRaw(ctx context.Context, w io.Writer, store mirror.Store, feeds iter.Seq2[*mirror.Feed, error]) error {
	keys, err := c.Keyring()
	if err != nil {
		return err
	}
	private, err := keys.Load()
	if err != nil {
		return err
	}
	return mirror.Export(ctx, harmlessWriter{w}, store, func(yield func(*mirror.Feed, error) bool) {
		for f, err := range feeds {
			if err == nil {
				f.Private = f.Private || private[f.URL] != nil
			}
			if !yield(f, err) {
				return
			}
		}
	})
}

// printRaw writes a fetched history as if one poll had mirrored it.
func printRaw(w io.Writer, r *backfill.Recovery, private bool) error {
	h := *r.History
	h.Gaps = nil
	for _, g := range r.History.Gaps {
		gap := *g
		gap.Err = errors.New(show.Detail(g.Err))
		h.Gaps = append(h.Gaps, &gap)
	}
	return mirror.ExportHistory(harmlessWriter{w}, show.FeedOf(&h), &h, r.Verdict(), private)
}

// A harmlessWriter escapes the characters in lines of JSON with an effect on terminals.
type harmlessWriter struct{ w io.Writer }

// Write implements io.Writer.
func (h harmlessWriter) Write(line []byte) (int, error) {
	if _, err := h.w.Write(terminal.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
