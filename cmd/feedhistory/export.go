package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/handover"
	"github.com/feedhistory/feedhistory/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
)

// The verb export.
type exportCommand struct {
	database
	URLs    []string `arg:"" optional:"" sep:"none" name:"URL" help:"The feeds; without any: all."`
	Format  string   `default:"jsonl" enum:"jsonl,atom,opml,greader,nextcloud" placeholder:"FORMAT" help:"jsonl: the entries with their content, one a line, as publish reads them (the default); atom: one feed; opml: the list of feeds; greader: Google Reader's JSON, for FreshRSS; nextcloud: articles.json of Nextcloud News."`
	Status  string   `default:"read" enum:"read,unread" placeholder:"STATUS" help:"Of greader and nextcloud: read (the default) or unread."`
	Deleted bool     `help:"Of jsonl: also entries that are no longer part of their feed, as deletions."`
}

// Help is what --help says beyond the flags.
func (c *exportCommand) Help() string {
	return "With atom there must be one URL. The feed is marked as complete where its history is whole; " +
		"elsewhere entries of its own tell readers what is missing."
}

// Validate refuses what no single document can have.
func (c *exportCommand) Validate() error {
	switch {
	case c.Format == "atom" && len(c.URLs) != 1:
		return errors.New("--format atom: give one feed's URL")
	case c.Format != "jsonl" && c.Deleted:
		return errors.New("--deleted is for jsonl: an Atom feed tells of deletions anyway, a list of feeds has no entries, and readers import none")
	}
	return nil
}

// Run exports the feeds.
func (c *exportCommand) Run(w *world) (err error) {
	store, err := c.read(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	feeds, err := c.feeds(w, store)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w.stdout, 64<<10)
	switch c.Format {
	case "opml":
		err = exportOPML(out, feeds)
	case "greader":
		err = (&handover.Export{Store: store, Status: c.Status}).GoogleReader(w.ctx, out, feeds)
	case "nextcloud":
		err = (&handover.Export{Store: store, Status: c.Status}).NextcloudNews(w.ctx, out, feeds)
	case "atom":
		err = exportAtom(w.ctx, out, store, feeds)
	default:
		err = c.exportJSON(w, out, store)
	}
	return errors.Join(c.failure(err), out.Flush())
}

// feeds returns the feeds that are asked for. Those that are given must be
// there, before anything is printed.
func (c *exportCommand) feeds(w *world, store mirror.Store) (iter.Seq2[*mirror.Feed, error], error) {
	if len(c.URLs) == 0 {
		return store.Feeds(w.ctx, mirror.FeedQuery{}), nil
	}
	for _, url := range c.URLs {
		if _, err := store.Feed(w.ctx, feedName(url)); err != nil {
			return nil, c.unknown(url, err)
		}
	}
	return func(yield func(*mirror.Feed, error) bool) {
		for _, url := range c.URLs {
			if f, err := store.Feed(w.ctx, feedName(url)); !yield(f, err) || err != nil {
				return
			}
		}
	}, nil
}

func exportOPML(w io.Writer, feeds iter.Seq2[*mirror.Feed, error]) error {
	list, err := opml.NewWriter(w, time.Now())
	for f, e := range feeds {
		if err = errors.Join(err, e); err != nil {
			return err
		}
		feed := opml.Outline{Text: clean(f.Title), URL: f.URL}
		if f.Address != "" {
			feed.URL = f.Address // others have no way to know
		}
		if head, e := f.Document(); e == nil {
			site, _ := head.Links.Rel(feedhistory.RelAlternate)
			feed.Site = site.Href
		}
		err = list.Add(feed)
	}
	return errors.Join(err, list.Close())
}

// exportJSON writes the entries, of the feeds that are given one after the
// other.
func (c *exportCommand) exportJSON(w *world, out io.Writer, store mirror.Store) error {
	queries := []mirror.Query{{Deleted: c.Deleted}}
	if len(c.URLs) > 0 {
		queries = nil
	}
	for _, url := range c.URLs {
		queries = append(queries, mirror.Query{Feed: feedName(url), Deleted: c.Deleted})
	}
	for _, query := range queries {
		for r, err := range store.Entries(w.ctx, query) {
			if err != nil {
				return err
			}
			record, err := recordOf(r)
			if err != nil {
				return fmt.Errorf("%s: the entry %s: %w", r.Feed, r.ID, err)
			}
			if err := printLine(out, record); err != nil {
				return err
			}
		}
	}
	return nil
}
