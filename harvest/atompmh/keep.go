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
// document in memory, and an interrupted harvest continues at the next one by itself.
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
		Name: sourceName, Documents: k.documents(ctx), Adds: k.resumed, Mark: k.mark, End: k.end,
	})
}

// A keepState is the Mark of the last whole harvest, with the place of a later,
// interrupted one.
type keepState struct {
	Mark
	Pieces []piece           `json:"pieces,omitempty"` // parts of the chain still to read
	Newest time.Time         `json:"newest,omitzero"`  // newest time of all entries in the parts read
	Top    feedhistory.Known `json:"top,omitzero"`     // the subscription document of the interrupted harvest
}

// A piece is a part of the chain: from one document to the first one older than a time.
type piece struct {
	Next  string    `json:"next"`
	Until time.Time `json:"until,omitzero"` // zero: to the end of the chain
	Once  bool      `json:"once,omitempty"` // only the one document, which was damaged
}

// top returns the mark for the newest part of the chain.
func (s *keepState) top() Mark {
	if len(s.Pieces) == 0 {
		return s.Mark
	}
	return Mark{Time: s.Newest, Subscription: s.Top}
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
	begun   bool            // the subscription document has been read
	ended   map[string]bool // addresses beyond the parts to read
	left    bool            // Merge wants no more
	whole   bool
}

// documents yields the documents to merge, newest first, and the gaps.
func (k *keeper) documents(ctx context.Context) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		client, done := plain.Or(k.HTTP)
		defer done()
		from := k.state.top()
		k.yield, k.r = yield, newReading(from, true)
		options := &feedhistory.WalkOptions{
			Processed: func(url string) bool { return k.ended[url] },
			Known: func(url string) feedhistory.Known {
				if url == withoutFragment(k.URL) {
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
			if k.left {
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
			k.miss(gap)
		}
		return nil
	}
	if unchanged, ok := errors.AsType[*feedhistory.Unchanged](err); ok {
		k.r.unchanged, k.begun, k.r.now = true, true, time.Now()
		k.stopAt(unchanged.Known.Older)
		return nil
	}
	switch {
	case err != nil:
		return err
	case doc.Format != feedhistory.Atom && !k.begun:
		return notAtom(doc)
	case doc.Format != feedhistory.Atom:
		gap := feedhistory.NewGap(doc.URL, notAtom(doc))
		gap.Reason = feedhistory.ReasonNotFeed
		k.r.gaps = append(k.r.gaps, gap)
		return nil
	}
	damage := doc.Missing(feedhistory.Plain)
	k.r.gaps = append(k.r.gaps, damage...)
	if !k.begun {
		k.begin(doc)
	}
	older := ""
	if link, ok := doc.Older(); ok {
		older = withoutFragment(link.Href)
	}
	if k.collect {
		if !k.r.add(doc) {
			k.stopAt(older)
		}
		return nil
	}
	k.take(doc, older, len(damage) > 0)
	return nil
}

// begin decides, by the subscription document, how to harvest.
func (k *keeper) begin(doc *feedhistory.Document) {
	k.begun = true
	from := k.r.from
	k.r.begin(doc)
	k.collect = doc.Complete || from.Complete || k.r.all && !from.IsZero()
	if k.collect {
		k.r.first = nil // add begins again
		return
	}
	if len(k.state.Pieces) == 0 {
		k.state.Newest = k.r.newest
	}
	k.state.Top = k.r.subscription()
	if k.current = (piece{Until: from.Time}); k.r.toTheEnd {
		k.current.Until = time.Time{}
	}
}

// take merges a document, and notes where to continue.
func (k *keeper) take(doc *feedhistory.Document, older string, damaged bool) {
	if first := k.r.first; first != nil && doc.URL == first.URL && doc != first {
		k.r.first, k.state.Top = doc, k.r.subscription() // read again, because an archive was missing
	}
	if i := slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == doc.Response.Requested }); i >= 0 {
		k.current = k.state.Pieces[i]
	}
	was := k.current.Next
	k.r.documents++
	known := len(doc.Entries) > 0 && updatedOf(doc).Before(k.current.Until)
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
		if k.left = !k.yield(layer, nil); k.left {
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

// advance moves the current part from one address to the next; "" is its end. Where
// it meets another part, they become one, which reaches as far back as either. The
// parts stay in the order of the chain, newest first, because a walk never goes back
// to a document it has read.
func (k *keeper) advance(was, next string) {
	at := max(0, slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == was }))
	k.state.Pieces = slices.DeleteFunc(k.state.Pieces, func(p piece) bool { return p.Next == was })
	if k.current.Next = next; next == "" {
		return
	}
	i := slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == next })
	if i < 0 {
		k.state.Pieces = slices.Insert(k.state.Pieces, min(at, len(k.state.Pieces)), k.current)
		return
	}
	if p := &k.state.Pieces[i]; k.current.Until.Before(p.Until) {
		p.Until = k.current.Until
	}
	k.state.Pieces[i].Once = false
}

// stopAt keeps the walk from going beyond a document, unless a part still to read
// begins there.
func (k *keeper) stopAt(older string) {
	begins := slices.ContainsFunc(k.state.Pieces, func(p piece) bool { return p.Next == older })
	if older != "" && !begins {
		k.ended[older] = true
	}
}

// miss processes the readable part of a damaged document. The part of the chain
// beginning there is still to be read.
func (k *keeper) miss(gap *feedhistory.Gap) {
	doc := gap.Document
	if doc == nil || doc.Format != feedhistory.Atom || k.collect {
		if k.collect {
			k.r.miss(gap)
			return
		}
		k.r.gaps = append(k.r.gaps, gap)
		return
	}
	for _, layer := range k.layers(doc) {
		if k.left = k.left || !k.yield(layer, nil); k.left {
			return
		}
	}
	without := *gap
	without.Document = nil // Merge would take it as it is
	k.r.gaps = append(k.r.gaps, &without)
}

// finish yields the collected documents and the gaps, and sets the next state.
func (k *keeper) finish() {
	if k.collect {
		for _, doc := range k.collected() {
			if k.left = k.left || !k.yield(doc, nil); k.left {
				return
			}
		}
	}
	for _, gap := range k.r.gaps {
		if k.left = k.left || !k.yield(nil, gap); k.left {
			return
		}
	}
	if k.left || len(k.r.gaps) > 0 {
		return
	}
	switch {
	case k.collect:
		k.state = keepState{Mark: k.r.outcome(k.Overlap).next}
	case len(k.state.Pieces) > 0:
		return
	case k.resumed || !k.r.unchanged:
		k.state = keepState{Mark: Mark{Time: back(k.state.Newest, k.Overlap), Subscription: k.state.Top}}
	}
	k.whole = true
}

// mark returns the place after the last document.
func (k *keeper) mark() json.RawMessage {
	if k.collect {
		return nil
	}
	text, _ := json.Marshal(k.state) // cannot fail, because all times in it can be written: see isTime
	return text
}

// end returns the next state, and whether all records have come. A feed committed as a
// whole is harvested again if something is missing.
func (k *keeper) end() (json.RawMessage, bool) {
	if k.collect && !k.whole {
		return nil, false
	}
	text, _ := json.Marshal(k.state)
	return text, k.whole
}
