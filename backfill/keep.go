package backfill

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Keep recovers, into a mirror's store, what a feed there does not declare: of a
// plain feed, once, and again where a poll has missed entries. What trying
// brought to light is remembered there, so that nothing is tried twice; the
// feed's Source is then the method's name. Where there is nothing to do, which is
// so of most feeds at most times, nothing is requested, and the changes are nil.
//
// A walk that has gaps is repeated by the next Keep. The error is the store's,
// mirror.ErrNotFound if it does not have the feed, or the context's.
func (b *Backfill) Keep(ctx context.Context, m *mirror.Mirror, url string) (*mirror.Changes, error) {
	feed, err := m.Store.Feed(ctx, url)
	if err != nil {
		return nil, err
	}
	var from Probe
	if len(feed.Mark) > 0 {
		if err := json.Unmarshal(feed.Mark, &from); err != nil || feed.Source != "" && feed.Source != from.Method {
			return nil, nil // the mark is another's
		}
	}
	if feed.Kind != feedhistory.Plain || feed.Known.URL == "" || !b.wants(feed, from) {
		return nil, nil
	}
	address := feed.Address
	if address == "" {
		address = feed.URL
	}
	w := b.Walk(ctx, address, from, nil)
	next, stop := iter.Pull2(w.Documents())
	defer stop()
	first, firstErr, _ := next() // the feed's own document
	doc, err, more := next()     // now it is known which method it is, if any
	if firstErr != nil && ctx.Err() == nil {
		firstErr = feedhistory.NewGap(address, firstErr)
	}
	name := w.probe.Method
	if name == None {
		name = ""
	}
	whole := firstErr == nil
	return m.Merge(ctx, url, mirror.Source{
		Name: name,
		Documents: func(yield func(*feedhistory.Document, error) bool) {
			if !yield(first, firstErr) {
				return
			}
			for ; more; doc, err, more = next() {
				if whole = whole && err == nil; !yield(doc, err) {
					return
				}
			}
		},
		End: func() (json.RawMessage, bool) {
			if !whole || w.probe.Method == "" {
				return nil, false
			}
			mark, _ := json.Marshal(w.probe) // words and numbers
			return mark, w.probe.Proven
		},
	})
}

// wants reports whether there is something to recover.
func (b *Backfill) wants(feed *mirror.Feed, from Probe) bool {
	missed := false
	for _, g := range feed.Gaps {
		missed = missed || g.Reason == feedhistory.ReasonMissedWindow
	}
	switch from.Method {
	case "":
		return true
	case None:
		return missed && b.asksAnArchive()
	}
	return missed
}

// asksAnArchive reports whether there is a method that None says nothing of.
func (b *Backfill) asksAnArchive() bool {
	for _, m := range b.methods() {
		if _, ok := m.(Memento); ok {
			return true
		}
	}
	return false
}
