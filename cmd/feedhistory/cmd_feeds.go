package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// A syncCommand is the verb sync.
type syncCommand struct {
	database.Location
	URLs  []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds to add to the database and poll, by their address, or accounts such as @ada@example.org; feeds that are in it already also by their title or a part of either (default: poll the feeds of the database that are due, or not finished by an earlier sync)."`
	OPML  []string `name:"opml" sep:"none" placeholder:"FILE" help:"Also add and poll the feeds of a subscription list; - is standard input (repeatable)."`
	All   bool     `help:"Poll all feeds of the database, even if they are not due, except feeds that are gone, harvested or an alias, and feeds whose host asks for no requests."`
	Every bool     `help:"Keep polling all feeds of the database, each when it is due, until interrupted."`

	terminal.JSONFlag `set:"record=each feed"`

	database.Privacy
	database.Polling
	command.Budget
	command.Backfill

	command.NetworkFlags
	command.Login

	leftOut int // subscriptions of the lists that cannot be polled
}

// Help returns the text of --help before the flags.
func (c *syncCommand) Help() string {
	return "The first poll reads a feed's whole history; later polls read new documents, and those earlier polls could not retrieve. " +
		"You can end sync at any time: it keeps what it has read, and the next sync continues there, whether or not the feed is due. " +
		"The same holds when --max-documents, --max-bytes or --max-time ends a poll; --every then waits five minutes, or --interval if that is shorter. " +
		"sync polls the feeds of one host one after the other, with a pause of one second, or of --pace if that is longer. " +
		"If a host asks for no requests until some time (Retry-After), this sync and later ones comply.\n\n" +
		"The exit status is 1 if a poll failed; otherwise 3 if a polled feed is known to be incomplete, an interrupt left a feed without its poll, or a subscription of a list was left out; otherwise 0. " +
		"With --every, each feed's last poll counts."
}

// Validate refuses incompatible flags.
func (c *syncCommand) Validate() error {
	if c.Given() && len(c.URLs) == 0 {
		return errors.New("--header, --user and --token-env are for feeds that URL names, not for those of the database or of --opml")
	}
	for _, url := range c.URLs {
		if d, err := time.ParseDuration(url); err == nil && c.Every {
			return fmt.Errorf("--every takes no time: give --interval %s for the time between two polls", d)
		}
	}
	return c.Privacy.Check(c.URLs)
}

// Run polls the feeds and reports on each.
func (c *syncCommand) Run(w *command.World) (err error) {
	if err := c.named(w); err != nil {
		return err
	}
	given, err := c.given(w)
	if err != nil {
		return err
	}
	open := c.Open // open does not create a database, which would be empty
	if len(given) > 0 || c.Every {
		open = c.Create
	}
	store, err := open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.CloseAfter(err)) }()
	s := c.newSyncing(w, store)
	s.Strays.Named = map[string]bool{}
	for _, url := range c.URLs {
		s.Strays.Named[terminal.FeedName(url)] = true
	}
	named := slices.Sorted(maps.Keys(s.Strays.Named))
	added := func() error { return nil }
	if c.Given() {
		if added, err = store.Adding(w.Ctx, named); err != nil {
			return c.Failure(err)
		}
	}
	if s.Strays.Keys, err = database.Keep(&c.Login, &c.Location, named); err != nil {
		return errors.Join(err, added())
	}
	if err := c.Hide(s.Strays.Keys, c.URLs); err != nil {
		return err
	}
	s.Poller.Mirror.ClientFor = s.Strays.Keys.ClientFor(s.Poller.Mirror.Client)
	bar := w.NewBar(len(given), "adding feeds")
	err = s.Subscribe(w.Ctx, given, bar)
	bar.End()
	if err == nil && c.Given() {
		_, err = database.Keep(&c.Login, &c.Location, named)
		err = cmp.Or(err, added())
	}
	if err == nil {
		err = c.Show(w.Ctx, store, c.URLs)
	}
	if err == nil {
		err = c.fill(w.Ctx, s, given)
	}
	if err != nil {
		return c.Failure(err)
	}
	if s.Poller.Waiting() == 0 && !c.Every {
		return c.nothing(w, store)
	}
	s.Report.Begin(w, s.Poller.Waiting())
	err = s.Run(w.Ctx)
	s.Report.End(s.Poller.Waiting())
	if err != nil {
		return c.Failure(err)
	}
	if w.Ctx.Err() != nil && !c.Every && s.Report.Ended == 0 && s.Report.Counted.CommittedDocuments.Load() == 0 {
		return terminal.StatusError(terminal.ExitInterrupted)
	}
	if err := s.Report.Status(); err != nil || c.leftOut == 0 {
		return err
	}
	return terminal.StatusError(terminal.ExitPartial)
}

// newSyncing returns a syncing with the settings of the flags.
func (c *syncCommand) newSyncing(w *command.World, store database.IndexedStore) *database.Sync {
	client := w.Client(w.Stderr)
	client.Budget = c.Limits()
	counted := &database.CountedStore{IndexedStore: store}
	page := terminal.NewPage(w.Stdout)
	if c.JSON {
		page = terminal.NewPage(w.Asides())
	}
	s := &database.Sync{
		Every: c.Every, Public: c.Public,
		Report: &database.Report{
			JSON: c.JSON, Every: c.Every, Quiet: w.Quiet, Stdout: w.Stdout, Page: page, Asides: terminal.NewPage(w.Asides()), Errors: terminal.NewPage(w.Stderr),
			DB: &c.Location, Counted: counted, Told: map[string]int{},
		},
	}
	s.Backfill = c.Methods(client, s.Report.Tell)
	s.Poller = c.Poller(counted, client)
	s.Poller.Pause, s.Poller.Poll, s.Poller.Trouble = max(time.Second, w.Pace), s.Poll, s.Report.Trouble
	return s
}

// given returns the feeds named by the arguments and the lists, as the store names them.
func (c *syncCommand) given(w *command.World) (given []readers.Outline, err error) {
	for _, url := range c.URLs {
		if err := terminal.CheckURL(url); err != nil {
			return nil, err
		}
		given = append(given, readers.Outline{URL: terminal.FeedName(url)})
	}
	for _, file := range c.OPML {
		feeds, err := database.Subscriptions(w, file)
		if err != nil {
			return nil, show.Failure(file, err)
		}
		for _, feed := range feeds {
			if err := terminal.CheckListed(feed.URL); err != nil {
				w.Say(fmt.Sprintf("%s: left out: %v", file, err))
				c.leftOut++
				continue
			}
			feed.URL = terminal.FeedName(feed.URL)
			given = append(given, feed)
		}
	}
	if len(given) == 0 && len(c.OPML) > 0 {
		return nil, errors.New("no feed in the lists can be polled")
	}
	return given, nil
}

// named replaces arguments that are no addresses by the addresses of the feeds they name,
// and an address without a scheme by that of the feed which has it.
func (c *syncCommand) named(w *command.World) error {
	isName := func(arg string) bool { return !terminal.IsURL(arg) }
	if !slices.ContainsFunc(c.URLs, isName) {
		return nil
	}
	store, err := c.Read(w)
	if err != nil {
		return nil // there is no feed to name
	}
	defer store.Close()
	for i, arg := range c.URLs {
		if !isName(arg) {
			continue
		}
		wrong := terminal.CheckURL(arg)
		f, err := c.Location.Feed(w.Ctx, store, arg, wrong == nil)
		switch _, several := errors.AsType[*terminal.ChoiceError](err); {
		case err == nil:
			c.URLs[i] = f.URL
		case wrong != nil && several, !several && !errors.Is(err, mirror.ErrNotFound):
			return err
		}
	}
	return nil
}

// fill queues the feeds to poll. With --every, it queues none: the Poller finds the due
// ones.
func (c *syncCommand) fill(ctx context.Context, s *database.Sync, given []readers.Outline) error {
	if c.Every {
		return nil
	}
	named := map[string]bool{}
	for _, feed := range given {
		named[feed.URL] = true
	}
	_, err := s.Poller.AddAll(ctx, func(f *mirror.Feed, due bool) bool { // from all feeds, AddAll also learns which hosts ask for no requests
		if len(given) > 0 {
			return named[f.URL]
		}
		return due || c.All && !f.Gone && f.Alias == "" && !show.IsHarvested(f)
	})
	return err
}

// nothing says why no feed is polled.
func (c *syncCommand) nothing(w *command.World, store mirror.Store) error {
	now := time.Now()
	for f, err := range store.Feeds(w.Ctx, mirror.FeedQuery{Due: now.AddDate(100, 0, 0), Limit: 1}) {
		if err != nil {
			return c.Failure(err)
		}
		hint := "--all polls all feeds nevertheless"
		if f.Waits(now) {
			hint = "its host asks for no requests until then"
		}
		w.Tell("no feed is due; the next is " + show.Address(f.URL) + " " + terminal.Until(f.Next, now) + "; " + hint)
		return nil
	}
	return errors.New("there is no feed to poll in " + c.Place() + ": give an address, or --opml FILE")
}

// A listCommand is the verb list.
type listCommand struct {
	database.Location
	Feed    string `arg:"" optional:"" name:"FEED" help:"Show this feed in full, with each gap and how to close it."`
	Due     bool   `help:"List only feeds due for a poll: their time has come, or an earlier poll left something unread."`
	Partial bool   `help:"List only feeds known to be incomplete."`

	terminal.JSONFlag `set:"record=each feed"`
}

// Help returns the text of --help before the flags.
func (c *listCommand) Help() string {
	return "The verdict describes the mirror now. whole: every entry the feed says it has, or its server counted at the time shown; " +
		"window: the latest entries, because the feed does not say whether there were earlier ones; lossy: all pages, but entries may have slipped through between them; " +
		"partial (N): something is known to be missing, with the number of gaps."
}

// Run lists the feeds, or shows one in full.
func (c *listCommand) Run(w *command.World) (err error) {
	store, err := c.Read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	out := bufio.NewWriterSize(w.Stdout, 64<<10)
	l := &listing{ctx: w.Ctx, store: store, page: terminal.PageOn(w.Stdout, out), now: time.Now()}
	if c.Feed != "" {
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
	f, err := c.Location.Feed(l.ctx, l.store, c.Feed, false)
	if err != nil {
		return err
	}
	newest, err := l.newest(f)
	if err != nil {
		return err
	}
	if c.JSON {
		l.page.JSON(show.NewFeed(f, newest[f.URL]))
		return nil
	}
	show.PrintFeed(l.page, f, newest[f.URL], l.now, command.OlderHintOf(f))
	for other, err := range l.store.Feeds(l.ctx, mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		if other.Alias == f.URL {
			l.page.Para("", "  ", "earlier, at "+show.Address(other.URL)+": "+terminal.Count(int(other.Entries), "entry", "entries"))
		}
	}
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
		if f.Alias != "" || c.Partial && f.Verdict != feedhistory.VerdictPartial || c.Due && !f.Due(l.now) {
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
		l.page.Para("", "", c.none())
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
		switch {
		case c.JSON:
			l.page.JSON(show.NewFeed(f, newest[f.URL]))
		case l.feeds == 0:
			show.FeedTitles(l.page)
			fallthrough
		default:
			show.FeedRow(l.page, f, newest[f.URL], l.now)
		}
		l.feeds++
	}
	return l.page.Err
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

// A moveCommand is the verb move.
type moveCommand struct {
	database.Location
	Old string `arg:"" name:"FEED" help:"The feed."`
	New string `arg:"" name:"URL" help:"Its address from now on."`

	republishedFlag
}

// Help returns the text of --help before the flags.
func (c *moveCommand) Help() string {
	return "The feed keeps all its entries, with everything the mirror knows about them. The next sync requests the feed at its new address. " +
		"If the old address redirects there permanently, you do not need move: sync follows."
}

// Run moves the feed.
func (c *moveCommand) Run(w *command.World) (err error) {
	if err := terminal.CheckURL(c.New); err != nil {
		return err
	}
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := c.Feed(w.Ctx, store, c.Old, false)
	if err != nil {
		return err
	}
	from, to := f.URL, terminal.FeedName(c.New)
	if from == to {
		return terminal.UsageError("URL is the feed's address already: the same address")
	}
	if _, err := store.Feed(w.Ctx, to); err == nil {
		return fmt.Errorf("%s is already mirrored; feedhistory rm removes one of the two", show.Address(to))
	} else if !errors.Is(err, mirror.ErrNotFound) {
		return c.Failure(err)
	}
	if f.Importing() {
		return fmt.Errorf("%s: its import is not complete; run the same import again first", show.Address(from))
	}
	f.Address, f.Lost, f.Alias, f.Error, f.Failures, f.Gone = "", "", "", "", 0, false
	f.Next, f.Wait = time.Time{}, time.Time{}
	f.Ledger.Reset(false) // the old address's values mean nothing for the new one
	if err := store.Move(w.Ctx, f, to); err != nil {
		return c.Failure(err)
	}
	if _, err := c.removeRepublished(c.Location, from); err != nil { // republished documents are named after the old address
		return err
	}
	p := terminal.NewPage(w.Asides())
	p.Para("", "  ", fmt.Sprintf("moved %s and its %s to %s", show.Address(from), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries"), show.Address(to)))
	return p.Err
}

// An rmCommand is the verb rm.
type rmCommand struct {
	database.Location
	Feeds []string `arg:"" sep:"none" name:"FEED" help:"Feeds to remove, by their whole address or title, with everything the mirror knows about them."`

	//lint:ignore SA5008 kong takes one tag for each variable
	removalFlags `set:"removed=feeds" set:"verb=rm"`
	republishedFlag
}

// removalFlags are the flags of the verbs that remove things for good.
type removalFlags struct {
	Yes    bool `short:"y" help:"Do not ask. Without a terminal, ${verb} never asks."`
	DryRun bool `help:"Print the ${removed} to be removed, and remove nothing."`
}

// asks reports whether the verb asks before it removes anything.
func (f *removalFlags) asks(w *command.World) bool {
	return !f.Yes && !f.DryRun && terminal.IsTerminal(w.Stderr) && w.FromTerminal()
}

// confirm reports whether to remove the things that plan names.
func (f *removalFlags) confirm(w *command.World, plan *terminal.Page) (bool, error) {
	switch {
	case f.DryRun:
		w.Tell("a dry run: nothing was removed")
		return false, plan.Err
	case f.asks(w) && !w.Confirm("remove for good? [y/N] "):
		w.Say("nothing was removed")
		return false, terminal.StatusError(terminal.ExitFailed)
	}
	return true, plan.Err
}

// Help returns the text of --help before the flags.
func (c *rmCommand) Help() string {
	return "rm also removes the feeds' entries, and the documents the history server has republished on this machine. " +
		"To keep a copy, run feedhistory export --raw or feedhistory db backup first. " +
		"A feed comes back from a backup with feedhistory export --raw --db BACKUP FEED | feedhistory import."
}

// Run removes the feeds. It reports the feeds missing from the mirror, and continues with
// the others.
func (c *rmCommand) Run(w *command.World) error {
	store, err := c.Open(w)
	if err != nil {
		return err
	}
	defer store.Close()
	var feeds []*mirror.Feed
	var names []string
	status := error(nil)
	for _, arg := range c.Feeds {
		f, err := c.Location.Feed(w.Ctx, store, arg, true)
		switch {
		case errors.Is(err, mirror.ErrNotFound):
			w.Say(err.Error())
			status = terminal.StatusError(terminal.ExitFailed)
			names = append(names, terminal.FeedName(arg)) // an earlier rm may have left documents
		case err != nil:
			return err
		case !slices.Contains(names, f.URL):
			feeds, names = append(feeds, f), append(names, f.URL)
		}
	}
	if goOn, err := c.plan(w, feeds); err != nil || !goOn {
		return cmp.Or(err, status)
	}
	p := terminal.NewPage(w.Asides())
	for _, f := range feeds {
		if err = c.Failure(store.Remove(w.Ctx, f.URL)); err != nil {
			break
		}
		p.Para("", "  ", "removed "+contents(f))
	}
	if err == nil {
		c.tellBackup(p, feeds)
	}
	if dir := marks(); dir != "" {
		_ = os.RemoveAll(dir) // another import of the removed feeds begins at its beginning
	}
	_, left := c.removeRepublished(c.Location, names...)
	return cmp.Or(err, left, status, p.Err)
}

// tellBackup says how to get removed feeds back.
func (c *rmCommand) tellBackup(p *terminal.Page, feeds []*mirror.Feed) {
	names, here := "", ""
	for _, f := range feeds {
		if f.Entries+f.Deleted > 0 {
			names += " " + terminal.ShellWord(show.Address(f.URL))
		}
	}
	if names == "" {
		return // feedhistory sync gives all of it back
	}
	if c.DB != database.DefaultDB() {
		here = " --db " + terminal.ShellWord(c.Place())
	}
	p.Line("  from a backup, it comes back with: feedhistory export --raw --db BACKUP" + names + " | feedhistory import" + here)
}

// plan prints the feeds to be removed, for --dry-run or for the question on a terminal, and
// reports whether to remove them.
func (c *rmCommand) plan(w *command.World, feeds []*mirror.Feed) (bool, error) {
	if !c.DryRun && (!c.asks(w) || len(feeds) == 0) {
		return true, nil
	}
	p := terminal.NewPage(w.Stderr)
	if c.DryRun {
		p = terminal.NewPage(w.Stdout)
	}
	for _, f := range feeds {
		p.Para("", "  ", contents(f))
	}
	return c.confirm(w, p)
}

// contents names a feed and how much the mirror has of it.
func contents(f *mirror.Feed) string {
	return fmt.Sprintf("%s and its %s", show.Address(f.URL), terminal.Count(int(f.Entries+f.Deleted), "entry", "entries"))
}
