package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// exportFeed writes the first of the feeds as the document that History.Document would
// return, in Atom or RSS. It never has more than one batch of entries in memory.
func exportFeed(ctx context.Context, w io.Writer, store mirror.Store, feeds iter.Seq2[*mirror.Feed, error], format feedhistory.Format) error {
	for f, err := range feeds {
		if err != nil {
			return err
		}
		a, err := newFeedExport(ctx, w, store, f, format)
		if err != nil {
			return err
		}
		return a.write(store.Entries(ctx, mirror.Query{Feed: f.URL}))
	}
	return nil
}

// A feedExport writes one long document as many short ones with the same head. It leaves
// out the head of each but the first, and the end of each but the last.
type feedExport struct {
	w    io.Writer
	doc  *feedhistory.Document // the head, and a batch of entries
	head []byte                // the beginning of each document but the first, which is left out

	format feedhistory.Format
	end    string // the end of each document
}

const feedBatch = 500

func newFeedExport(ctx context.Context, w io.Writer, store mirror.Store, f *mirror.Feed, format feedhistory.Format) (*feedExport, error) {
	head, err := f.Document()
	if errors.Is(err, mirror.ErrNotFound) {
		return nil, errors.New(f.URL + ": the feed could not be read yet: " + f.Error)
	}
	if err != nil {
		return nil, err
	}
	history := feedhistory.History{Head: head, Kind: f.Kind, Gaps: f.Missing()}
	if history.Deleted, err = tombstones(ctx, store, f); err != nil {
		return nil, err
	}
	a := &feedExport{w: w, doc: history.Document(), format: format, end: "</feed>\n"}
	if format == feedhistory.RSS {
		a.end = "</channel></rss>\n"
	}
	a.doc.Complete = f.Verdict == feedhistory.Whole
	if a.doc.Updated.IsZero() {
		a.doc.Updated = f.Changed.UTC() // otherwise the heads would differ in their times
	}
	missing := a.doc.Entries
	a.doc.Entries = nil
	text, err := a.render()
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	a.doc.Deleted = nil // the first head has the deletions
	if a.head, err = a.render(); err != nil {
		return nil, err
	}
	a.doc.Entries = missing
	return a, nil
}

// tombstones returns the deletions of the entries that are no longer part of a feed.
func tombstones(ctx context.Context, store mirror.Store, f *mirror.Feed) (deleted []feedhistory.Tombstone, err error) {
	if f.Deleted == 0 {
		return nil, nil
	}
	for r, err := range store.Entries(ctx, mirror.Query{Feed: f.URL, Deleted: true}) {
		if err != nil {
			return nil, err
		}
		if d := deletionOf(r); d.Deleted {
			deleted = append(deleted, feedhistory.Tombstone{Ref: r.ID, When: d.When})
		}
	}
	return deleted, nil
}

// write writes the entries and the end.
func (a *feedExport) write(records iter.Seq2[*mirror.Record, error]) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		e, err := r.Entry()
		if err != nil {
			return fmt.Errorf("the entry %s: %w", r.ID, err)
		}
		if a.doc.Entries = append(a.doc.Entries, e); len(a.doc.Entries) >= feedBatch {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	err := a.flush()
	_, end := io.WriteString(a.w, a.end)
	return errors.Join(err, end)
}

func (a *feedExport) flush() error {
	text, err := a.render()
	if err != nil {
		return err
	}
	_, err = a.w.Write(text[len(a.head):])
	a.doc.Entries = a.doc.Entries[:0]
	return err
}

// render returns the document with the current batch, without its end.
func (a *feedExport) render() ([]byte, error) {
	var b bytes.Buffer
	write := feedhistory.WriteAtom
	if a.format == feedhistory.RSS {
		write = feedhistory.WriteRSS
	}
	err := write(&b, a.doc)
	return bytes.TrimSuffix(b.Bytes(), []byte(a.end)), err
}
