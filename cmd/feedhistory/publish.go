package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/markdown"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/outputs"
	"github.com/feedhistory/feedhistory/cmd/internal/recovery"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A publishCommand is the verb publish.
type publishCommand struct {
	Out            string `required:"" placeholder:"DIR|s3://BUCKET/PREFIX" help:"Directory for the feed's documents, which publish creates if necessary; or an object store, with credentials from AWS's environment variables."`
	Base           string `required:"" placeholder:"URL" help:"URL where that directory is served."`
	From           string `default:"-" placeholder:"DIR|FILE|URL|-" help:"The source: a directory of Markdown, a file of JSON lines or a feed, a feed's address, or JSON lines on standard input (the default)."`
	Name           string `placeholder:"FILE" help:"Name of the subscription document (default: feed.atom or feed.rss)."`
	Format         string `default:"atom" enum:"atom,rss" placeholder:"FORMAT" help:"atom (the default) or rss."`
	Size           int    `placeholder:"N" help:"Number of entries in an archive (default: 100)."`
	By             string `enum:",year,month,day" default:"" placeholder:"PERIOD" help:"Make an archive for each year, month or day instead."`
	Title          string `help:"The feed's title."`
	Author         string `help:"The feed's author."`
	ID             string `help:"The feed's id (default: the subscription document's URL)."`
	Link           string `placeholder:"PATTERN" help:"Address of an article in Markdown, with {path}, {slug}, {categories}, {year}, {month}, {day}."`
	EntryID        string `placeholder:"PATTERN" help:"Id of an article in Markdown, with the same names in braces (default: its address)."`
	Site           string `placeholder:"URL" help:"The website of the feed (default: the one named by the source; for --site-dir, the root of --base)."`
	SiteDir        string `placeholder:"DIR" help:"Directory of the built site: publish nothing if it lacks a page that an entry links to."`
	Timezone       string `placeholder:"ZONE" help:"Time zone of dates in addresses, and of times in Markdown without a zone, such as Europe/Vienna (default: UTC)."`
	DryRun         bool   `help:"Print the files to be written, and write nothing."`
	Force          bool   `help:"Publish even if readers would see entries again, because --base or ids have changed, or would see older ones later, because a server failed."`
	IncludePrivate bool   `help:"Publish entries of private feeds, too; readers cannot see where they come from."`
	DB             string `name:"db" commandline:"" placeholder:"FILE|URL" help:"With a feed's URL as --from: publish sync's mirror of it in this database."`

	deletionFlags
	outputs.Store
	network.Flags
	recovery.Budget

	was string // the feed's earlier address, if it differs and older archives link to it; else ""
}

// deletionFlags are the flags for entries the source no longer has.
type deletionFlags struct {
	DeleteMissing bool             `help:"Publish the deletion of entries no longer in the source."`
	MaxDeletions  argument.Maximum `placeholder:"N|all" help:"With --delete-missing: delete at most N entries, or any number (default: 5, or a fifth of the published entries if that is more). Lines from a pipe need it, if they do not come from --raw."`
}

// Help returns the text of --help before the flags.
func (c *publishCommand) Help() string {
	return "Run publish again at every build: it publishes new and changed entries, and leaves everything else as it is. " +
		"The directory must still contain the documents published before."
}

// Validate refuses invalid URLs, names, zones and patterns, and incompatible flags.
func (c *publishCommand) Validate() error {
	base, err := url.Parse(c.Base)
	switch {
	case c.Base == "": // kong reports it
		return nil
	case err != nil || !argument.IsWeb(c.Base):
		return errors.New("--base: not the URL of a directory: " + argument.WithoutUser(c.Base))
	case base.User != nil:
		return errors.New("--base: a user or password in the URL, which everybody could read in the feed")
	case base.RawQuery != "" || base.ForceQuery || strings.Contains(c.Base, "#"):
		return errors.New("--base: a directory's URL has no query and no fragment: " + c.Base)
	case c.Name != "" && (!fs.ValidPath(c.Name) || c.Name == "."):
		return errors.New("--name: a file's name, or a path below the directory that --out names: " + c.Name)
	case c.Name != "" && path.Ext(c.Name) == "":
		return errors.New("--name: give it an extension, such as feed.atom: " + c.Name)
	case c.Size < 0:
		return errors.New("--size: at least 1")
	case c.Size > 0 && c.By != "":
		return errors.New("--size and --by exclude each other")
	}
	if c.Site != "" && !argument.IsWeb(c.Site) {
		return errors.New("--site: not the URL of a site: " + c.Site)
	}
	if _, err := time.LoadLocation(c.Timezone); err != nil {
		return errors.New("--timezone: there is no such zone: " + c.Timezone)
	}
	switch {
	case c.MaxDeletions.IsSet() && !c.DeleteMissing:
		return errors.New("--max-deletions is for --delete-missing")
	case c.DB != "" && !argument.IsURL(c.From):
		return errors.New("--db: give the URL of a mirrored feed as --from")
	}
	return errors.Join(c.Budget.Check(), markdown.CheckPattern("--link", c.Link), markdown.CheckPattern("--entry-id", c.EntryID))
}

// Run publishes the new entries.
func (c *publishCommand) Run(w *command.World) error {
	in, err := c.load(w)
	if err != nil {
		return err
	}
	if err := c.checkSource(w, in); err != nil {
		return err
	}
	p := c.publisher()
	if p.Output, err = c.OpenOutput(c.Out, c.Log(w.Stderr)); err != nil {
		return err
	}
	if p.Head, err = c.head(p, in); err != nil {
		return err
	}
	if err := c.checkLinks(w, in); err != nil {
		return err
	}
	check, err := c.guard(p)
	if err != nil {
		return err
	}
	var dry *outputs.DryRun
	if c.DryRun {
		dry = outputs.NewDryRun(p.Output)
		p.Output = dry
	}
	done, err := p.Publish(w.Ctx, publish.Batch{
		Entries: in.entries, Deleted: in.deleted, Shown: in.shown, DeleteMissing: c.DeleteMissing, MaxDeletions: c.MaxDeletions.N, Check: check,
	})
	if err != nil {
		return c.failure(err)
	}
	c.published(w, p, in, done)
	if dry != nil {
		if err := c.dry(w, dry); err != nil {
			return err
		}
	}
	if in.partial || len(done.Lost) > 0 {
		return exit.StatusError(exit.Partial)
	}
	return nil
}

// publisher returns the Publisher the flags ask for.
func (c *publishCommand) publisher() *publish.Publisher {
	p := &publish.Publisher{
		Base: c.Base, Name: c.Name, Format: feedhistory.Atom,
		Split: feedhistory.Split{Size: c.Size},
	}
	if c.Format == "rss" {
		p.Format = feedhistory.RSS
	}
	if i := slices.Index([]string{"", "year", "month", "day"}, c.By); i > 0 {
		p.Split = feedhistory.Split{Period: feedhistory.Period(i)}
	}
	return p
}

// failure adds advice to an error of the Publisher; it returns other errors unchanged.
func (c *publishCommand) failure(err error) error {
	if many, ok := errors.AsType[*publish.TooManyDeletionsError](err); ok {
		return fmt.Errorf("--delete-missing: %w; nothing is published: if they are to be deleted, give --max-deletions %d", many, many.Missing)
	}
	switch {
	case errors.Is(err, publish.ErrLocked) && !outputs.InStore(c.Out):
		return errors.New(c.Out + ": another process is publishing there; try again when it has finished")
	case errors.Is(err, s3.ErrLost): // which the unlocking reports again
		return errors.New(c.Out + ": the lock was lost, because this process or its network was held up, and another one may be publishing there; publish again")
	case errors.Is(err, publish.ErrEmptySource):
		return fmt.Errorf("--delete-missing: %w; nothing is published", err)
	case errors.Is(err, publish.ErrForeign):
		return fmt.Errorf("%s: %w; move it elsewhere, and give it as --from", c.Out, err)
	}
	return err
}

// head returns the description of the feed: the published one or, for a new feed, the
// source's, with the changes of the flags. It returns nil if the published one does not
// change.
func (c *publishCommand) head(p *publish.Publisher, in *input) (*feedhistory.Document, error) {
	head, err := publishedHead(p.Output, c.name())
	if err != nil {
		return nil, err
	}
	isNew := head == nil
	if isNew {
		head = cmp.Or(in.head, &feedhistory.Document{})
		head.Title = cmp.Or(head.Title, c.Base)
	}
	sameCoverage := in.head == nil || in.head.Coverage == nil && head.Coverage == nil
	if !isNew && sameCoverage && c.Title+c.Author+c.ID+c.Site == "" {
		return nil, nil
	}
	if in.head != nil {
		head.Coverage = in.head.Coverage // the coverage may have changed
	}
	if c.ID != "" && head.ID != "" && !isNew && head.ID != c.ID {
		return nil, fmt.Errorf("--id: the feed is published with the id %s, and an id never changes", head.ID)
	}
	head.ID = cmp.Or(c.ID, head.ID)
	if head.Subtitle == head.Title {
		head.Subtitle = "" // RSS requires a description, so this one is a copy of the title
	}
	head.Title = cmp.Or(c.Title, head.Title)
	if c.Site != "" {
		head.Links = slices.DeleteFunc(slices.Clone(head.Links), func(l feedhistory.Link) bool { return l.Rel == feedhistory.RelAlternate })
		head.Links = append(head.Links, feedhistory.Link{Rel: feedhistory.RelAlternate, Href: c.Site, Type: "text/html"})
	}
	if c.Author != "" {
		head.Authors = []feedhistory.Person{{Name: c.Author}}
	}
	return head, nil
}

// published reports the published entries, and where they are.
func (c *publishCommand) published(w *command.World, to *publish.Publisher, in *input, done *publish.Report) {
	p, missing := terminal.NewPage(w.Asides()), terminal.NewPage(w.Stderr)
	what := fmt.Sprintf("%d new · %d changed · %d unchanged", done.New, done.Changed, done.Unchanged)
	if done.Deleted > 0 {
		what += fmt.Sprintf(" · %d deleted", done.Deleted)
	}
	if done.Archives > 0 {
		what += " · " + terminal.Count(done.Archives, "archive", "archives") + " closed"
	}
	p.Para("", "", what)
	if done.Dated > 0 {
		p.Para("  - ", "    ", terminal.Count(done.Dated, "entry", "entries")+
			" got the current time, because the source gives no time, or no newer one for an edit")
	}
	if in.about.IsUnknown(to.URL()) {
		p.Para("  - ", "    ", "the lines do not say whether they are the whole history of the feed that they come from, so the published feed "+
			"does not claim it; the lines of fetch --raw and export --raw say it")
	}
	if argument.IsURL(c.From) && !in.partial && in.head.Coverage != nil {
		p.Para("  - ", "    ", "the source belongs to another site and does not say that it has the whole history, so the published feed does not claim it")
	}
	if in.partial && !argument.IsURL(c.From) {
		missing.Para("  - ", "    ", "the feed that the lines come from lacks something, and the published feed says so")
	}
	if n, first := in.withTemplates(); n > 0 {
		p.Para("  - ", "    ", terminal.Count(n, "entry has", "entries have")+" unexpanded tags of the site generator in the text, which readers will see "+
			"(the first: "+first+"); publish the generator's own feed instead")
	}
	for _, reason := range []string{markdown.LeftPlain, markdown.LeftDraft, markdown.LeftFuture, markdown.LeftExpired} {
		if n := in.left[reason]; n > 0 {
			p.Para("  - ", "    ", terminal.Count(n, "file", "files")+" left out: "+reason)
		}
	}
	if c.was != "" {
		p.Para("  - ", "    ", "the feed was published as "+c.was+" before, and the links of older archives lead there: redirect that directory to the new one")
	}
	dir := strings.TrimSuffix(c.Out, "/") + "/"
	for _, name := range done.Restored {
		p.Para("  - ", "    ", dir+name+" was missing, and has been restored")
	}
	for _, name := range done.Lost {
		missing.Para("  - ", "    ", dir+name+" is missing, and the source no longer has exactly its entries: new readers "+
			"cannot reach older entries; restore the file from a backup, or from the deployed site")
	}
	if done.Missing > 0 {
		p.Para("  - ", "    ", terminal.Count(done.Missing, "published entry is", "published entries are")+
			" not in the source; --delete-missing would publish the deletion")
	}
	if done.New+done.Changed+done.Unchanged+done.Missing == 0 {
		p.Para("", "", "there is nothing to publish: a feed needs at least one entry")
		return
	}
	p.Para("", "", "the feed: "+to.URL()+" ("+dir+c.name()+")")
}

// dry lists the files to be written.
func (c *publishCommand) dry(w *command.World, d *outputs.DryRun) error {
	p := terminal.NewPage(w.Stdout)
	for _, name := range d.Written {
		p.Line(terminal.Clean(strings.TrimSuffix(c.Out, "/") + "/" + name))
	}
	w.Tell("a dry run: nothing was written")
	return p.Err
}

func (c *publishCommand) name() string { return cmp.Or(c.Name, "feed."+c.Format) }

// now returns the current time, in UTC and whole seconds. Articles with a later time are
// not published yet.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
