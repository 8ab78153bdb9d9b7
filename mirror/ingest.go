package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A Source brings documents of a feed in another way than along its own links:
// by a sibling protocol, or by what a server offers beside.
type Source struct {
	Name string // of the way, as a word: "wordpress"; it becomes the feed's Source

	// Documents yields documents as Client.Walk does: the newest first, gaps as
	// errors. One that is Complete replaces all that is there (5005#1).
	Documents iter.Seq2[*feedhistory.Document, error]

	// End is called after the last document. The mark is what the source wants to
	// remember, which becomes the feed's in the same commit as that document; nil
	// leaves it as it is. Proven says that what the source has brought, now and
	// before, is all there is: unless there is a gap the verdict is then Whole, else
	// it is Lossy. Nil: there is nothing to remember, nor proven.
	End func() (mark json.RawMessage, proven bool)
}

// Merge merges what a source brings into a feed, which becomes one of the
// Store's if it is not yet. Each document is committed as it comes. A *Gap among
// the errors is noted; any other error ends it, is returned, and leaves the
// Mark as it was. If there is none, windows that polls had missed no longer
// count as gaps.
//
// The feed's own polls, and what they know, are not affected.
func (m *Mirror) Merge(ctx context.Context, url string, src Source) (*Changes, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	f := p.feed
	f.Source = src.Name
	f.clearGaps(p.now, "source:"+src.Name)
	whole := true
	for doc, err := range src.Documents {
		if err := p.flush(ctx); err != nil {
			return p.stop(err)
		}
		if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
			g := newGap(gap)
			g.From = "source:" + src.Name
			f.addGap(g)
			doc, err, whole = gap.Document, nil, false
		}
		if err != nil {
			return p.stop(err)
		}
		if doc == nil {
			continue
		}
		if err := p.ingest(doc); err != nil {
			return p.stop(err)
		}
	}
	f.Proven = false
	if src.End != nil {
		var mark json.RawMessage
		if mark, f.Proven = src.End(); mark != nil {
			f.Mark = mark
		}
	}
	if whole { // what polls have missed has come
		f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool { return g.Reason == feedhistory.ReasonMissedWindow })
	}
	return p.finish()
}

// ReadMark reads the Mark that a source of the given name left with a feed. If
// there is none, mark stays what it is. The error is the Store's, or that of
// encoding/json.
func (m *Mirror) ReadMark(ctx context.Context, url, source string, mark any) error {
	feed, err := m.Store.Feed(ctx, withoutFragment(url))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || feed.Source != source || len(feed.Mark) == 0 {
		return err
	}
	if err := json.Unmarshal(feed.Mark, mark); err != nil {
		return fmt.Errorf("%s: the mark that is stored: %w", url, err)
	}
	return nil
}

func (p *poll) ingest(doc *feedhistory.Document) error {
	rank := p.rankOf(doc, p.rank)
	p.rank = Rank{Time: rank.Time, Place: rank.Place - 1}
	m, err := p.merge(source{doc: doc, rank: rank, archive: true, replaces: doc.Complete})
	if err != nil {
		return err
	}
	p.changes.Documents++
	p.held = &m.change
	f := p.feed
	if f.Title == "" {
		f.Title = doc.Title
	}
	if f.Head == "" {
		f.Head = headOf(doc)
	}
	if doc.Complete && doc.Damage(feedhistory.Plain) == nil {
		return p.complete(m)
	}
	return nil
}
