package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Source provides documents of a feed that do not come from the feed's own links, but
// from a sibling protocol or from another interface of the server.
type Source struct {
	Name string // a word for the source, such as "wordpress"; it becomes the feed's Source

	// Readings yields documents as Client.Walk does, newest first. A complete document
	// replaces everything in the mirror (5005#1).
	Readings iter.Seq2[*feedhistory.Reading, error]

	// Stamp returns when an entry last changed, if the source knows better than the entry
	// itself: the duplicate rules, and tombstones, then go by this time. Nil means the
	// entry's own time counts.
	Stamp func(*feedhistory.Entry) time.Time

	// Adds means the source continues where it ended instead of beginning again: the gaps
	// it left earlier then stay until their documents come, or until End says proven.
	Adds bool

	// Mark is called after each document. The result is the source's memory once the
	// document is stored: it becomes the feed's Mark in the same commit. If Mark is nil or
	// returns nil, the feed's Mark stays as it is.
	Mark func() json.RawMessage

	// End is called after the last document. The mark becomes the feed's Mark in the same
	// commit as that document; a nil mark leaves it as it is. Proven means the source has
	// brought everything there is, now or before: the verdict is then whole, unless there
	// is a gap; otherwise it is lossy. AsOf is the time of the proof, or zero; it
	// becomes that of Ledger.Proof. If End is nil, there is no mark and nothing is proven.
	End func() (mark json.RawMessage, proven bool, asOf time.Time)
}

// Keep merges the documents of a source into a feed, and adds the feed to the Store if
// it is not there yet. It commits documents as they come. Until the last one is
// committed, the feed has a gap: its verdict stays partial if anything cuts the source short.
//
// Keep records the Gaps of the Readings. An error ends Keep, which returns it; the feed's Mark is
// then the last document's. After a Keep without
// gaps, windows missed by polls no longer count as gaps, if it has brought any document but
// the feed's own, or a proof.
//
// Keep changes neither the polls' memory of the feed nor when the feed is due, unless
// it is interrupted: then the feed is due. It counts as a poll in Feed.Polls and
// Feed.Polled.
func (m *Mirror) Keep(ctx context.Context, url string, src Source) (*Report, error) {
	if src.Readings == nil {
		return nil, errors.New("mirror: Keep: Source.Readings must be set")
	}
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.commits.await()
	f, l := p.feed, p.ledger
	f.Source = src.Name
	k := &keeper{p, src, sourceGap + src.Name}
	l.Kind = cmp.Or(l.Kind, feedhistory.KindPlain) // or the feed itself would have a history
	l.Census = censusOf(src.Name, l.Census == provenCensus)
	l.crossOut(func(d debt) bool {
		return d.From == sourceGap || // stay only while no source was known
			d.From == k.source && (!src.Adds && d.Kind != debtCount || d.isCut())
	})
	whole, brought := true, false
	for r, err := range src.Readings {
		if p.allowance.full && (err != nil || !r.End) { // the rest would not fit either
			whole = false
			p.owe(k.sourceGap("some of the recovered entries are not stored"))
			break
		}
		if err != nil {
			return p.stop(err)
		}
		doc := r.Readable()
		whole = whole && len(r.Gaps) == 0
		if err := p.step(doc, func() error { return k.read(r, doc) }); err != nil {
			return p.stop(err)
		}
		if doc == nil {
			continue
		}
		brought = brought || doc.Response.Requested != f.address()
		if src.Mark != nil { // what is stored need not be requested again
			p.commits.gather()
			if err := p.commits.drain(); err != nil {
				return p.stop(err)
			}
		}
	}
	l.crossOut(func(d debt) bool { return d.From == k.source && d.Reason == feedhistory.ReasonInterrupted })
	k.end(whole, brought)
	return p.finish()
}

// A keeper is a Keep under way.
type keeper struct {
	*poll
	src    Source
	source string // its Name, as debt.From has it
}

// read takes a document, and the gaps with it; doc is nil if there are these alone.
func (k *keeper) read(r *feedhistory.Reading, doc *feedhistory.Document) error {
	for _, gap := range r.Gaps {
		k.oweOfSource(gap)
	}
	if doc == nil {
		return nil
	}
	if err := k.ingest(doc); err != nil {
		return err
	}
	k.goesOn(doc.Response.Requested)
	return nil
}

// oweOfSource enters a gap of the source, in place of an earlier one like it.
func (k *keeper) oweOfSource(gap *feedhistory.Gap) {
	d := newDebt(gap)
	d.From, d.Found = k.source, k.now
	k.ledger.crossOut(func(old debt) bool { return old.URL == d.URL && old.From == k.source && old.Reason == d.Reason })
	k.owe(d)
	k.changes.More = k.changes.More || d.Reason == feedhistory.ReasonBudget
}

// goesOn notes, in the commit of a document, the possibility of more documents. It
// removes the gap left there by an earlier Keep.
func (k *keeper) goesOn(url string) {
	k.ledger.crossOut(func(d debt) bool {
		return d.From == k.source && d.URL == url && d.Found.Before(k.now) && d.Reason != feedhistory.ReasonMissedWindow
	})
	if k.src.Mark != nil && !k.allowance.full { // otherwise some documents must come again
		if mark := k.src.Mark(); mark != nil {
			k.feed.Mark = mark
		}
	}
	k.owe(debt{
		URL: k.feed.address(), From: k.source, Reason: feedhistory.ReasonInterrupted, Found: k.now,
		Message: "its history has not been read to the end yet",
	})
}

// end processes the source's result at its end: whether there was no gap, and whether it has
// brought more than the feed's own document.
func (k *keeper) end(whole, brought bool) {
	f := k.feed
	isProven, asOf := false, time.Time{}
	k.ledger.AsOf, k.ledger.Counted = time.Time{}, 0
	if k.src.End != nil && !k.allowance.full {
		var mark json.RawMessage
		if mark, isProven, asOf = k.src.End(); mark != nil {
			f.Mark = mark
		}
	}
	k.ledger.Census = censusOf(k.src.Name, isProven)
	if isProven && !asOf.IsZero() {
		k.ledger.AsOf, k.ledger.Counted = asOf, f.Entries
	}
	if whole { // everything missed by polls is here now
		k.ledger.crossOut(func(d debt) bool { return d.isMissed() && (brought || isProven) || isProven && d.From == k.source })
	}
}

// ReadMark decodes the Mark left with a feed by the source of the given name into mark.
// If there is no such Mark, mark stays unchanged. The error comes from the Store or
// from encoding/json.
func (m *Mirror) ReadMark(ctx context.Context, url, source string, mark any) error {
	if err := m.check(); err != nil {
		return err
	}
	feed, err := m.Store.Feed(ctx, iri.WithoutFragment(url))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || feed.Source != source || len(feed.Mark) == 0 {
		return err
	}
	if err := json.Unmarshal(feed.Mark, mark); err != nil {
		return fmt.Errorf("%s: the stored mark: %w", url, err)
	}
	return nil
}

// sourceGap returns a gap for entries of the poll's source that do not fit.
func (k *keeper) sourceGap(message string) debt {
	return debt{
		URL: k.feed.address(), From: k.source, Reason: feedhistory.ReasonLimit, Quota: true, Found: k.now, Message: message,
	}
}

// ingest merges a document.
func (k *keeper) ingest(doc *feedhistory.Document) error {
	rank := rankOf(doc, k.chain.rank)
	k.chain.rank = Rank{Time: rank.Time, Seq: rank.Seq - 1}
	m, err := k.merger.merge(source{doc: doc, rank: rank, archive: true, replaces: doc.Complete, stamp: k.src.Stamp})
	if err != nil {
		return err
	}
	k.changes.Documents++
	k.commits.held = &m.change
	f := k.feed
	if m.refused > 0 {
		k.owe(k.sourceGap(fmt.Sprintf("recovered entries that are not stored: %d", m.refused)))
	}
	f.Title = cmp.Or(f.Title, doc.Title)
	if f.Head == "" {
		f.Head = headOf(doc)
	}
	if doc.Complete && len(doc.Missing(feedhistory.KindPlain)) == 0 {
		return k.complete(m)
	}
	return nil
}
