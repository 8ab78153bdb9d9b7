package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A listCommand is the verb list.
type listCommand struct {
	database.Location
	URL     string `arg:"" optional:"" name:"URL" help:"Show this feed in full, with each gap and how to close it."`
	Due     bool   `help:"List only feeds due for a poll: their time has come, or an earlier poll left something unread."`
	Partial bool   `help:"List only feeds known to be incomplete."`
	JSON    bool   `name:"json" help:"Print JSON Lines (one object a line): each feed."`
}

// Help returns the text of --help before the flags.
func (c *listCommand) Help() string {
	return "The verdict describes the mirror now. whole: every entry the feed says it has, or its server counted at the time shown; " +
		"window: the latest entries, because the feed does not say whether there were earlier ones; lossy: all pages, but entries may have slipped through between them; " +
		"partial (N): something is known to be missing, with the number of gaps."
}

// Validate refuses flags for the whole list if the arguments ask for one feed.
func (c *listCommand) Validate() error {
	if c.URL != "" && (c.Due || c.Partial) {
		return errors.New("--due and --partial are for the list of all feeds")
	}
	return nil
}

// Run lists the feeds, or shows one in full.
func (c *listCommand) Run(w *command.World) (err error) {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	l := &listing{ctx: w.Ctx, store: store, page: &terminal.Page{W: out, Width: terminal.Width(w.Stdout)}, now: time.Now()}
	if c.URL != "" {
		err = c.one(l)
	} else {
		err = c.all(l)
	}
	return cmp.Or(c.Failure(err), l.page.Err, out.Flush())
}

// A listing is a list in progress.
type listing struct {
	ctx   context.Context
	store *database.Store
	page  *terminal.Page
	now   time.Time
	feeds int // the number of listed feeds so far
}

func (c *listCommand) one(l *listing) error {
	f, err := l.store.Feed(l.ctx, argument.FeedName(c.URL))
	if err != nil {
		return c.Unknown(c.URL, err)
	}
	newest, err := l.newest(f)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(l.page.W, feedJSON(f, newest[f.URL]))
	}
	showFeed(l.page, f, newest[f.URL], l.now)
	return nil
}

// together is the number of feeds in one query for their newest entries.
const together = 256

func (c *listCommand) all(l *listing) error {
	var feeds []*mirror.Feed
	for f, err := range l.store.Feeds(l.ctx, mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		if c.Partial && (f.Verdict != feedhistory.Partial || f.Alias != "") || c.Due && !f.Due(l.now) {
			continue
		}
		if feeds = append(feeds, f); len(feeds) == together {
			if err := c.add(l, feeds); err != nil {
				return err
			}
			feeds = feeds[:0]
		}
	}
	if err := c.add(l, feeds); err != nil {
		return err
	}
	if l.feeds == 0 && !c.JSON {
		l.page.Line(c.none())
	}
	return nil
}

func (c *listCommand) none() string {
	switch {
	case c.Due:
		return "No feed is due."
	case c.Partial:
		return "No feed is known to be incomplete."
	}
	return "There is no feed in " + c.Place() + " yet: feedhistory sync URL adds one."
}

// add adds feeds to the list.
func (c *listCommand) add(l *listing, feeds []*mirror.Feed) error {
	newest, err := l.newest(feeds...)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err := c.addOne(l, f, newest[f.URL]); err != nil {
			return err
		}
	}
	return nil
}

func (c *listCommand) addOne(l *listing, f *mirror.Feed, newest time.Time) error {
	if c.JSON {
		return terminal.WriteJSON(l.page.W, feedJSON(f, newest))
	}
	if l.page.Fits(tableWidth) && l.feeds == 0 {
		l.page.Line(row("VERDICT", "ENTRIES", "NEWEST", "POLLED", "NEXT", "FEED"))
	}
	l.feeds++
	if l.page.Fits(tableWidth) {
		l.page.Line(row(verdictOf(f), fmt.Sprint(f.Entries), day(newest), ago(f.Polled, l.now), nextOf(f, l.now), terminal.Clean(f.URL)))
	} else {
		l.page.Line(terminal.Clean(f.URL))
		l.page.Para("  ", "  ", fmt.Sprintf("%s · %s · newest %s · polled %s · next %s", verdictOf(f),
			terminal.Count(int(f.Entries), "entry", "entries"), day(newest), ago(f.Polled, l.now), nextOf(f, l.now)))
	}
	if f.Failures > 0 {
		l.page.Para("  - ", "    ", failuresOf(f))
	}
	return l.page.Err
}

// tableWidth is the width of the list without the URLs.
const tableWidth = 50

// row returns a line of the list. The URL comes last and is never shortened, so people
// can copy it.
func row(verdict, entries, newest, polled, next, url string) string {
	return fmt.Sprintf("%-12s %8s  %-10s %6s %6s  %s", verdict, entries, newest, polled, next, url)
}

// newest returns the time of the newest entry of each of the feeds with entries, by URL.
func (l *listing) newest(feeds ...*mirror.Feed) (map[string]time.Time, error) {
	var urls []string
	for _, f := range feeds {
		if f.Entries > 0 {
			urls = append(urls, f.URL)
		}
	}
	if urls == nil {
		return nil, nil
	}
	return l.store.Newest(l.ctx, urls)
}

// verdictOf returns a feed's verdict for the list, with the number of gaps.
func verdictOf(f *mirror.Feed) string {
	if f.Alias != "" {
		return "alias"
	}
	if gaps := len(f.Missing()); gaps > 0 {
		return fmt.Sprintf("%s (%d)", f.Verdict, gaps)
	}
	return f.Verdict.String()
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateOnly)
}

// nextOf returns one word for when sync polls a feed next, or why it does not.
func nextOf(f *mirror.Feed, now time.Time) string {
	switch {
	case f.Gone:
		return "gone"
	case f.Importing():
		return "import"
	case database.IsHarvested(f):
		return "harvest"
	case f.Alias != "":
		return "-"
	case f.Due(now):
		return "due"
	}
	return terminal.Span(f.Next.Sub(now))
}

// failuresOf says how many of a feed's last polls failed, and why the last one did.
func failuresOf(f *mirror.Feed) string {
	return terminal.Count(f.Failures, "poll", "polls") + " failed: " + f.Error
}

// showFeed shows a feed in full.
func showFeed(p *terminal.Page, f *mirror.Feed, newest time.Time, now time.Time) {
	title := f.Title
	if terminal.Clean(title) == "" {
		title = "(no title)"
	}
	p.Para("", "", title)
	p.Line("")
	p.Field("feed", f.URL)
	p.Field("moved to", f.Address)
	p.Field("alias of", f.Alias)
	p.Field("kind", f.Kind.String())
	p.Field("source", f.Source)
	p.Field("entries", entriesOf(f, newest))
	if f.Documents > 0 {
		p.Field("archives", archivesOf(f))
	}
	p.Field("changed", stamp(f.Changed, now))
	p.Field("polled", stamp(f.Polled, now))
	switch next := nextOf(f, now); {
	case f.Gone:
		p.Field("next poll", "none: the publisher has withdrawn the feed for good")
	case f.Importing():
		p.Field("next poll", "none: run the same import again first")
	case database.IsHarvested(f):
		p.Field("next poll", "none: feedhistory harvest keeps it current")
	case f.Alias != "":
		p.Field("next poll", "none: the feed has become another one, which sync polls instead; the entries of this one are kept")
	case next == "due":
		p.Field("next poll", "due")
	default:
		p.Field("next poll", fmt.Sprintf("%s (%s)", terminal.Time(f.Next), terminal.Until(f.Next, now)))
	}
	if f.Failures > 0 {
		p.Field("failed", failuresOf(f))
	}
	if f.Waits(now) {
		p.Field("wait", "its host asks for no requests until "+terminal.Time(f.Wait))
	}
	p.Field("verdict", fmt.Sprintf("%s. %s", f.Verdict, meaning(f)))
	for _, g := range f.Missing() {
		explain.Gap(p, g)
	}
}

// meaning explains a feed's verdict.
func meaning(f *mirror.Feed) string {
	switch {
	case !f.WholeAsOf().IsZero():
		return "These are all entries the server counted on " + terminal.Time(f.WholeAsOf()) + ", and those added by polls since."
	case f.Verdict == feedhistory.Lossy && f.Kind == feedhistory.Plain:
		return "Everything the server shows was read, but the feed does not declare its history: entries may have slipped through."
	case f.Verdict != feedhistory.Partial:
		return explain.VerdictText(f.Verdict)
	case f.Importing():
		return "Its import is not complete."
	case f.Known.URL == "":
		return "The feed could not be read yet."
	}
	return "Something is missing:"
}

// archivesOf says how many archives were read, and as of when the verdict speaks of them.
func archivesOf(f *mirror.Feed) string {
	if f.Checked.IsZero() {
		return fmt.Sprint(f.Documents)
	}
	return fmt.Sprintf("%d, as of %s: each has been read since", f.Documents, terminal.Time(f.Checked))
}

func entriesOf(f *mirror.Feed, newest time.Time) string {
	text := fmt.Sprint(f.Entries)
	if f.Deleted > 0 {
		text += fmt.Sprintf(", and %d deleted", f.Deleted)
	}
	if !newest.IsZero() {
		text += "; the newest: " + terminal.Time(newest)
	}
	return text
}

// stamp returns a time, and how long ago it was.
func stamp(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", terminal.Time(t), terminal.Span(now.Sub(t)))
}

// A jsonFeed is a mirrored feed in JSON.
type jsonFeed struct {
	URL       string       `json:"url"`
	Address   string       `json:"address,omitempty"` // the URL requested by polls, if it is another
	Alias     string       `json:"alias,omitempty"`   // the mirrored feed it has become
	Title     string       `json:"title,omitempty"`
	Kind      string       `json:"kind"`
	Verdict   string       `json:"verdict"`
	AsOf      string       `json:"as_of,omitempty"` // when the server's count proved the feed whole
	Source    string       `json:"source,omitempty"`
	Entries   int64        `json:"entries"`
	Deleted   int64        `json:"deleted"`
	Documents int64        `json:"documents"`
	Checked   string       `json:"archives_as_of,omitempty"` // the time since which each archive has been read
	Newest    string       `json:"newest,omitempty"`
	Changed   string       `json:"changed,omitempty"`
	Polled    string       `json:"polled,omitempty"`
	NextPoll  string       `json:"next_poll,omitempty"`
	Wait      string       `json:"wait,omitempty"` // the feed's host asks for no requests until then
	Due       bool         `json:"due,omitempty"`
	Gone      bool         `json:"gone,omitempty"`
	Failures  int          `json:"failures,omitempty"`
	Error     string       `json:"error,omitempty"`
	Gaps      []schema.Gap `json:"gaps"`
}

func feedJSON(f *mirror.Feed, newest time.Time) jsonFeed {
	j := jsonFeed{
		URL: f.URL, Address: f.Address, Alias: f.Alias, Title: f.Title, Kind: f.Kind.String(), Verdict: f.Verdict.String(), Source: f.Source,
		Entries: f.Entries, Deleted: f.Deleted, Documents: f.Documents,
		Changed: schema.Second(f.Changed), Polled: schema.Second(f.Polled), NextPoll: schema.Second(f.Next),
		Wait: schema.Second(f.Wait), Due: f.Due(time.Now()), Gone: f.Gone, Failures: f.Failures, Error: f.Error,
		Gaps: schema.Each(f.Missing(), schema.NewGap),
	}
	j.AsOf, j.Checked = schema.Second(f.WholeAsOf()), schema.Second(f.Checked)
	if !newest.IsZero() {
		j.Newest = schema.Time(newest)
	}
	return j
}
