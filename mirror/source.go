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
	f := p.feed
	l := p.ledger
	f.Source, p.source = src.Name, sourceGap+src.Name
	l.Kind = cmp.Or(l.Kind, feedhistory.KindPlain) // or the feed itself would have a history
	l.Census = censusOf(src.Name, l.Census == provenCensus)
	l.crossOut(func(d debt) bool {
		return d.From == sourceGap || // stay only while no source was known
			d.From == p.source && (!src.Adds && d.Kind != debtCount || d.isCut())
	})
	whole, brought := true, false
	for r, err := range src.Readings {
		if p.allowance.full && (err != nil || !r.End) { // the rest would not fit either
			whole = false
			p.owe(p.sourceGap("some of the recovered entries are not stored"))
			break
		}
		if err != nil {
			return p.stop(err)
		}
		doc := r.Readable()
		if err := p.makeRoom(doc); err != nil {
			return p.stop(err)
		}
		for _, gap := range r.Gaps {
			p.oweOfSource(gap)
			whole = false
		}
		if doc == nil {
			continue
		}
		p.snapshot, p.merger.digests = f.clone(), newDigests()
		if err := p.ingest(doc, src.Stamp); err != nil {
			return p.stop(err)
		}
		p.snapshot = nil
		brought = brought || doc.Response.Requested != f.address()
		p.goesOn(src, doc.Response.Requested)
		if src.Mark != nil { // what is stored need not be requested again
			p.commits.gather()
			if err := p.commits.drain(); err != nil {
				return p.stop(err)
			}
		}
	}
	l.crossOut(func(d debt) bool { return d.From == p.source && d.Reason == feedhistory.ReasonInterrupted })
	p.end(src, whole, brought)
	return p.finish()
}

// oweOfSource enters a gap of the source, in place of an earlier one like it.
func (p *poll) oweOfSource(gap *feedhistory.Gap) {
	d := newDebt(gap)
	d.From, d.Found = p.source, p.now
	p.ledger.crossOut(func(old debt) bool { return old.URL == d.URL && old.From == p.source && old.Reason == d.Reason })
	p.owe(d)
	p.changes.More = p.changes.More || d.Reason == feedhistory.ReasonBudget
}

// goesOn notes, in the commit of a document, the possibility of more documents. It
// removes the gap left there by an earlier Keep.
func (p *poll) goesOn(src Source, url string) {
	p.ledger.crossOut(func(d debt) bool {
		return d.From == p.source && d.URL == url && d.Found.Before(p.now) && d.Reason != feedhistory.ReasonMissedWindow
	})
	if src.Mark != nil && !p.allowance.full { // otherwise some documents must come again
		if mark := src.Mark(); mark != nil {
			p.feed.Mark = mark
		}
	}
	p.owe(debt{
		URL: p.feed.address(), From: p.source, Reason: feedhistory.ReasonInterrupted, Found: p.now,
		Message: "its history has not been read to the end yet",
	})
}

// end processes the source's result at its end: whether there was no gap, and whether it has
// brought more than the feed's own document.
func (p *poll) end(src Source, whole, brought bool) {
	f := p.feed
	isProven, asOf := false, time.Time{}
	p.ledger.AsOf, p.ledger.Counted = time.Time{}, 0
	if src.End != nil && !p.allowance.full {
		var mark json.RawMessage
		if mark, isProven, asOf = src.End(); mark != nil {
			f.Mark = mark
		}
	}
	p.ledger.Census = censusOf(src.Name, isProven)
	if isProven && !asOf.IsZero() {
		p.ledger.AsOf, p.ledger.Counted = asOf, f.Entries
	}
	if whole { // everything missed by polls is here now
		p.ledger.crossOut(func(d debt) bool { return d.isMissed() && (brought || isProven) || isProven && d.From == p.source })
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
func (p *poll) sourceGap(message string) debt {
	return debt{
		URL: p.feed.address(), From: p.source, Reason: feedhistory.ReasonLimit, Quota: true, Found: p.now, Message: message,
	}
}

func (p *poll) ingest(doc *feedhistory.Document, stamp func(*feedhistory.Entry) time.Time) error {
	rank := rankOf(doc, p.chain.rank)
	p.chain.rank = Rank{Time: rank.Time, Seq: rank.Seq - 1}
	m, err := p.merger.merge(source{doc: doc, rank: rank, archive: true, replaces: doc.Complete, stamp: stamp})
	if err != nil {
		return err
	}
	p.changes.Documents++
	p.commits.held = &m.change
	f := p.feed
	if m.refused > 0 {
		p.owe(p.sourceGap(fmt.Sprintf("recovered entries that are not stored: %d", m.refused)))
	}
	f.Title = cmp.Or(f.Title, doc.Title)
	if f.Head == "" {
		f.Head = headOf(doc)
	}
	if doc.Complete && len(doc.Missing(feedhistory.KindPlain)) == 0 {
		return p.complete(m)
	}
	return nil
}
