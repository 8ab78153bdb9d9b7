package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A publishCommand is the verb publish.
type publishCommand struct {
	Out            string `required:"" placeholder:"DIR|s3://BUCKET/PREFIX" help:"Directory for the feed's documents, which publish creates if necessary; or an object store, with credentials from AWS's environment variables."`
	Base           string `required:"" placeholder:"URL" help:"URL where that directory is served."`
	From           string `default:"-" placeholder:"FILE|URL|-" help:"The source: a file of JSON lines or a feed, a feed's address or an account such as @ada@example.org, or JSON lines on standard input (the default)."`
	Name           string `placeholder:"FILE" help:"Name of the subscription document (default: feed.atom or feed.rss)."`
	Format         string `default:"atom" enum:"atom,rss" placeholder:"FORMAT" help:"atom (the default) or rss."`
	Size           int    `placeholder:"N" help:"Number of entries in an archive (default: 100)."`
	By             string `enum:",year,month,day" default:"" placeholder:"PERIOD" help:"Make an archive for each year, month or day instead."`
	Title          string `help:"The feed's title."`
	Author         string `help:"The feed's author."`
	ID             string `help:"The feed's id (default: the subscription document's URL)."`
	Site           string `placeholder:"URL" help:"The website of the feed (default: the one named by the source; for --site-dir, the root of --base)."`
	SiteDir        string `placeholder:"DIR" help:"Directory of the built site: publish nothing if it lacks a page that an entry links to."`
	DryRun         bool   `help:"Print the files to be written, and write nothing."`
	Force          bool   `help:"Publish even if readers would see entries again, because --base or ids have changed, or would see older ones later, because a server failed."`
	IncludePrivate bool   `help:"Publish entries of private feeds, too; readers cannot see where they come from."`
	DB             string `name:"db" commandline:"" placeholder:"FILE|URL" help:"With a feed as --from: publish sync's mirror of it in this database."`

	deletionFlags
	objectStore
	command.NetworkFlags
	command.Budget

	was string // the feed's earlier address, if it differs and older archives link to it; else ""
}

// deletionFlags are the flags for entries the source no longer has.
type deletionFlags struct {
	AllowEmpty    bool             `help:"Accept a source without entries, such as that of a new site."`
	DeleteMissing bool             `help:"Publish the deletion of entries no longer in the source."`
	MaxDeletions  terminal.Maximum `placeholder:"N|all" help:"With --delete-missing: delete at most N entries, or any number (default: 5, or a fifth of the published entries if that is more). Lines from a pipe need it, if they do not come from --raw."`
}

// Help returns the text of --help before the flags.
func (c *publishCommand) Help() string {
	return "Run publish again at every build: it publishes new and changed entries, and leaves everything else as it is. " +
		"The directory must still contain the documents published before."
}

// Validate refuses invalid URLs and names, and incompatible flags.
func (c *publishCommand) Validate() error {
	base, err := url.Parse(c.Base)
	switch {
	case c.Base == "": // kong reports it
		return nil
	case err != nil || !terminal.IsWeb(c.Base):
		return errors.New("--base: not the URL of a directory: " + terminal.WithoutUser(c.Base))
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
	}
	if c.Site != "" && !terminal.IsWeb(c.Site) {
		return errors.New("--site: not the URL of a site: " + c.Site)
	}
	switch {
	case c.MaxDeletions.IsSet() && !c.DeleteMissing:
		return errors.New("--max-deletions is for --delete-missing")
	case c.DB != "" && c.From == "-":
		return errors.New("--db: give a mirrored feed as --from")
	}
	return nil
}

// Run publishes the new entries.
func (c *publishCommand) Run(w *command.World) (err error) {
	in, err := c.load(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	p := c.publisher()
	if p.Output, err = c.openOutput(c.Out, c.Log(w.Stderr)); err != nil {
		return err
	}
	published, err := publishedHead(p.Output, c.name())
	if err != nil {
		return err
	}
	links, err := c.linkCheck()
	if err != nil {
		return err
	}
	var dry *dryRun
	if c.DryRun {
		dry = &dryRun{Overlay: publish.Overlay{Output: p.Output}}
		p.Output = dry
	}
	done, err := p.Publish(w.Ctx, publish.Batch{
		Source: in.source(links), DeleteMissing: c.DeleteMissing, MaxDeletions: c.MaxDeletions.N, Check: c.guard(p, published),
		Ended: func(u *publish.Batch) (err error) {
			if err := c.checkSource(w, in); err != nil {
				return err
			}
			if p.Head, err = c.head(published, in); err != nil {
				return err
			}
			u.Deleted, u.Shown = in.deleted, in.shown
			return links.failure(w)
		},
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
	if in.partial || len(done.Lost) > 0 || len(done.Outdated) > 0 {
		return terminal.StatusError(terminal.ExitPartial)
	}
	return nil
}

// publisher returns the Publisher the flags ask for.
func (c *publishCommand) publisher() *publish.Publisher {
	p := &publish.Publisher{
		Base: c.Base, Name: c.Name, Format: feedhistory.FormatAtom,
		Split: compose.Split{Size: c.Size},
	}
	if c.Format == "rss" {
		p.Format = feedhistory.FormatRSS
	}
	if i := slices.Index([]string{"", "year", "month", "day"}, c.By); i > 0 {
		p.Split = compose.Split{Period: compose.Period(i)}
	}
	return p
}

// failure adds advice to an error of the Publisher; it returns other errors unchanged.
func (c *publishCommand) failure(err error) error {
	if many, ok := errors.AsType[*publish.TooManyDeletionsError](err); ok {
		return fmt.Errorf("--delete-missing: %w; nothing is published: if they are to be deleted, give --max-deletions %d", many, many.Missing)
	}
	switch {
	case errors.Is(err, publish.ErrLocked) && !inStore(c.Out):
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
func (c *publishCommand) head(head *feedhistory.Document, in *input) (*feedhistory.Document, error) {
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
	if !isNew && head.Subtitle == head.Title {
		head.Subtitle = "" // RSS requires a description, so this one is a copy of the title
	}
	head.Title = cmp.Or(c.Title, head.Title)
	if c.Site != "" {
		head.Links = slices.DeleteFunc(slices.Clone(head.Links), func(l feedhistory.Link) bool { return l.Rel == "alternate" })
		head.Links = append(head.Links, feedhistory.Link{Rel: "alternate", Href: c.Site, Type: "text/html"})
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
	what = terminal.Counts(what, terminal.Part{N: done.Deleted, Says: "deleted"})
	if done.Archives > 0 {
		what += " · " + terminal.Count(done.Archives, "archive", "archives") + " closed"
	}
	p.Para("", "", what)
	if done.Dated > 0 {
		p.Para("  - ", "    ", terminal.Count(done.Dated, "entry", "entries")+
			" got the current time, because the source gives no time, or no newer one for an edit")
	}
	if in.about.IsUnknown(to.URL()) {
		p.Para("  - ", "    ", "the input isn't marked complete, so the published feed won't claim to be; use fetch --raw or export --raw")
	}
	if terminal.IsURL(c.From) && !in.partial && in.head.Coverage != nil {
		p.Para("  - ", "    ", "the source belongs to another site and does not say that it has the whole history, so the published feed does not claim it")
	}
	if in.partial && !terminal.IsURL(c.From) {
		missing.Para("  - ", "    ", "the feed that the lines come from lacks something, and the published feed says so")
	}
	if in.templates > 0 {
		p.Para("  - ", "    ", terminal.Count(in.templates, "entry has", "entries have")+" unexpanded tags of the site generator in the text, which readers will see "+
			"(the first: "+in.firstTemplate+"); publish the generator's own feed instead")
	}
	for _, reason := range slices.Sorted(maps.Keys(in.left)) {
		p.Para("  - ", "    ", terminal.Count(in.left[reason], "entry", "entries")+" left out: "+reason)
	}
	if c.was != "" {
		p.Para("  - ", "    ", "the feed was published as "+c.was+" before, and the links of older archives lead there: redirect that directory to the new one")
	}
	dir := strings.TrimSuffix(c.Out, "/") + "/"
	for _, name := range done.Restored {
		p.Para("  - ", "    ", dir+name+" was missing, and has been restored")
	}
	if n := len(done.Outdated); n > 0 {
		missing.Para("  - ", "    ", terminal.Count(n, "deletion is", "deletions are")+" older than the published entry, so readers would keep it: not published (the first: "+
			terminal.Clean(done.Outdated[0])+"); the line deletes the entry now with \"deleted\": true")
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
func (c *publishCommand) dry(w *command.World, d *dryRun) error {
	p := terminal.NewPage(w.Stdout)
	for _, name := range d.Written {
		p.Line(terminal.Clean(strings.TrimSuffix(c.Out, "/") + "/" + name))
	}
	w.Tell("a dry run: nothing was written")
	return p.Err
}

func (c *publishCommand) name() string { return cmp.Or(c.Name, "feed."+c.Format) }

// An input is the content of a source. Its entries are read as they are published; the rest of it
// is known when they have been.
type input struct {
	entries iter.Seq2[*feedhistory.Entry, error]
	close   func() error
	n       int // number of entries read

	endBound func() // ends the bound of memory of lines, which are not kept; nil for other sources

	deleted []feedhistory.Tombstone
	head    *feedhistory.Document // describes the feed; nil if the source does not
	about   provenance            // of lines
	cut     *feedhistory.Gap      // where the reading was cut short; nil if it was not
	whole   bool                  // the source has no other entries
	shown   int                   // number of entries the source's own document shows; zero if unknown
	partial bool                  // something is known to be missing
	piped   bool                  // the source is lines from a pipe, which may have been cut
	left    map[string]int        // entries of an export left out, by reason

	templates     int    // entries with tags of a site's generator
	firstTemplate string // the id of the first of them
}

// From largeSource entries on, garbage is collected more often. From largestSource on, the bound grows by
// memoryOfEntry for each of them: their ids take most of it.
const (
	largeSource   = 1 << 16
	largestSource = 1 << 20
	memoryOfEntry = 100
)

// boundMemory lets garbage be until there is much of it, and returns a function to end that.
func boundMemory() (end func()) {
	percent, limit := debug.SetGCPercent(300), debug.SetMemoryLimit(80<<20)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// source yields the entries, and notes the facts to report about them.
func (in *input) source(links *linkCheck) iter.Seq2[*feedhistory.Entry, error] {
	return func(yield func(*feedhistory.Entry, error) bool) {
		for e, err := range in.entries {
			if err == nil {
				in.n++
				switch {
				case in.endBound == nil: // all entries are in memory
				case in.n == largeSource:
					debug.SetGCPercent(200)
				case in.n >= largestSource && in.n%largeSource == 0:
					debug.SetMemoryLimit(int64(in.n) * memoryOfEntry)
				}
				links.see(e)
				if in.endBound == nil {
					in.seeTemplates(e.ID, e.Content().Body)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// listed yields entries.
func listed(entries []*feedhistory.Entry) iter.Seq2[*feedhistory.Entry, error] {
	return func(yield func(*feedhistory.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// load reads the source named by --from.
func (c *publishCommand) load(w *command.World) (*input, error) {
	if c.DB == "" && terminal.IsAccount(c.From) {
		c.From = terminal.SourceAddress(c.From)
	}
	if info, err := os.Stat(c.From); c.DB == "" && err == nil && info.IsDir() {
		return nil, terminal.UsageError("--from: " + c.From + " is a directory: give a file of JSON lines, or the feed that the site's generator has written")
	}
	switch {
	case c.DB != "":
		return c.loadMirror(w)
	case terminal.IsURL(c.From):
		return c.loadHistory(w)
	}
	in, err := w.Open(c.From)
	if err != nil {
		return nil, show.Failure(c.From, err)
	}
	text := bufio.NewReaderSize(in, 64<<10)
	if isFeed(text) {
		defer in.Close()
		return c.loadFeed(text)
	}
	return c.loadLines(text, w.IsStream(c.From), in.Close), nil
}

// loadLines reads lines of JSON, with the records about the feeds they come from.
func (c *publishCommand) loadLines(text io.Reader, piped bool, close func() error) *input {
	loaded := &input{piped: piped, endBound: boundMemory()}
	loaded.close = func() error {
		loaded.endBound()
		return close()
	}
	about := &loaded.about
	read := func(r *publish.Line) (*feedhistory.Entry, error) {
		if r.Feed != "" {
			about.Feed(r.Feed)
		}
		if about.Private = about.Private || r.Private; about.Private || c.IncludePrivate {
			r.Redact()
		}
		if r.Deleted.Deleted {
			loaded.deleted = append(loaded.deleted, feedhistory.Tombstone{Ref: r.ID, When: r.Deleted.When})
			return nil, nil
		}
		loaded.seeTemplates(r.ID, r.Content.Body)
		return entryOf(r)
	}
	loaded.entries = func(yield func(*feedhistory.Entry, error) bool) {
		for r, err := range publish.Lines(text, about.see) {
			var e *feedhistory.Entry
			if err == nil {
				e, err = read(r)
			}
			if err != nil {
				yield(nil, show.Failure(c.From, err))
				return
			}
			if e != nil && !yield(e, nil) {
				return
			}
		}
		loaded.end(c)
	}
	return loaded
}

// end notes the facts in the lines about their feeds.
func (in *input) end(c *publishCommand) {
	in.cut = in.about.CutShort()
	in.whole = !slices.ContainsFunc(in.about.verdicts(), func(f *mirror.Feed) bool { return f.Verdict != feedhistory.VerdictWhole })
	if len(in.about.Feeds) > 0 {
		in.head = compose.History(&feedhistory.History{Head: in.about.head(c.IncludePrivate)}).Head() // a copy's
		in.head.Coverage = in.about.Coverage(c.publisher().URL())
		in.partial = in.head.Coverage != nil && terminal.ExitOf(in.head.Coverage.Verdict) != terminal.ExitOK
	}
}

// entryOf returns the entry described by a record.
func entryOf(r *publish.Line) (*feedhistory.Entry, error) {
	e, err := r.Entry()
	if err != nil {
		return nil, fmt.Errorf("the entry %s: %w", r.ID, err)
	}
	return e, nil
}

// isFeed reports whether an input is a feed document rather than lines of JSON: XML, an
// object over several lines or with the version of JSON Feed, or anything in UTF-16 or UTF-32.
func isFeed(in *bufio.Reader) bool {
	start, _ := in.Peek(4096)
	wide := bytes.IndexByte(start[:min(len(start), 4)], 0) >= 0
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n")
	line, _, _ := bytes.Cut(start, []byte("\n"))
	return wide || bytes.HasPrefix(start, []byte("<")) || bytes.Equal(bytes.TrimSpace(line), []byte("{")) ||
		bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte("jsonfeed.org/version/"))
}

// loadFeed reads a feed document. Its references resolve against its own URL if it
// names one, or else against the new feed's.
func (c *publishCommand) loadFeed(r io.Reader) (*input, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	base := c.publisher().URL()
	parser := feedhistory.Parser{Strict: true} // publish no part of a damaged document
	doc, err := parser.Parse(bytes.NewReader(text), base)
	if err != nil {
		return nil, show.Failure(c.From, err)
	}
	if self, ok := doc.Links.Rel("self"); ok && self.Href != base {
		if doc, err = parser.Parse(bytes.NewReader(text), self.Href); err != nil {
			return nil, show.Failure(c.From, err)
		}
	}
	older, more := doc.Links.Rel(doc.Kind().Older())
	left := map[string]int{}
	if strings.Contains(doc.Text(), "schemas.google.com/blogger/") || strings.Contains(doc.Text(), "draft>") {
		left = leaveOut(doc)
	}
	h, err := feedhistory.Merge(feedhistory.Readings(doc))
	if err != nil {
		return nil, err
	}
	if more && !c.Force {
		return nil, show.Failure(c.From, errors.New("the feed has older documents; give the feed's address instead, so that publish reads them: "+older.Href+
			"; or --force to publish the entries of this document alone"))
	}
	in := fromHistory(h)
	in.left, in.head.Links = left, doc.Links // the file may be the publisher's own
	return in, nil
}

// leaveOut removes the entries an export of a blog has besides its published posts, and counts
// them by reason: Blogger's has drafts, settings, and the comments and pages its feed of posts leaves
// out. Drafts are marked as in the Atom Publishing Protocol (RFC 5023 §13.1.1).
func leaveOut(doc *feedhistory.Document) map[string]int {
	left := map[string]int{}
	posts := slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return exportKind(e) == "posts" })
	doc.Entries = slices.DeleteFunc(doc.Entries, func(e *feedhistory.Entry) bool {
		kind := exportKind(e)
		out := kind == unpublished || posts && kind != "posts" && kind != ""
		if out {
			left[kind]++
		}
		return out
	})
	return left
}

// exportKind returns the kind of an entry in an export of Blogger, of either form; "" for others.
func exportKind(e *feedhistory.Entry) (kind string) {
	j := compose.NewEntryJSON(e)
	for _, c := range j.Categories {
		if name, ok := strings.CutPrefix(c.Term, "http://schemas.google.com/blogger/2008/kind#"); ok {
			kind = strings.TrimSuffix(name, "s") + "s"
		}
	}
	for _, x := range j.Extensions {
		isBlogger := x.Space == "http://schemas.google.com/blogger/2018"
		switch {
		case isBlogger && strings.HasSuffix(x.Name, ":type"):
			kind = strings.ToLower(x.Value) + "s"
		case isBlogger && strings.HasSuffix(x.Name, ":status") && x.Value != "LIVE",
			(x.Space == "http://www.w3.org/2007/app" || x.Space == "http://purl.org/atom/app#") && isDraft.MatchString(x.XML):
			return unpublished
		}
	}
	return kind
}

const unpublished = "drafts, or deleted"

var isDraft = regexp.MustCompile(`draft[^<>]*>\s*yes\s*<`)

// loadHistory fetches a feed's whole history.
func (c *publishCommand) loadHistory(w *command.World) (*input, error) {
	if err := terminal.CheckURL(c.From); err != nil {
		return nil, err
	}
	f := &feedFetch{fetchCommand: &fetchCommand{Format: "json"}, World: w, client: w.Client(w.Stderr)}
	f.client.Budget = c.Limits()
	var r *backfill.Recovery
	from, err := w.Resolve(f.client, terminal.WebAddress(c.From), func(address string) (err error) {
		r, err = f.history(address)
		return err
	})
	if w.Ctx.Err() != nil {
		return nil, fmt.Errorf("%w; %s", terminal.ErrInterrupted, c.unread())
	}
	if err != nil {
		return nil, show.Failure(from, err)
	}
	reportHistory(w, r.History, r.Verdict(), show.VerdictText(r.Verdict()))
	in := fromHistory(r.History)
	in.about.Private = f.isPrivate(from) || f.isPrivate(in.head.URL)
	in.cut = cutShort(r.History.Gaps, false)
	if in.head.Coverage == nil && !in.whole && terminal.SiteName(in.head.URL) != terminal.SiteName(c.Base) {
		// The feed of the same site may have everything without declaring it. The feed of
		// another site has only the history it declares.
		in.head.Coverage = &feedhistory.Coverage{Of: in.head.URL, Kind: r.History.Kind, Verdict: r.Verdict()}
	}
	if c.IncludePrivate {
		err = in.redact(r.History.Entries)
	}
	return in, err
}

// fromHistory returns a history as an input. The head is a copy's, and declares the known gaps.
func fromHistory(h *feedhistory.History) *input {
	return &input{
		entries: listed(h.Entries), close: func() error { return nil }, deleted: h.Deleted, head: compose.History(h).Head(), shown: publish.ShownIn(h),
		whole:   h.Verdict() == feedhistory.VerdictWhole,
		partial: terminal.ExitOf(h.Verdict()) != terminal.ExitOK,
	}
}

// publishedHead returns the published subscription document with a name; nil if there is
// none yet.
func publishedHead(files fs.FS, name string) (*feedhistory.Document, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parse(f, "")
}

// This file refuses sources that were cut short: archives are permanent, so entries
// published too late stay in the wrong place, and deletions reach every reader.

// checkSource refuses a source of which a part may be missing.
func (c *publishCommand) checkSource(w *command.World, in *input) error {
	if in.n+len(in.deleted) == 0 && !c.AllowEmpty {
		return show.Failure(c.From, errors.New("the source is empty, so nothing is published or deleted; --allow-empty accepts that"))
	}
	if in.about.Private && !c.IncludePrivate {
		return errors.New("the entries come from a private feed, and everybody can read what you publish; nothing is published: give --include-private if you mean it")
	}
	if in.cut != nil && !c.Force {
		show.PrintGap(terminal.NewPage(w.Stderr), in.cut)
		return errors.New("the history was not read to its end; " + c.unread())
	}
	raw := len(in.about.verdicts()) > 0
	if raw && in.piped && !in.about.Ended {
		return errors.New("the lines break off: those of --raw end with a record of the type end; nothing is published. " +
			"Run the command that writes them again; lines of an earlier version must be in a file")
	}
	if !c.DeleteMissing {
		return nil
	}
	switch {
	case !in.whole:
		return errors.New("--delete-missing: the source may have more entries than were read, so none is deleted")
	case c.MaxDeletions.IsSet():
	case raw && !in.about.Ended:
		return errors.New("--delete-missing: the lines do not end with the record that ends those of --raw, so they may have been cut short, " +
			"and none is deleted; write them again, or give --max-deletions")
	case in.piped && !raw:
		return errors.New("--delete-missing: lines from a pipe may have been cut short, so none is deleted; " +
			"give a file or --max-deletions, or pipe the lines of --raw")
	}
	return nil
}

// unread says why nothing is published before a history has been read, and how to read a
// long one.
func (c *publishCommand) unread() string {
	text := "nothing is published, because older entries would come after newer ones: "
	if !terminal.IsURL(c.From) {
		return text + "read on with sync, or fetch it again"
	}
	db := c.DB
	if db == "" {
		db = database.DefaultDB()
	}
	from := terminal.WithoutUser(c.From)
	return text + fmt.Sprintf("try again, or mirror a long history first: feedhistory sync %s continues where it was cut short; "+
		"when it has read everything, feedhistory publish --from %s --db %s", from, from, db)
}

// loadMirror reads a feed from a mirror, as export --raw writes it.
func (c *publishCommand) loadMirror(w *command.World) (in *input, err error) {
	location := &database.Location{DB: c.DB}
	store, err := location.Read(w)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	feed, err := location.Feed(w.Ctx, store, c.From, false)
	if err != nil {
		return nil, err
	}
	if _, err := feed.Document(); err != nil && feed.Entries == 0 {
		return nil, fmt.Errorf("%s: the feed could not be read yet: %s", terminal.WithoutUser(c.From), feed.Error)
	}
	c.From = feed.URL
	export := &exportCommand{Location: *location}
	feeds, err := location.FeedsOrAll(w.Ctx, store, []string{feed.URL})
	if err != nil {
		return nil, err
	}
	lines, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out.CloseWithError(export.exportRaw(w.Ctx, out, store, feeds))
	}()
	in = c.loadLines(lines, false, func() error {
		err := lines.Close()
		<-ended
		return errors.Join(err, store.Close())
	})
	entries := in.entries
	in.entries = func(yield func(*feedhistory.Entry, error) bool) {
		for e, err := range entries {
			if !yield(e, location.Failure(err)) {
				return
			}
		}
	}
	return in, nil
}

// redact removes the address of a private feed.
func (in *input) redact(entries []*feedhistory.Entry) error {
	feed, declared := in.head.URL, in.head.Coverage
	in.head = describe(show.HeadFeed(feed, in.head), true)
	if declared != nil {
		in.head.Coverage = &feedhistory.Coverage{Kind: declared.Kind, Verdict: declared.Verdict}
	}
	redacted := make([]*feedhistory.Entry, len(entries))
	for i, e := range entries {
		r := publish.NewLine(e)
		r.Feed = feed
		r.Redact()
		var err error
		if redacted[i], err = entryOf(r); err != nil {
			return err
		}
	}
	in.entries = listed(redacted)
	return nil
}

// describe returns the description of a feed, without any address of the feed if it is
// private; an empty one if there is none.
func describe(f *mirror.Feed, private bool) *feedhistory.Document {
	one := *f
	one.Private = private
	head, err := one.Redacted().Document()
	if err != nil {
		return &feedhistory.Document{}
	}
	if private {
		head.URL, head.ID, head.Links = "", "", nil
	}
	return head
}

// This file has the checks before publishing, which is permanent.

// guard returns a function to refuse updates after which readers would show entries
// again, given the published head; nil if there is nothing to check.
func (c *publishCommand) guard(p *publish.Publisher, head *feedhistory.Document) func(publish.Report) error {
	if head == nil {
		return nil
	}
	self, _ := head.Links.Rel("self")
	moved := self.Href != "" && self.Href != p.URL()
	if _, hasArchives := head.Links.Rel("prev-archive"); moved && hasArchives {
		c.was = self.Href
	}
	if c.Force {
		return nil
	}
	return func(u publish.Report) error {
		switch again := u.Changed + min(u.New, u.Missing); {
		case moved && again > 0:
			return fmt.Errorf("--base: the feed is published as %s; as %s, %s would get a new date or id, and readers would see them again; "+
				"nothing is published: give the same --base as before, or --force if you mean it", self.Href, p.URL(), terminal.Count(again, "entry", "entries"))
		case u.Renamed > 0:
			return fmt.Errorf("%s would be published again with another id and a new date, although their addresses are already published; "+
				"nothing is published: give them the ids they had before (and the same --base), or --force if you mean it", terminal.Count(u.Renamed, "entry", "entries"))
		}
		return nil
	}
}

// siteURL returns the address of the website whose pages the entries are.
func (c *publishCommand) siteURL() string {
	if c.Site != "" {
		return c.Site
	}
	if base, err := url.Parse(c.Base); err == nil {
		return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/"}).String()
	}
	return ""
}

// A linkCheck finds the entries whose pages are missing in the built site.
type linkCheck struct {
	dir     string
	site    *url.URL
	dead    []string
	checked int
	entries int
}

// linkCheck returns the check of the flags; nil without one.
func (c *publishCommand) linkCheck() (*linkCheck, error) {
	if c.SiteDir == "" {
		return nil, nil
	}
	if info, err := os.Stat(c.SiteDir); err != nil || !info.IsDir() {
		return nil, errors.New("--site-dir: " + c.SiteDir + ": there is no such directory")
	}
	site, err := url.Parse(c.siteURL())
	return &linkCheck{dir: c.SiteDir, site: site}, err
}

// see checks the link of an entry.
func (l *linkCheck) see(e *feedhistory.Entry) {
	if l == nil {
		return
	}
	l.entries++
	link, ok := e.Links.Rel("alternate")
	u, err := url.Parse(link.Href)
	root := strings.TrimSuffix(l.site.Path, "/")
	if !ok || err == nil && (!strings.EqualFold(u.Host, l.site.Host) || !strings.HasPrefix(u.Path+"/", root+"/")) {
		return // the page is on another site
	}
	if l.checked++; err != nil || !hasPage(os.DirFS(l.dir), strings.TrimPrefix(u.Path, root)) {
		l.dead = append(l.dead, link.Href)
	}
}

// failure refuses the source if pages are missing.
func (l *linkCheck) failure(w *command.World) error {
	switch {
	case l == nil:
	case len(l.dead) > 0:
		p := terminal.NewPage(w.Stderr)
		p.Para("", "", fmt.Sprintf("%d of %s point to missing pages; nothing is published:", len(l.dead), terminal.Count(l.checked, "link", "links")))
		for _, link := range l.dead[:min(len(l.dead), mostDead)] {
			p.Line("  " + terminal.Clean(link))
		}
		if more := len(l.dead) - mostDead; more > 0 {
			p.Line(fmt.Sprintf("  and %d more", more))
		}
		return fmt.Errorf("%s: is the site built? Leave entries without a page out of the source", l.dir)
	case l.checked == 0 && l.entries > 0:
		return fmt.Errorf("--site-dir: no entry has a link into the site %s; give --site", l.site)
	}
	return nil
}

// mostDead is the maximum number of links to missing pages in a message.
const mostDead = 10

// hasPage reports whether a web server would find a page of a site: a file, the index of a
// directory or, as on most servers, a file whose extension .html the name leaves out. It
// distinguishes upper and lower case, even if the file system does not.
func hasPage(site fs.FS, name string) bool {
	dir := strings.HasSuffix(name, "/") || name == ""
	name = strings.Trim(path.Clean("/"+name), "/")
	candidates := []string{name, name + ".html", path.Join(name, "index.html"), path.Join(name, "index.htm")}
	if dir {
		candidates = candidates[2:]
	}
	return slices.ContainsFunc(candidates, func(file string) bool {
		info, err := fs.Stat(site, file)
		return err == nil && !info.IsDir() && isNamed(site, file)
	})
}

func isNamed(site fs.FS, file string) bool {
	entries, err := fs.ReadDir(site, path.Dir(file))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(file) })
}

var (
	codeBlocks = regexp.MustCompile(`(?s)<pre\b.*?</pre>|<code\b.*?</code>`)
	templates  = regexp.MustCompile(`\{\{(?:<|&lt;|%|-?\s*[a-z_]+[\s.|}])|\{%-?\s*\w`)
)

// seeTemplates counts an entry with tags a site generator should have replaced: Hugo's shortcodes,
// and Liquid.
func (in *input) seeTemplates(id, body string) {
	if !strings.Contains(body, "{{") && !strings.Contains(body, "{%") {
		return // at a hundredth of the time
	}
	if templates.MatchString(codeBlocks.ReplaceAllString(body, "")) {
		in.templates++
		in.firstTemplate = cmp.Or(in.firstTemplate, id)
	}
}

// A provenance records the feeds that lines of JSON come from. With --raw, fetch and
// export print lines with the verdict and the gaps.
type provenance struct {
	Feeds   map[string]*mirror.Feed // by URL; nil for a feed whose verdict no line has
	heads   map[string]*show.Head   // of the latter, by URL
	Private bool                    // one of the feeds is private: its address, and those of its documents, may be secrets
	Ended   bool                    // the last line ends the lines of --raw
}

// The lines about a feed. Two expressions, each with a beginning to search for, take a three-hundredth
// of the time of one.
var aboutFeed, hasHead = regexp.MustCompile(`"type"\s*:\s*"(feed|gap|end)"`), regexp.MustCompile(`"head"\s*:`)

// see reads a line, if it is about a feed or ends the lines.
func (p *provenance) see(line []byte) {
	if p.Ended = false; !aboutFeed.Match(line) && !hasHead.Match(line) {
		return
	}
	var l struct {
		Type    string       `json:"type"`
		Feed    string       `json:"feed"`
		Private bool         `json:"private"`
		State   *provenState `json:"state"`
		Gap     *provenGap   `json:"gap"`
		Pending *provenGap   `json:"pending"` // in lines of earlier versions
		Head    *show.Head   `json:"head"`
	}
	err := json.Unmarshal(line, &l)
	p.Ended = err == nil && l.Type == "end"
	if err != nil || l.Feed == "" {
		return // nothing else reads the line either
	}
	if l.Private || l.State != nil && l.State.feed.Private {
		p.Private = true
	}
	switch f := p.Feed(l.Feed); {
	case l.Type == "feed" && l.State != nil && l.State.saysVerdict:
		l.State.feed.URL = l.Feed
		p.Feeds[l.Feed] = &l.State.feed
	case l.Head != nil:
		if p.heads == nil {
			p.heads = map[string]*show.Head{}
		}
		p.heads[l.Feed] = l.Head
	case l.Type == "gap" && f != nil && cmp.Or(l.Gap, l.Pending) != nil:
		gap := cmp.Or(l.Gap, l.Pending)
		gap.Err = errors.New(gap.Message)
		f.Ledger.Add(&gap.Gap)
	}
}

// A provenGap is a gap of a feed in a line: the Message is the text of its Err.
type provenGap struct {
	feedhistory.Gap
	Message string
}

// A provenState is the state of a feed in a line.
type provenState struct {
	feed        mirror.Feed
	saysVerdict bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *provenState) UnmarshalJSON(text []byte) error {
	var says struct{ Verdict *feedhistory.Verdict }
	err := errors.Join(json.Unmarshal(text, &says), json.Unmarshal(text, &s.feed))
	s.saysVerdict = says.Verdict != nil
	return err
}

// Feed returns the feed with a URL; nil if no line has its verdict. It records the
// mention of the feed.
func (p *provenance) Feed(url string) *mirror.Feed {
	f, ok := p.Feeds[url]
	if !ok {
		if p.Feeds == nil {
			p.Feeds = map[string]*mirror.Feed{}
		}
		p.Feeds[url] = nil
	}
	return f
}

// head returns the description of the feed the lines come from, without its addresses if it is
// private; an empty one if they come from several, or do not describe it.
func (p *provenance) head(private bool) *feedhistory.Document {
	if len(p.Feeds) != 1 {
		return &feedhistory.Document{}
	}
	url := slices.Collect(maps.Keys(p.Feeds))[0]
	f, described := p.Feeds[url], p.heads[url].Document()
	if private = private || p.Private || f != nil && f.Private; f == nil && !private {
		return described
	}
	return describe(cmp.Or(f, show.HeadFeed(url, described)), private)
}

// verdicts returns the feeds whose verdicts the lines have, in the order of their URLs: all of
// them in those of --raw.
func (p *provenance) verdicts() (feeds []*mirror.Feed) {
	for _, url := range slices.Sorted(maps.Keys(p.Feeds)) {
		if f := p.Feeds[url]; f != nil {
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// CutShort returns the gap where the reading of a feed was cut short and can go on, so
// that older entries may still come; nil if there is none.
func (p *provenance) CutShort() *feedhistory.Gap {
	for _, f := range p.verdicts() {
		if gap := cutShort(f.Ledger.Gaps(), f.Unfinished || f.More); gap != nil {
			return gap
		}
	}
	return nil
}

// cutShort returns the first of the gaps of a feed where the reading was cut short and
// can go on. If there is none, but a poll is unfinished, it returns a gap for that;
// otherwise nil: the feed has been read to its end.
func cutShort(gaps []*feedhistory.Gap, unfinished bool) *feedhistory.Gap {
	i := slices.IndexFunc(gaps, isPassing)
	switch {
	case i >= 0:
		return gaps[i]
	case unfinished:
		return &feedhistory.Gap{Reason: feedhistory.ReasonInterrupted, Err: errors.New("its sync is under way, or was interrupted")}
	}
	return nil
}

// passingStatus matches the text of an answer that may be another one the next time.
var passingStatus = regexp.MustCompile(`(^|: )(408|425|429|5\d\d) `)

// isPassing reports whether the document of a gap may come the next time.
func isPassing(g *feedhistory.Gap) bool {
	switch g.Reason {
	case feedhistory.ReasonInterrupted, feedhistory.ReasonNetwork:
		return true
	case feedhistory.ReasonBudget:
		return !errors.Is(g.Err, mirror.ErrQuota)
	case feedhistory.ReasonStatus:
		return g.Err != nil && passingStatus.MatchString(feedhistory.Describe(g.Err))
	}
	return false
}

// mostGaps is the maximum number of gaps that readers take from a feed's Coverage.
const mostGaps = 100

// others returns the URLs of the feeds other than the published one, sorted.
func (p *provenance) others(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Feeds)), func(url string) bool { return url == own })
}

// Coverage returns the declaration, in a feed made of the lines, about the feeds from
// which they come; nil if these feeds are whole, or if there is no feed other than the
// published one, own. For a feed without a verdict, it assumes a window.
func (p *provenance) Coverage(own string) *feedhistory.Coverage {
	whole := true
	c := &feedhistory.Coverage{Kind: feedhistory.KindPlain, Verdict: feedhistory.VerdictWhole}
	others := p.others(own)
	for _, url := range others {
		verdict := feedhistory.VerdictWindow
		if f := p.Feeds[url]; f != nil {
			verdict = f.Verdict
			c.Gaps = append(c.Gaps, f.Ledger.Gaps()...)
		}
		c.Verdict = min(c.Verdict, verdict)
		whole = whole && verdict == feedhistory.VerdictWhole
	}
	if whole {
		return nil
	}
	c.Gaps = c.Gaps[:min(len(c.Gaps), mostGaps)]
	if p.Private {
		return &feedhistory.Coverage{Kind: feedhistory.KindPlain, Verdict: c.Verdict} // neither addresses nor errors, which may quote them
	}
	if len(others) == 1 {
		if c.Of = others[0]; p.Feeds[c.Of] != nil {
			c.Kind = p.Feeds[c.Of].Kind
		}
	}
	return c
}

// IsUnknown reports whether the lines have no verdict on one of the other feeds from which
// they come.
func (p *provenance) IsUnknown(own string) bool {
	return slices.ContainsFunc(p.others(own), func(url string) bool { return p.Feeds[url] == nil })
}
