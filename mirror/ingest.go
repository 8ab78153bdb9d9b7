package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Source brings documents of a feed in another way than along its own links:
// by a sibling protocol, or by what a server offers beside.
type Source struct {
	Name string // of the way, as a word: "wordpress"; it becomes the feed's Source

	// Documents yields documents as Client.Walk does: the newest first, gaps as
	// errors. One that is Complete replaces all that is there (5005#1).
	Documents iter.Seq2[*feedhistory.Document, error]

	// Adds says that the source does not begin again: the gaps that it left before
	// stay until their documents come, or End says proven.
	Adds bool

	// Mark is called after each document, and returns what the source wants to
	// remember once that one is stored: it becomes the feed's Mark in the same
	// commit. Nil, or if it returns nil: the mark stays as it is.
	Mark func() json.RawMessage

	// End is called after the last document. The mark is what the source wants to
	// remember, which becomes the feed's in the same commit as that document; nil
	// leaves it as it is. Proven says that what the source has brought, now and
	// before, is all there is: unless there is a gap the verdict is then Whole, else
	// it is Lossy. Nil: there is nothing to remember, nor proven.
	End func() (mark json.RawMessage, proven bool)

	// AsOf is called after End, where that says proven, and returns when it was
	// so. Nil: the feed's AsOf is zero.
	AsOf func() time.Time
}

// Merge merges what a source brings into a feed, which becomes one of the
// Store's if it is not yet. Each document is committed as it comes; until the
// last one is, a gap says that there is more, so that the verdict is Partial
// whatever cuts the source short.
//
// A *Gap among the errors is noted; any other error ends it, is returned, and
// leaves the Mark as it was after the last document. If there is none, windows
// that polls had missed no longer count as gaps.
//
// The feed's own polls, and what they know, are not affected.
func (m *Mirror) Merge(ctx context.Context, url string, src Source) (*Changes, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.await()
	f := p.feed
	f.Source, p.source = src.Name, sourceGap+src.Name
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool {
		return g.From == sourceGap || g.From == p.source && (!src.Adds || g.isCut()) // the former as long as nobody knew which
	})
	whole := true
	for doc, err := range src.Documents {
		if p.full { // the rest would not fit either
			whole = false
			f.addGap(p.sourceGap("not all that was recovered is stored"))
			break
		}
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		if isGap {
			doc = gap.Document
		}
		if err := p.flush(doc); err != nil {
			return p.stop(err)
		}
		if isGap {
			g := newGap(gap)
			g.From, g.Found = p.source, p.now
			f.Gaps = slices.DeleteFunc(f.Gaps, func(old Gap) bool { return old.URL == g.URL && old.From == p.source && old.Reason == g.Reason })
			f.addGap(g)
			p.changes.More = p.changes.More || g.Reason == feedhistory.ReasonBudget
			err, whole = nil, false
		}
		if err != nil {
			return p.stop(err)
		}
		if doc == nil {
			continue
		}
		p.sound = f.clone()
		if err := p.ingest(doc); err != nil {
			return p.stop(err)
		}
		p.sound = nil
		p.more(src, doc.Response.Requested)
	}
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool { return g.From == p.source && g.Reason == feedhistory.ReasonInterrupted })
	p.end(src, whole)
	return p.finish()
}

// more notes, in the commit of a document, that there may be more. The gap
// that an earlier Merge left there is closed.
func (p *poll) more(src Source, url string) {
	f := p.feed
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool {
		return g.From == p.source && g.URL == url && g.Found.Before(p.now) && g.Reason != feedhistory.ReasonMissedWindow
	})
	if src.Mark != nil && !p.full { // else some of it is to come once more
		if mark := src.Mark(); mark != nil {
			f.Mark = mark
		}
	}
	f.addGap(Gap{
		URL: p.address(), From: p.source, Reason: feedhistory.ReasonInterrupted, Found: p.now,
		Message: "its history has not been read to the end yet",
	})
}

// end takes what the source says in the end.
func (p *poll) end(src Source, whole bool) {
	f := p.feed
	f.Proven, f.AsOf, f.Counted = false, time.Time{}, 0
	if src.End != nil && !p.full {
		var mark json.RawMessage
		if mark, f.Proven = src.End(); mark != nil {
			f.Mark = mark
		}
	}
	if f.Proven && src.AsOf != nil {
		f.AsOf, f.Counted = src.AsOf(), f.Entries
	}
	if whole { // what polls have missed has come
		f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool {
			return g.From == "" && g.Reason == feedhistory.ReasonMissedWindow || f.Proven && g.From == p.source
		})
	}
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

// sourceGap is what the gaps of a source begin with, in Gap.From.
const sourceGap = "source:"

func (p *poll) sourceGap(message string) Gap {
	return Gap{
		URL: p.address(), From: p.source, Reason: feedhistory.ReasonLimit, Quota: true, Found: p.now, Message: message,
	}
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
	if m.refused > 0 {
		f.addGap(p.sourceGap(fmt.Sprintf("entries that were recovered and are not stored: %d", m.refused)))
	}
	if f.Title == "" {
		f.Title = doc.Title
	}
	if f.Head == "" {
		f.Head = HeadOf(doc)
	}
	if doc.Complete && len(doc.Missing(feedhistory.Plain)) == 0 {
		return p.complete(m)
	}
	return nil
}
