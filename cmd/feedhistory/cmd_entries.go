package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
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
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/mirror/words"
	"github.com/feedhistory/feedhistory/publish"
)

// An entriesCommand is the verb entries.
type entriesCommand struct {
	database.Location
	Feeds []string `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	Feed  []string `sep:"none" placeholder:"FEED" help:"Another way to name a feed (repeatable)."`

	terminal.Period `set:"choice=Show only entries"`

	Search  string `placeholder:"WORDS" help:"Show only entries with all of these words in their title or content; the last one may be the beginning of a word. \"Quotes\" keep words together, -WORD leaves entries out, and OR finds either side."`
	Deleted bool   `help:"Also show entries no longer part of their feed."`
	Limit   int    `least:"0" placeholder:"N" help:"Show at most N entries (default: 0, for all)."`
	Long    bool   `short:"l" help:"Show several lines for each entry: its title, time, id and link."`

	terminal.JSONFlag `set:"record=each entry"`

	Enclosures bool `xor:"json" help:"Print a line for each file of an entry, such as a podcast's episode: URL, type, length, duration, episode, date and title, with tabs between them."`

	terminal.PagerFlags

	damaged readableEntries
	private func(feed string) bool
}

// Help returns the text of --help before the flags.
func (c *entriesCommand) Help() string {
	return "The newest entries come first. An entry's time is when it was updated, else when it was published, else when it was mirrored. " +
		"Each line has the day, the title and the id of an entry and, if there are several feeds, the feed. feedhistory entry ID shows the entry as text; feedhistory export prints entries with their content."
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
	if c.private, err = c.PrivateFeeds(w.Ctx, store); err != nil {
		return err
	}
	query := mirror.Query{
		Since: c.Since.Time, Until: c.Until.Time, Search: c.Search, Prefix: words.IsBeginning(c.Search), States: statesOf(c.Deleted), Limit: c.Limit,
	}
	pager := &terminal.Pager{Writer: w.Stdout}
	if !c.JSON {
		pager = c.Pager(w.Stdout)
	}
	out := bufio.NewWriterSize(pager, 64<<10)
	err = c.show(w.Ctx, terminal.PagedOn(w.Stdout, out), database.EntriesOfFeeds(w.Ctx, store, query, feeds), len(feeds) != 1)
	if errors.Is(err, errors.ErrUnsupported) {
		err = terminal.UsageError("--search: there is no word to look for in " + strconv.Quote(c.Search) + ", or there are too many")
	}
	unread, isPart := errors.AsType[*sqlstore.UnindexedError](err)
	if isPart {
		err = nil
	}
	if err := terminal.UnlessLeft(cmp.Or(c.Failure(err), out.Flush(), pager.Close())); err != nil {
		return err
	}
	if isPart {
		w.Say(terminal.Count(int(unread.Entries), "entry is", "entries are") + " not indexed yet, so the search has not looked into all: the next sync, or a worker of the fleet, indexes them")
		return cmp.Or(c.damaged.say(w), error(terminal.StatusError(terminal.ExitPartial)))
	}
	return c.damaged.say(w)
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
		p.Line("No entries match.")
	}
	return p.Err
}

func (c *entriesCommand) add(ctx context.Context, p *terminal.Page, r *mirror.Record, e *feedhistory.Entry, several bool) error {
	switch {
	case c.JSON:
		record := show.LineOfRecord(r, e)
		record.Private = c.private(r.Feed)
		return terminal.WriteJSON(p.W, record)
	case c.Enclosures:
		return show.Enclosures(p, e, r.Time())
	case !c.Long:
		feed, mark := "", ""
		if several {
			feed = show.Address(r.Feed)
		}
		if r.State != mirror.Live {
			mark = "(deleted) "
		}
		p.Line(show.Row(p, e, r, feed, mark))
		return p.Err
	}
	show.PrintEntry(p, e)
	if several {
		p.Para("      ", "      ", "of "+show.Address(r.Feed))
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
	ID   string `arg:"" name:"ID" help:"The entry's id, as feedhistory entries shows it, or its beginning if no other id begins so, or … and its end; or its title, or a part of it that no other title has."`
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
	e, err := r.Entry()
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, show.LineOfRecord(r, e))
	}
	out := c.Pager(w.Stdout)
	buffered := bufio.NewWriter(out)
	p := terminal.PagedOn(w.Stdout, buffered)
	show.Article(p, e, r)
	return terminal.UnlessLeft(cmp.Or(p.Err, buffered.Flush(), out.Close()))
}

// find returns the entry, which must be in one feed only.
func (c *entryCommand) find(ctx context.Context, store mirror.Store) (found *mirror.Record, err error) {
	feeds, err := c.AddressesOf(ctx, store, c.Feed, false)
	if err != nil {
		return nil, err
	}
	if c.ID, feeds, err = database.NamedEntry(ctx, store, feeds, c.ID); err != nil {
		return nil, err
	}
	var with []string
	for _, feed := range feeds {
		r, err := recordWith(ctx, store, feed, c.ID)
		if err != nil {
			return nil, err
		}
		if r != nil {
			found, with = r, append(with, show.Address(feed))
		}
	}
	switch len(with) {
	case 0:
		return nil, errors.New("there is no entry with the id or title " + terminal.Clean(c.ID) + " in " + c.Place() + "; feedhistory entries shows both")
	case 1:
		return found, nil
	}
	return nil, terminal.UsageError("several feeds have an entry with this id: choose one with --feed: " + strings.Join(with, ", "))
}

// recordWith returns the entry of a feed with an id, with its content; nil if the feed has
// no such entry, or if the mirror knows only its deletion.
func recordWith(ctx context.Context, store mirror.Store, feed, id string) (*mirror.Record, error) {
	r, err := mirror.Lookup(ctx, store, feed, id)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// A newCommand is the verb new.
type newCommand struct {
	database.Location
	Feeds []string `arg:"" optional:"" sep:"none" name:"FEED" help:"The feeds (default: all feeds of the mirror)."`
	As    string   `default:"new" placeholder:"NAME" help:"The name under which the entries count as printed (default: ${default})."`
	Once  bool     `help:"Count the entries as printed before they are printed, so that none is ever printed twice."`

	FromNow bool `help:"Of feeds of which nothing has been printed, print nothing, but count all entries as printed: the next run prints those that have come since."`

	Maildir string `placeholder:"DIR" help:"Deliver each entry as a mail to a Maildir, which is created if necessary, and print nothing."`

	terminal.JSONFlag `set:"record=each entry"`
}

// Help returns the text of --help before the flags.
func (c *newCommand) Help() string {
	return "new prints the entries that it has not printed before under the same name: the first time all entries (with --from-now, none), and nothing if there are none. " +
		"It goes by the order in which the mirror has stored them, so entries with an old date are new, too. An entry that changes is not new.\n\n" +
		"Entries count as printed after all of them have been written: if that fails, the next run prints them again. With --once, it does not. " +
		"To mail what is new: feedhistory sync -q; feedhistory new | mail -E -s news you@example.org\n\n" +
		"With --maildir, each entry is a mail of its own, with its content as text and as HTML, for mutt, Dovecot and others. After a failure, the next run delivers the rest."
}

// Run prints the new entries, feed by feed, the first stored first.
func (c *newCommand) Run(w *command.World) (err error) {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	private, err := c.PrivateFeeds(w.Ctx, store)
	if err != nil {
		return err
	}
	marks := &database.Printed{DB: store.DB, Name: c.As}
	after, err := marks.Read(w.Ctx)
	if err != nil {
		return c.Failure(err)
	}
	feeds, err := c.feeds(w.Ctx, store) // as they are now
	if err != nil {
		return err
	}
	if c.FromNow {
		if feeds, err = begin(w.Ctx, marks, after, feeds); err != nil {
			return c.Failure(err)
		}
	}
	write := func() error { return c.Failure(marks.Write(w.Ctx, feeds)) }
	if c.Once {
		if err := write(); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	take, err := c.output(w, out, private, marks)
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

// feeds returns the feeds to print.
func (c *newCommand) feeds(ctx context.Context, store mirror.Store) (feeds []*mirror.Feed, err error) {
	list, err := c.FeedsOrAll(ctx, store, c.Feeds)
	if err != nil {
		return nil, err
	}
	for f, err := range list {
		if err != nil {
			return nil, c.Failure(err)
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// begin counts the entries of feeds as printed of which none have been, and returns the other feeds.
func begin(ctx context.Context, marks *database.Printed, after map[string]int64, feeds []*mirror.Feed) (others []*mirror.Feed, err error) {
	var fresh []*mirror.Feed
	for _, f := range feeds {
		if _, ok := after[f.URL]; ok {
			others = append(others, f)
		} else {
			fresh = append(fresh, f)
		}
	}
	return others, marks.Write(ctx, fresh)
}

// output returns the function that takes each entry.
func (c *newCommand) output(w *command.World, out io.Writer, private func(feed string) bool, marks *database.Printed) (func(*mirror.Feed, *mirror.Record, *feedhistory.Entry) error, error) {
	if c.Maildir != "" {
		return deliverer(w, c.Maildir, marks)
	}
	p := terminal.PagedOn(w.Stdout, out)
	return func(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) error {
		if c.JSON {
			line := show.LineOfRecord(r, e)
			line.Private = private(r.Feed)
			return terminal.WriteJSON(out, line)
		}
		p.Line(show.Row(p, e, r, show.Address(f.URL), ""))
		return p.Err
	}, nil
}

// deliverer returns the function that delivers an entry to a Maildir: durably, under a name
// that mail programs pass over until the file is complete. It leaves out the mails delivered
// by a run cut short: they may have been moved or deleted since.
func deliverer(w *command.World, dir string, marks *database.Printed) (func(*mirror.Feed, *mirror.Record, *feedhistory.Entry) error, error) {
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return nil, fmt.Errorf("--maildir: %w", err)
		}
	}
	delivered, err := marks.Delivered(w.Ctx)
	if err != nil {
		return nil, err
	}
	inbox := publish.Dir{Path: filepath.Join(dir, "new")}
	return func(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) error {
		name, message, err := show.Mail(f, r, e)
		if err != nil || delivered[name] {
			return err
		}
		if err := inbox.Put(w.Ctx, name, message); err != nil {
			return err
		}
		return marks.Deliver(context.WithoutCancel(w.Ctx), f.URL, name)
	}, nil
}

// An eraseCommand is the verb erase.
type eraseCommand struct {
	database.Location
	IDs  []string `arg:"" sep:"none" name:"ID" help:"Ids of the entries to erase, in full."`
	Feed string   `placeholder:"FEED" help:"The entries' feed, if several mirrored feeds have entries with these ids."`
	Out  string   `placeholder:"DIR|s3://BUCKET/PREFIX" help:"Erase the entries from the feeds published in this directory or object store, and from the mirror only if --db or FEEDHISTORY_DB is set."`
	Name string   `placeholder:"FILE" help:"The subscription document in that directory (default: feed.atom and feed.rss)."`

	//lint:ignore SA5008 kong takes one tag for each variable
	removalFlags `set:"removed=entries" set:"verb=erase"`
	objectStore
	republishedFlag

	output publish.Output // the place Out names
}

// Help returns the text of --help before the flags.
func (c *eraseCommand) Help() string {
	return "Use this if the law requires it. It removes the entries with all their versions, for good. It names them first and, on a terminal, asks. " +
		"The mirror keeps only the ids, so that it never stores the entries again unless you remove the feed; the database is rewritten without their bytes.\n\n" +
		"Published archives that contain one of the entries get new addresses, and so do all later archives. Readers do not notice: " +
		"if they keep copies, publish the deletion first. Backups do not change.\n\n" +
		"This also removes the feeds' documents that the history server keeps on this machine; the server republishes a feed when somebody asks for it. " +
		"If the history server runs on another machine, run the same command there."
}

// Validate refuses incompatible flags.
func (c *eraseCommand) Validate() error {
	switch {
	case c.Name != "" && c.Out == "":
		return errors.New("--name is for --out")
	case c.S3Endpoint != "" && c.Out == "":
		return errors.New("--s3-endpoint is for --out")
	}
	if c.Feed != "" && c.Out != "" && c.DB == "" {
		return errors.New("--feed is for the mirror: give --db")
	}
	return nil
}

// Run erases the entries, first from the published feeds and then from the mirror. Before
// that, it names them.
func (c *eraseCommand) Run(w *command.World) (err error) {
	p := terminal.NewPage(w.Asides())
	plan := c.plan(w)
	if c.Out != "" {
		if c.output, err = c.openOutput(c.Out, nil); err != nil {
			return err
		}
		if err := c.namePublished(plan); err != nil {
			return err
		}
		if c.DB == "" {
			if goOn, err := c.confirm(w, plan); err != nil || !goOn {
				return err
			}
			return cmp.Or(c.published(w.Ctx, p, map[string]bool{}), p.Err)
		}
	}
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	of, missing, err := c.find(w, store, plan)
	if err != nil {
		return c.Failure(err)
	}
	if len(missing) > 0 && c.Out == "" {
		return c.unknown(missing[0])
	}
	if goOn, err := c.confirm(w, plan); err != nil || !goOn {
		return err
	}
	erased := map[string]bool{}
	if c.Out != "" {
		if err := c.published(w.Ctx, p, erased); err != nil {
			return err
		}
	}
	return errors.Join(c.mirrored(w, p, store, of, missing, erased), p.Err)
}

// plan returns the page on which erase names the entries before it erases them.
func (c *eraseCommand) plan(w *command.World) *terminal.Page {
	switch {
	case c.DryRun:
		return terminal.NewPage(w.Stdout)
	case c.asks(w):
		return terminal.NewPage(w.Stderr)
	}
	return terminal.NewPage(w.Asides())
}

func (c *eraseCommand) unknown(id string) error {
	return fmt.Errorf("there is no entry with the id %s in %s; feedhistory entries shows the ids", id, c.Location.Place())
}

// mirrored erases the entries from the mirror. Those just erased from the published feed
// may be missing there. Others are an error, but only in the end, because an earlier run
// may have erased them from there.
func (c *eraseCommand) mirrored(w *command.World, p *terminal.Page, store *database.Store, of map[string][]string, missing []string, published map[string]bool) error {
	var unknown error
	for _, id := range missing {
		if published[id] {
			p.Para("", "  ", c.Location.Place()+": there is no entry with the id "+id)
		} else {
			unknown = cmp.Or(unknown, c.unknown(id))
		}
	}
	if len(of) == 0 {
		return unknown
	}
	return cmp.Or(c.eraseMirrored(w, p, store, of), unknown)
}

// eraseMirrored erases entries, given as ids by feed, from the mirror, and removes the
// history server's documents of these feeds.
func (c *eraseCommand) eraseMirrored(w *command.World, p *terminal.Page, store *database.Store, of map[string][]string) error {
	m := &mirror.Mirror{Store: store}
	erased := 0
	for feed, ids := range of {
		erased += len(ids)
		err := m.Erase(w.Ctx, feed, ids...)
		for tries := 1; errors.Is(err, mirror.ErrConflict) && tries < 20; tries++ { // a poll is under way
			err = m.Erase(w.Ctx, feed, ids...)
		}
		if err != nil {
			return c.Failure(err)
		}
	}
	if err := store.Scrub(w.Ctx); err != nil {
		return fmt.Errorf("the entries are erased, but their bytes may still be in the files: %w; run the same command again", c.Failure(err))
	}
	removed, err := c.removeRepublished(c.Location, slices.Sorted(maps.Keys(of))...)
	if err != nil {
		return fmt.Errorf("the entries are erased, but the history server may still show them: %w; run the same command again", err)
	}
	p.Para("", "  ", fmt.Sprintf("erased from %s: %s", c.Location.Place(), terminal.Count(erased, "entry", "entries")))
	for _, feed := range removed {
		p.Para("  - ", "    ", "the documents that the history server republished of "+show.Address(feed)+" are removed; remove them from caches, too")
	}
	return nil
}

// find returns the ids of the mirrored entries by their feed, and the other ids. It names
// each entry on the plan.
func (c *eraseCommand) find(w *command.World, store mirror.Store, plan *terminal.Page) (of map[string][]string, missing []string, err error) {
	of = map[string][]string{}
	for _, id := range c.IDs {
		feed, err := c.feedOf(w, store, id)
		switch {
		case err != nil:
			return nil, nil, err
		case feed == "":
			missing = append(missing, id)
			continue
		}
		of[feed] = append(of[feed], id)
		r, err := recordWith(w.Ctx, store, feed, id)
		if err != nil {
			return nil, nil, err
		}
		e, at := &feedhistory.Entry{}, time.Time{} // of a deletion
		if r != nil {
			at = r.Time()
			if known, err := r.Entry(); err == nil {
				e = known
			}
		}
		plan.Line(show.Line(plan, e, at, id))
		plan.Para("  ", "  ", "in "+show.Address(feed))
	}
	return of, missing, nil
}

// namePublished names the published entries on the plan.
func (c *eraseCommand) namePublished(plan *terminal.Page) error {
	documents, err := documentsIn(c.output)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	return c.entriesIn(documents, func(name string, e *feedhistory.Entry) error {
		if !named[e.ID] {
			named[e.ID] = true
			plan.Line(show.Line(plan, e, e.Time(), e.ID))
			plan.Para("  ", "  ", "in "+c.place(name))
		}
		return nil
	})
}

// entriesIn calls found with each of the command's entries in published documents.
func (c *eraseCommand) entriesIn(documents []string, found func(name string, e *feedhistory.Entry) error) error {
	for _, name := range documents {
		f, err := c.output.Open(name)
		if err != nil {
			return err
		}
		doc, _ := feedhistory.Parse(f, "")
		_ = f.Close()
		if doc == nil {
			continue // the file is not a feed
		}
		for _, e := range doc.Entries {
			if slices.Contains(c.IDs, e.ID) {
				if err := found(name, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// feedOf returns the mirrored feed with an entry; "" if there is none.
func (c *eraseCommand) feedOf(w *command.World, store mirror.Store, id string) (feed string, err error) {
	feeds, err := c.AddressesOf(w.Ctx, store, c.Feed, true)
	if err != nil {
		return "", err
	}
	var found, shown []string
	for _, url := range feeds {
		records, err := store.Records(w.Ctx, url, []string{id})
		if err != nil {
			return "", err
		}
		if records[id] != nil {
			found, shown = append(found, url), append(shown, show.Address(url))
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", terminal.UsageError("several feeds have an entry with the id " + id + ": choose one with --feed: " + strings.Join(shown, " "))
}

// published erases the entries from the published feeds, and adds their ids to erased.
func (c *eraseCommand) published(ctx context.Context, p *terminal.Page, erased map[string]bool) error {
	feeds, err := c.publishers()
	if err != nil {
		return err
	}
	before, err := documentsIn(c.output)
	if err != nil {
		return err
	}
	for _, to := range feeds {
		ids, err := c.eraseFrom(ctx, to, len(feeds) == 1 && c.DB == "")
		switch {
		case errors.Is(err, publish.ErrLocked):
			return errors.New(c.Out + ": another process is publishing there; try again when it has finished")
		case err != nil:
			return err
		case len(ids) > 0:
			p.Para("", "  ", fmt.Sprintf("erased from %s: %s", to.URL(), terminal.Count(len(ids), "entry", "entries")))
		}
		for _, id := range ids {
			erased[id] = true
		}
	}
	after, err := documentsIn(c.output)
	if err != nil {
		return err
	}
	tell := func(what string, names, without []string) {
		for _, name := range names {
			if !slices.Contains(without, name) {
				p.Para("  - ", "    ", strings.TrimSuffix(feeds[0].Base, "/")+"/"+name+" "+what)
			}
		}
	}
	tell("is gone: remove it from the deployed site and from caches", before, after)
	tell("is new", after, before)
	return c.remaining(p, after, erased)
}

// remaining says which of the entries were not published. It returns an error if a
// document still has one of the entries: then the document belongs to another feed in the
// directory, or to none.
func (c *eraseCommand) remaining(p *terminal.Page, documents []string, erased map[string]bool) error {
	err := c.entriesIn(documents, func(name string, e *feedhistory.Entry) error {
		return fmt.Errorf("%s still has the entry %s: name its feed with --name, or remove it", c.place(name), e.ID)
	})
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		switch {
		case erased[id]:
		case c.DB == "":
			return fmt.Errorf("%s: there is no entry with the id %s", c.Out, id)
		default:
			p.Para("", "  ", c.Out+": there is no entry with the id "+id)
		}
	}
	return nil
}

// eraseFrom erases those of the entries in a published feed, and returns their ids. With
// all, the feed must have every entry. Without all, an entry may be missing: another feed
// has it, or an earlier run has already erased it here.
func (c *eraseCommand) eraseFrom(ctx context.Context, to *publish.Publisher, all bool) (ids []string, err error) {
	ids = slices.Clone(c.IDs)
	for len(ids) > 0 {
		err := to.Erase(ctx, ids...)
		entry, ok := errors.AsType[*publish.EntryError](err)
		switch {
		case !ok || !errors.Is(err, publish.ErrNotPublished):
			return ids, err
		case all:
			return nil, fmt.Errorf("%s: there is no entry with the id %s; nothing is erased", c.Out, entry.ID)
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == entry.ID })
	}
	return nil, nil
}

// publishers returns the Publishers of the feeds in the directory. Each subscription
// document says where the directory is served.
func (c *eraseCommand) publishers() (feeds []*publish.Publisher, err error) {
	out := c.output
	names := []string{"feed.atom", "feed.rss"}
	if c.Name != "" {
		names = []string{c.Name}
	}
	for _, name := range names {
		doc, err := publishedHead(out, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if doc == nil {
			continue
		}
		self, _ := doc.Links.Rel("self")
		base, ok := strings.CutSuffix(self.Href, "/"+name)
		if !ok {
			return nil, fmt.Errorf("%s: no link rel=self says where it is served", c.place(name))
		}
		feeds = append(feeds, &publish.Publisher{Output: out, Base: base, Name: name, Format: doc.Format})
	}
	if feeds == nil {
		return nil, fmt.Errorf("%s: nothing is published there: no %s", c.Out, strings.Join(names, ", no "))
	}
	return feeds, nil
}

// documentsIn returns the names of the documents in an output.
func documentsIn(out fs.FS) (names []string, err error) {
	err = fs.WalkDir(out, ".", func(name string, d fs.DirEntry, err error) error {
		switch ext := path.Ext(name); {
		case err != nil:
			return err
		case !d.IsDir() && (ext == ".atom" || ext == ".rss") && !strings.HasPrefix(d.Name(), "."):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// place names a document of the output for people.
func (c *eraseCommand) place(name string) string { return strings.TrimSuffix(c.Out, "/") + "/" + name }
