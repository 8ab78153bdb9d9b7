package atompmh

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/mirror"
)

// sourceName is the Source of a mirrored feed.
const sourceName = "atom-pmh"

// Keep harvests into a mirror's store, from the mark stored with its feed there.
// So the store has each record's present state, its history and its deletion. The
// URL of the feed is the Harvester's.
//
// Keep commits document after document, each with its place in the chain. It has one
// document in memory at a time, and an interrupted harvest continues at the next one by itself.
// The order does not matter: the store's duplicate rules give the latest entry of each
// record. Two kinds of feed need all documents at once, and are committed as a whole:
// one that is or was complete (RFC 5005 §2), and one set back to an earlier state.
//
// Keep leaves out entries of kind Other. Missing documents are among the Gaps of the
// result, and the next Keep asks for them again. The error is that of the subscription
// document, the store's or the context's.
func (h *Harvester) Keep(ctx context.Context, m *mirror.Mirror) (*mirror.Report, error) {
	k := &keeper{Harvester: h, ended: map[string]bool{}}
	if err := m.ReadMark(ctx, h.URL, sourceName, &k.state); err != nil {
		return nil, err
	}
	k.resumed = len(k.state.Pieces) > 0
	var err error
	if k.ranges, err = readRanges(h.Accept); err != nil {
		return nil, err
	}
	return m.Merge(ctx, h.URL, mirror.Source{
		Name: sourceName, Documents: k.documents(ctx), Adds: k.resumed, Mark: k.mark, End: k.ending,
	})
}

// A keeper is one Keep.
type keeper struct {
	*Harvester
	state  keepState
	ranges []mediaRange
	yield  func(*feedhistory.Document, error) bool

	r       *reading
	resumed bool            // an earlier harvest was cut short
	collect bool            // everything is committed at once
	current piece           // the part of the chain being read; its Next is not yet read
	ended   map[string]bool // addresses beyond the parts to read
	end     keepEnd
}

// A keepEnd is how a Keep has ended.
type keepEnd uint8

const (
	notEnded keepEnd = iota
	left             // Merge wants no more
	whole            // everything was read
)

// hand yields a document or a gap to Merge, and reports whether Merge wants more.
func (k *keeper) hand(doc *feedhistory.Document, gap error) bool {
	if k.end != left && !k.yield(doc, gap) {
		k.end = left
	}
	return k.end != left
}

// documents yields the documents to merge, newest first, and the gaps.
func (k *keeper) documents(ctx context.Context) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		client, done := plain.Client(k.HTTP)
		defer done()
		client.Policy.PerHost = 1 // a document requested in advance would be requested again after a kill
		from := k.state.top()
		var err error
		if k.r, err = k.newReading(from, true); err != nil {
			yield(nil, err)
			return
		}
		k.yield = yield
		options := &feedhistory.WalkOptions{
			Processed: func(url string) bool { return k.ended[url] },
			Known: func(url string) feedhistory.Known {
				if url == withoutFragment(k.URL) && !k.WholeChain {
					return from.Subscription
				}
				return feedhistory.Known{}
			},
		}
		for _, p := range k.state.Pieces {
			options.Pending = append(options.Pending, p.Next)
		}
		for doc, err := range client.Walk(k.with(ctx), k.URL, options) {
			if err := k.read(doc, err); err != nil {
				yield(nil, err)
				return
			}
			if k.end == left {
				return
			}
		}
		k.finish()
	}
}

// read processes the walk's documents and errors. An error ends the harvest.
func (k *keeper) read(doc *feedhistory.Document, err error) error {
	if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
		if gap.From != gap.URL || gap.Reason != feedhistory.ReasonMalformed { // otherwise it is damage, which the document has told
			return k.miss(gap)
		}
		return nil
	}
	if unchanged, ok := errors.AsType[*feedhistory.Unchanged](err); ok {
		k.r.unchanged, k.r.now = true, time.Now()
		k.stopAt(unchanged.Known.Older)
		return nil
	}
	switch {
	case err != nil:
		return err
	case doc.Format != feedhistory.Atom && !k.r.hasBegun():
		return notAtom(doc)
	case doc.Format != feedhistory.Atom:
		gap := feedhistory.NewGap(doc.URL, notAtom(doc))
		gap.Reason = feedhistory.ReasonNotFeed
		k.r.gaps = append(k.r.gaps, gap)
		return nil
	}
	damage := doc.Missing(feedhistory.Plain)
	k.r.gaps = append(k.r.gaps, damage...)
	if !k.r.hasBegun() {
		k.begin(doc)
	}
	older := olderThan(doc)
	if k.collect {
		more, err := k.r.add(doc)
		if !more {
			k.stopAt(older)
		}
		return err
	}
	k.take(doc, older, len(damage) > 0)
	return nil
}

// begin decides, by the subscription document, how to harvest.
func (k *keeper) begin(doc *feedhistory.Document) {
	from := k.r.from
	k.r.begin(doc)
	k.collect = doc.Complete || from.Complete || k.r.scope == everything && !from.IsZero()
	if k.collect {
		k.r.first = nil // add begins again
		return
	}
	if len(k.state.Pieces) == 0 {
		k.state.Newest = k.r.newest
	}
	k.state.Top = k.r.subscription()
	if k.current = (piece{Until: from.Time}); k.r.scope != sinceMark {
		k.current.Until = time.Time{}
	}
}

// take merges a document, and notes where to continue.
func (k *keeper) take(doc *feedhistory.Document, older string, damaged bool) {
	if first := k.r.first; first != nil && doc.URL == first.URL && doc != first {
		k.r.again(doc)
		k.state.Top = k.r.subscription()
	}
	if i := slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == doc.Response.Requested }); i >= 0 {
		k.current = k.state.Pieces[i]
	}
	was := k.current.Next
	k.r.documents++
	known := k.r.isKnown(doc) || len(doc.Entries) > 0 && updatedOf(doc).Before(k.current.Until)
	over := known || older == "" || k.current.Once
	if over {
		k.stopAt(older)
		older = ""
	}
	var layers []*feedhistory.Document
	if !known {
		layers = k.layers(doc)
	}
	for i, layer := range layers {
		if i == len(layers)-1 {
			k.advance(was, older)
		}
		if !k.hand(layer, nil) {
			return
		}
	}
	if len(layers) == 0 {
		k.advance(was, older)
	}
	switch {
	case damaged && doc == k.r.first:
		k.state.Top = feedhistory.Known{} // to be read again, even if it stays the same
	case damaged:
		k.state.Pieces = append(k.state.Pieces, piece{Next: doc.Response.Requested, Once: true})
	}
}

// miss processes the readable part of a damaged document. The part of the chain
// beginning there is still to be read.
func (k *keeper) miss(gap *feedhistory.Gap) error {
	if k.collect {
		return k.r.miss(gap)
	}
	doc := gap.Document
	if doc == nil || doc.Format != feedhistory.Atom {
		k.r.gaps = append(k.r.gaps, gap)
		return nil
	}
	for _, layer := range k.layers(doc) {
		if !k.hand(layer, nil) {
			return nil
		}
	}
	without := *gap
	without.Document = nil // Merge would take it as it is
	k.r.gaps = append(k.r.gaps, &without)
	return nil
}

// finish yields the collected documents and the gaps, and sets the next state.
func (k *keeper) finish() {
	if k.collect {
		docs, err := k.collected()
		if err != nil {
			k.hand(nil, err)
			return
		}
		for _, doc := range docs {
			if !k.hand(doc, nil) {
				return
			}
		}
	}
	for _, gap := range k.r.gaps {
		if !k.hand(nil, gap) {
			return
		}
	}
	if k.end == left || len(k.r.gaps) > 0 {
		return
	}
	switch {
	case k.collect:
		k.state = keepState{Mark: k.r.outcome().next}
	case len(k.state.Pieces) > 0:
		return
	case k.resumed || !k.r.unchanged:
		mark := Mark{Time: back(k.state.Newest, k.Overlap), Subscription: k.state.Top}
		if !k.resumed { // otherwise only the newest part of the chain was read now
			mark.Chain = k.r.chain.next()
		}
		k.state = keepState{Mark: mark}
	}
	k.end = whole
	k.tellKnown(k.r)
}

// mark returns the place after the last document.
func (k *keeper) mark() json.RawMessage {
	if k.collect {
		return nil
	}
	text, _ := json.Marshal(k.state) // cannot fail, because all times in it can be written: see isTime
	return text
}

// ending returns the next state, and whether all records have come. A feed committed as a
// whole is harvested again if something is missing.
func (k *keeper) ending() (json.RawMessage, bool) {
	if k.collect && k.end != whole {
		return nil, false
	}
	text, _ := json.Marshal(k.state)
	return text, k.end == whole
}
