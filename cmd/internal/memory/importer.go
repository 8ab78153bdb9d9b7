package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
)

// A batch is stored when it has this many entries or bytes.
const (
	batchEntries = 1000
	batchBytes   = 4 << 20
)

// An Importer stores the entries and documents of a source in a mirror. Recall must be set.
type Importer struct {
	Recall *mirror.Recall
	Wanted func(feed string) bool  // whether to import a feed; nil means all
	Check  func(feed string) error // why a feed cannot be mirrored; nil means each can

	// Stored is called with the mark after everything up to there has been stored; nil
	// means nobody wants to know.
	Stored func(mark string) error

	Damaged func(error) // is called for each skipped row or document
	Skipped func(error) // is called for each feed that cannot be mirrored, once

	Feeds []*Tally // the feeds so far, in the order in which they came
	Count int      // the number of entries and documents so far

	tallies map[string]*Tally // by the source's address
	mirror  map[string]string // the mirrored feed with an address
	entries []pendingEntry
	bytes   int
	mark    string
}

// A Tally counts the imported entries of one feed.
type Tally struct {
	Feed  string // the mirrored feed's URL
	Title string
	mirror.RecallReport

	skipped bool
}

// A pendingEntry is an entry in the current batch.
type pendingEntry struct {
	tally *Tally
	entry mirror.KeptEntry
}

// A SourceError is an error of the source, not of the mirror.
type SourceError struct{ Err error }

// Error returns the message of Err.
func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SourceError) Unwrap() error { return e.Err }

// Run stores everything a source yields. An error ends it; entries already stored stay.
// Errors of the source match *SourceError.
func (i *Importer) Run(ctx context.Context, source iter.Seq2[Found, error]) error {
	if err := i.load(ctx); err != nil {
		return err
	}
	for found, err := range source {
		switch {
		case errors.Is(err, context.Canceled):
			return err
		case err != nil:
			if failed := i.flush(ctx); failed != nil { // the rows before are good
				return failed
			}
			return &SourceError{err}
		}
		if err := i.take(ctx, &found); err != nil {
			return err
		}
	}
	return i.flush(ctx)
}

// load reads the addresses of the mirrored feeds, because a reader may know a feed by another
// one.
func (i *Importer) load(ctx context.Context) error {
	i.mirror, i.tallies = map[string]string{}, map[string]*Tally{}
	for f, err := range i.Recall.Mirror.Store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		for _, address := range []string{f.Address, f.Known.URL} {
			if _, ok := i.mirror[bare(address)]; !ok && address != "" {
				i.mirror[bare(address)] = f.URL
			}
		}
		i.mirror[bare(f.URL)] = f.URL
	}
	return nil
}

// bare returns an address without its scheme and a final slash, which differ among readers.
func bare(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	return strings.TrimSuffix(rest, "/")
}

// tally returns the tally of a feed.
func (i *Importer) tally(found *Found) *Tally {
	t := i.tallies[found.Feed]
	if t != nil {
		return t
	}
	t = &Tally{Feed: strings.TrimSpace(found.Feed), Title: found.Title}
	i.tallies[found.Feed] = t
	if known := i.mirror[bare(t.Feed)]; known != "" {
		t.Feed = known
	}
	var err error
	if i.Check != nil {
		err = i.Check(t.Feed)
	}
	switch {
	case i.Wanted != nil && !i.Wanted(found.Feed) && !i.Wanted(t.Feed):
		t.skipped = true
	case err != nil:
		t.skipped = true
		if i.Skipped != nil {
			i.Skipped(err)
		}
	default:
		i.Feeds = append(i.Feeds, t)
	}
	return t
}

func (i *Importer) take(ctx context.Context, found *Found) error {
	if found.Damage != nil && i.Damaged != nil {
		i.Damaged(found.Damage)
	}
	if found.Feed == "" {
		return nil
	}
	_, known := i.tallies[found.Feed]
	t := i.tally(found)
	switch {
	case t.skipped:
		return nil
	case found.Document != nil:
		i.Count++
		done, err := i.Recall.Document(ctx, t.Feed, found.Document.Document, found.Document.Older, found.Document.At)
		return i.note(t, done, err)
	case found.Entry == nil:
		if known {
			return nil
		}
		done, err := i.Recall.Entries(ctx, t.Feed, t.Title, nil) // the subscription alone
		return i.note(t, done, err)
	}
	e := found.Entry
	i.Count++
	i.entries = append(i.entries, pendingEntry{t, *e})
	i.bytes += len(e.Content.Body) + len(e.Summary.Body) + len(e.Title.Body) + 500
	if found.Mark != "" {
		i.mark = found.Mark
	}
	if len(i.entries) >= batchEntries || i.bytes >= batchBytes {
		return i.flush(ctx)
	}
	return nil
}

// flush stores the current batch, feed by feed.
func (i *Importer) flush(ctx context.Context) error {
	entries := i.entries
	i.entries, i.bytes = nil, 0
	var order []*Tally
	feeds := map[*Tally][]mirror.KeptEntry{}
	for _, w := range entries {
		if feeds[w.tally] == nil {
			order = append(order, w.tally)
		}
		feeds[w.tally] = append(feeds[w.tally], w.entry)
	}
	for _, t := range order {
		done, err := i.Recall.Entries(ctx, t.Feed, t.Title, feeds[t])
		if err := i.note(t, done, err); err != nil {
			return err
		}
	}
	if i.Stored == nil || i.mark == "" || len(entries) == 0 {
		return nil
	}
	return i.Stored(i.mark)
}

// note adds the result of a batch to a tally.
func (i *Importer) note(t *Tally, done mirror.RecallReport, err error) error {
	for _, bad := range done.Damaged {
		if i.Damaged != nil {
			i.Damaged(fmt.Errorf("%s: %w", t.Feed, bad))
		}
	}
	done.Damaged = nil
	t.Add(done)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Feed, err)
	}
	return nil
}
