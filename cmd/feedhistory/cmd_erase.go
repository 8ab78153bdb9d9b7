package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

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
		p.Para("  - ", "    ", "the documents that the history server republished of "+terminal.WithoutUser(feed)+" are removed; remove them from caches, too")
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
		plan.Para("  ", "  ", "in "+terminal.WithoutUser(feed))
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
	var found []string
	for _, url := range feeds {
		records, err := store.Records(w.Ctx, url, []string{id})
		if err != nil {
			return "", err
		}
		if records[id] != nil {
			found = append(found, url)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", terminal.UsageError("several feeds have an entry with the id " + id + ": choose one with --feed: " + strings.Join(found, " "))
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
		self, _ := doc.Links.Rel(feedhistory.RelSelf)
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
