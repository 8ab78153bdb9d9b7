package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/mirror"
)

// exportFeed writes the first of the feeds as the document History.Document would
// return, in Atom or RSS. It never has more than one entry in memory.
func (c *exportCommand) exportFeed(ctx context.Context, w io.Writer, store *readableEntries, feeds iter.Seq2[*mirror.Feed, error], format feedhistory.Format) error {
	for f, err := range feeds {
		if err == nil {
			f, err = store.declare(ctx, f)
		}
		if err != nil {
			return err
		}
		doc, err := c.exportHead(ctx, store, f)
		if err != nil {
			return err
		}
		out := feedhistory.NewWriter(w, format, doc)
		for r, err := range store.Entries(ctx, c.query(f.URL)) {
			if err != nil {
				return err
			}
			if f.Private {
				r = r.Redacted()
			}
			e, err := r.Entry()
			if err != nil {
				return fmt.Errorf("the entry %s: %w", r.ID, err)
			}
			if e.Changed().IsZero() {
				e.Updated = r.Time() // when the mirror first saw it
			}
			if err := out.Add(e); err != nil {
				return err
			}
		}
		return out.Close()
	}
	return nil
}

// exportHead returns the document without the feed's entries. The only
// entries in it describe gaps.
func (c *exportCommand) exportHead(ctx context.Context, store mirror.Store, f *mirror.Feed) (*feedhistory.Document, error) {
	url := f.URL
	if f.Private {
		f = f.Redacted()
	}
	head, err := f.Document()
	if errors.Is(err, mirror.ErrNotFound) {
		return nil, errors.New(f.URL + ": the feed could not be read yet: " + f.Error)
	}
	if err != nil {
		return nil, err
	}
	history := feedhistory.History{Head: head, Kind: f.Kind, Gaps: f.Missing()}
	if history.Deleted, err = tombstones(ctx, store, url, f.Deleted); err != nil {
		return nil, err
	}
	doc := history.Document()
	doc.Entries = history.PseudoEntries()
	if doc.Complete = c.verdict(f) == feedhistory.Whole; !doc.Complete || !f.WholeAsOf().IsZero() {
		doc.Coverage = f.Coverage()
	}
	if c.isPart() {
		if doc.Coverage == nil {
			doc.Coverage = &feedhistory.Coverage{Of: f.URL, Kind: f.Kind}
		}
		doc.Coverage.Verdict = c.verdict(f)
	}
	if f.Private && doc.Coverage != nil {
		doc.Coverage.Of = ""
	}
	if doc.Updated.IsZero() {
		doc.Updated = f.Changed.UTC()
	}
	return doc, nil
}

// tombstones returns the deletions of the entries that are no longer part of a feed, given
// their number.
func tombstones(ctx context.Context, store mirror.Store, feed string, n int64) (deleted []feedhistory.Tombstone, err error) {
	if n == 0 {
		return nil, nil
	}
	for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Deleted: true}) {
		if err != nil {
			return nil, err
		}
		if d := schema.DeletionOf(r); d.Deleted {
			deleted = append(deleted, feedhistory.Tombstone{Ref: r.ID, When: d.When})
		}
	}
	return deleted, nil
}
