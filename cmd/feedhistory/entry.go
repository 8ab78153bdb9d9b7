package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An entryCommand is the verb entry.
type entryCommand struct {
	database.Location
	ID   string `arg:"" name:"ID" help:"The entry's id, as feedhistory entries shows it, or its beginning if no other id begins so."`
	Feed string `placeholder:"URL" help:"The entry's feed, if several have an entry with this id."`

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
	if c.JSON {
		return schema.PrintRecord(w.Stdout, r)
	}
	e, err := r.Entry()
	if err != nil {
		return err
	}
	out := c.Pager(w.Stdout)
	buffered := bufio.NewWriter(out)
	p := &terminal.Page{W: buffered, Width: terminal.Width(w.Stdout)}
	show.Article(p, e, r)
	return terminal.UnlessLeft(cmp.Or(p.Err, buffered.Flush(), out.Close()))
}

// find returns the entry, which must be in one feed only.
func (c *entryCommand) find(ctx context.Context, store mirror.Store) (found *mirror.Record, err error) {
	var feeds []string
	if c.Feed != "" {
		feeds = []string{argument.FeedName(c.Feed)}
		if _, err := store.Feed(ctx, feeds[0]); err != nil {
			return nil, c.Unknown(c.Feed, err)
		}
	} else {
		for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
			if err != nil {
				return nil, err
			}
			feeds = append(feeds, f.URL)
		}
	}
	id, err := database.ID(ctx, store, feeds, c.ID)
	if err != nil {
		return nil, err
	}
	c.ID = id
	var with []string
	for _, feed := range feeds {
		r, err := recordWith(ctx, store, feed, c.ID)
		if err != nil {
			return nil, err
		}
		if r != nil {
			found, with = r, append(with, feed)
		}
	}
	switch len(with) {
	case 0:
		return nil, errors.New("there is no entry with the id " + terminal.Clean(c.ID) + " in " + c.Place() + "; feedhistory entries shows the ids")
	case 1:
		return found, nil
	}
	return nil, exit.UsageError("several feeds have an entry with this id: choose one with --feed: " + strings.Join(with, ", "))
}

// recordWith returns the entry of a feed with an id, with its content; nil if the feed has
// no such entry, or if the mirror knows only its deletion.
func recordWith(ctx context.Context, store mirror.Store, feed, id string) (*mirror.Record, error) {
	known, err := store.Records(ctx, feed, []string{id})
	if err != nil || known[id] == nil {
		return nil, err
	}
	at := known[id].Time()
	for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Since: at, Until: at.Add(time.Microsecond), Deleted: true}) {
		if err != nil || r.ID == id {
			return r, err
		}
	}
	return nil, nil
}
