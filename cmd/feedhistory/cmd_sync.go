package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	URLs  []string `arg:"" optional:"" sep:"none" name:"URL" help:"Feeds to add to the database and poll, by their address; feeds that are in it already also by their title or a part of either (default: poll the feeds of the database that are due, or not finished by an earlier sync)."`
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
		"The same holds when --max-documents or --max-bytes ends a poll; --every then waits five minutes, or --interval if that is shorter. " +
		"sync polls the feeds of one host one after the other, with a pause of one second, or of --pace if that is longer. " +
		"If a host asks for no requests until some time (Retry-After), this sync and later ones comply.\n\n" +
		"The exit status is 1 if a poll failed; otherwise 3 if a polled feed is known to be incomplete, an interrupt left a feed without its poll, or a subscription of a list was left out; otherwise 0. " +
		"With --every, each feed's last poll counts."
}

// Validate refuses incompatible flags.
func (c *syncCommand) Validate() error {
	switch {
	case c.All && c.Every:
		return errors.New("--all and --every exclude each other: --every polls all feeds, each when it is due")
	case c.All && len(c.URLs)+len(c.OPML) > 0:
		return errors.New("--all is for the feeds of the database: leave out URL and --opml")
	}
	for _, url := range c.URLs {
		if d, err := time.ParseDuration(url); err == nil && c.Every {
			return fmt.Errorf("--every takes no time: give --interval %s for the time between two polls", d)
		}
	}
	return c.Privacy.Check(c.URLs)
}

// Run polls the feeds and reports on each.
func (c *syncCommand) Run(w *command.World) error {
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
	defer store.Close()
	s := c.newSyncing(w, store)
	s.Strays.Named = map[string]bool{}
	for _, url := range c.URLs {
		s.Strays.Named[terminal.FeedName(url)] = true
	}
	if s.Strays.Keys, err = database.Keep(&c.Login, &c.Location, slices.Sorted(maps.Keys(s.Strays.Named))); err != nil {
		return err
	}
	if err := c.Hide(s.Strays.Keys, c.URLs); err != nil {
		return err
	}
	s.Poller.Mirror.ClientFor = s.Strays.Keys.ClientFor(s.Poller.Mirror.Client)
	bar := w.NewBar(len(given), "adding feeds")
	err = s.Subscribe(w.Ctx, given, bar)
	bar.End()
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
func (c *syncCommand) newSyncing(w *command.World, store mirror.Indexer) *database.Sync {
	client := w.Client(w.Stderr)
	client.Budget = c.Limits()
	counted := &database.CountedStore{Indexer: store}
	s := &database.Sync{
		Backfill: c.Methods(client), Every: c.Every, Public: c.Public,
		Report: &database.Report{
			JSON: c.JSON, Every: c.Every, Quiet: w.Quiet, Stdout: w.Stdout, Page: c.results(w), Asides: terminal.NewPage(w.Asides()), Errors: terminal.NewPage(w.Stderr),
			DB: &c.Location, Counted: counted, Told: map[string]int{},
		},
	}
	s.Poller = c.Poller(counted, client)
	s.Poller.Pause, s.Poller.Poll, s.Poller.Trouble = max(time.Second, w.Pace), s.Poll, s.Report.Trouble
	return s
}

// results returns the page for reports on polls: standard output or, with --json, standard
// error.
func (c *syncCommand) results(w *command.World) *terminal.Page {
	if c.JSON {
		return terminal.NewPage(w.Asides())
	}
	return terminal.NewPage(w.Stdout)
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
		feeds, err := readSubscriptions(w, file)
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
		case wrong != nil && several, !several && !database.IsUnknown(err):
			return err
		}
	}
	return nil
}

// readSubscriptions reads a subscription list, which must have a feed.
func readSubscriptions(w *command.World, file string) ([]readers.Outline, error) {
	in, err := w.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	feeds, err := readers.ReadOPML(in)
	if err == nil && len(feeds) == 0 {
		err = errors.New("there is no feed in it")
	}
	return feeds, err
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
		w.Tell("no feed is due; the next is " + f.URL + " " + terminal.Until(f.Next, now) + "; " + hint)
		return nil
	}
	return terminal.UsageError("there is no feed to poll in " + c.Place() + ": give an address, or --opml FILE")
}
