package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

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

// Validate refuses flags for the whole list if the arguments ask for one feed.
func (c *listCommand) Validate() error {
	if c.Feed != "" && (c.Due || c.Partial) {
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
	switch {
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(l.page.W, show.NewFeed(f, newest[f.URL]))
	}
	show.PrintFeed(l.page, f, newest[f.URL], l.now)
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
		if f.Alias != "" || c.Partial && f.Verdict != feedhistory.Partial || c.Due && !f.Due(l.now) {
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
		if err := c.addOne(l, f, newest[f.URL]); err != nil {
			return err
		}
	}
	return nil
}

func (c *listCommand) addOne(l *listing, f *mirror.Feed, newest time.Time) error {
	if c.JSON {
		return terminal.WriteJSON(l.page.W, show.NewFeed(f, newest))
	}
	if l.feeds == 0 {
		show.FeedTitles(l.page)
	}
	l.feeds++
	show.FeedRow(l.page, f, newest, l.now)
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
