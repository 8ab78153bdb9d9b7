package atompmh

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/mirror"
)

// sourceName is the Source of a mirrored feed.
const sourceName = "atom-pmh"

// Keep harvests into a mirror's store, from the mark stored with its feed there.
// So the store has each record's present state, its history and its deletion. The
// URL of the feed is the Harvester's.
//
// Keep commits document after document, each with its place in the chain. It has one
// document in memory at a time, and an interrupted harvest continues at the next one by itself;
// if that is gone, because the producer has renumbered its archives, at the newest.
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
	return m.Keep(ctx, h.URL, mirror.Source{
		Name: sourceName, Readings: k.readings(ctx), Adds: k.resumed, Mark: k.mark, End: k.ending,
	})
}

// A keeper is one Keep.
type keeper struct {
	*Harvester
	state  keepState
	ranges []mediaRange
	yield  func(*feedhistory.Reading, error) bool

	r       *reading
	resumed bool            // an earlier harvest was cut short
	collect bool            // everything is committed at once
	restart bool            // an archive is complete, so everything must be committed at once after all
	current piece           // the part of the chain being read; its Next is not yet read
	ended   map[string]bool // addresses beyond the parts to read
	end     keepEnd
}

// A keepEnd is how a Keep has ended.
type keepEnd uint8

const (
	notEnded keepEnd = iota
	stopped          // Keep wants no more
	whole            // everything was read
)

// deliver yields a Reading to Keep, or the last error, and reports whether Keep wants more.
func (k *keeper) deliver(r *feedhistory.Reading, err error) bool {
	if k.end != stopped && !k.yield(r, err) {
		k.end = stopped
	}
	return k.end != stopped
}

// readings yields the documents to merge, newest first, and the gaps.
func (k *keeper) readings(ctx context.Context) iter.Seq2[*feedhistory.Reading, error] {
	return func(yield func(*feedhistory.Reading, error) bool) {
		client, done := k.client()
		defer done()
		client.PerHost = 1 // a document requested in advance would be requested again after a kill
		from := k.state.top()
		k.r = k.newReading(ctx, from, true)
		defer func() { k.r.close() }()
		k.yield = yield
		w := walker{document: k.read, miss: k.miss, unchanged: k.stopAt, ended: func(url string) bool { return k.ended[url] }}
		for _, p := range k.state.Pieces {
			w.pending = append(w.pending, p.Next)
		}
		err := k.r.walk(ctx, client, w)
		if k.restart || err == nil && k.end != stopped && k.isRenumbered() {
			k.r.close()
			k.r, k.ended, w.pending = k.newReading(ctx, k.state.mark, true), map[string]bool{}, nil
			if !k.restart {
				k.state, k.resumed = keepState{mark: k.state.mark}, false
			}
			err = k.r.walk(ctx, client, w)
			k.noteGone()
		}
		if err != nil {
			k.deliver(nil, err)
		} else if k.end != stopped {
			k.finish()
		}
	}
}

// isRenumbered reports whether a part of the chain still to read began at an address that is
// gone: a producer may change the addresses of its archives (§ Changing archive documents and
// URI). Then the chain is read again, from its beginning to the last whole harvest's mark.
func (k *keeper) isRenumbered() bool {
	return k.resumed && k.r.first != nil && slices.ContainsFunc(k.state.Pieces, func(p piece) bool {
		return k.isGone(p.Next) && p.Older != olderThan(k.r.first)
	})
}

func (k *keeper) isGone(address string) bool {
	return slices.ContainsFunc(k.r.gaps, func(g *feedhistory.Gap) bool { return errors.Is(g, fs.ErrNotExist) && g.URL == address })
}

// noteGone notes the addresses that are gone although the chain leads there: it is not read again
// for them until it begins with another archive.
func (k *keeper) noteGone() {
	for i, p := range k.state.Pieces {
		if k.r.first != nil && k.isGone(p.Next) {
			k.state.Pieces[i].Older = olderThan(k.r.first)
		}
	}
}

// read processes a document, and reports whether more are wanted.
func (k *keeper) read(doc *feedhistory.Document, damaged bool) (more bool, err error) {
	if !k.r.hasBegun() {
		k.begin(doc)
	}
	if doc.Complete && !k.collect {
		k.restart = true
		return false, nil
	}
	older := olderThan(doc)
	if !k.collect {
		k.merge(doc, older, damaged)
		return k.end != stopped, nil
	}
	if more, err = k.r.add(doc, damaged); !more {
		k.stopAt(older)
	}
	return true, err
}

// begin decides, by the subscription document, how to harvest.
func (k *keeper) begin(doc *feedhistory.Document) {
	from := k.r.from
	k.r.begin(doc)
	k.collect = k.restart || doc.Complete || from.Complete || k.r.scope == everything && !from.isZero()
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

// merge merges a document, and notes where to continue.
func (k *keeper) merge(doc *feedhistory.Document, older string, damaged bool) {
	if first := k.r.first; first != nil && doc.URL == first.URL && doc != first {
		k.r.again(doc)
		k.state.Top = k.r.subscription()
	}
	if i := slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == doc.Response.Requested }); i >= 0 {
		k.current = k.state.Pieces[i]
		if newer, ok := doc.Links.Rel("next-archive"); ok {
			k.ended[iri.Address(newer.Href)] = true // an earlier harvest has come from there
		}
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
		if !k.deliver(&feedhistory.Reading{Document: layer}, nil) {
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
	if doc == nil || doc.Format != feedhistory.FormatAtom {
		k.r.gaps = append(k.r.gaps, gap)
		return nil
	}
	for _, layer := range k.layers(doc) {
		if !k.deliver(&feedhistory.Reading{Document: layer}, nil) {
			return errStopped
		}
	}
	without := *gap
	without.Document = nil // Keep would take it as it is
	k.r.gaps = append(k.r.gaps, &without)
	return nil
}

var errStopped = errors.New("stopped")

// finish yields the collected documents and the gaps, and sets the next state.
func (k *keeper) finish() {
	if k.collect {
		docs, err := k.collected()
		if err != nil {
			k.deliver(nil, err)
			return
		}
		for _, doc := range docs {
			if !k.deliver(&feedhistory.Reading{Document: doc}, nil) {
				return
			}
		}
	}
	if len(k.r.gaps) > 0 && !k.deliver(&feedhistory.Reading{Gaps: k.r.gaps}, nil) {
		return
	}
	if k.end == stopped || len(k.r.gaps) > 0 {
		return
	}
	switch {
	case k.collect:
		k.state = keepState{mark: k.r.outcome().next}
	case len(k.state.Pieces) > 0:
		return
	case k.resumed || !k.r.unchanged:
		last := mark{Time: back(k.state.Newest, k.Overlap), Subscription: k.state.Top}
		if !k.resumed { // otherwise only the newest part of the chain was read now
			last.Chain = k.r.chain.next()
		}
		k.state = keepState{mark: last}
	}
	k.end = whole
	k.reportKnown(k.r)
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
func (k *keeper) ending() (json.RawMessage, bool, time.Time) {
	if k.collect && k.end != whole {
		return nil, false, time.Time{}
	}
	text, _ := json.Marshal(k.state)
	return text, k.end == whole, time.Time{}
}

// A keepState is the mark of the last whole harvest, with the place of a later,
// interrupted one.
type keepState struct {
	mark
	Pieces []piece           `json:"pieces,omitempty"` // parts of the chain still to read
	Newest time.Time         `json:"newest,omitzero"`  // newest time of all entries in the parts read
	Top    feedhistory.Known `json:"top,omitzero"`     // the subscription document of the interrupted harvest
}

// A piece is a part of the chain: from one document to the first one older than a time.
type piece struct {
	Next  string    `json:"next"`
	Until time.Time `json:"until,omitzero"` // zero: to the end of the chain
	Once  bool      `json:"once,omitempty"` // only the one document, which was damaged

	Older string `json:"older,omitempty"` // the newest archive when Next was gone although the chain led there
}

// top returns the mark for the newest part of the chain.
func (s *keepState) top() mark {
	if len(s.Pieces) == 0 {
		return s.mark
	}
	return mark{Time: s.Newest, Subscription: s.Top}
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

// layers returns a document's records and deletions as documents to merge: the
// latest entry of each record first, then the one before it, and so on, because in each
// document that a mirror merges an entry stands once.
func (k *keeper) layers(doc *feedhistory.Document) []*feedhistory.Document {
	type layered struct {
		version
		*feedhistory.Entry
	}
	byID := map[string][]layered{}
	var ids []string
	for _, e := range doc.Entries {
		v := layered{version{e.Updated, kindOf(e)}, e}
		if v.kind == Other {
			continue
		}
		if e.Updated.After(k.state.Newest) && !e.Updated.After(k.r.now) {
			k.state.Newest = e.Updated.UTC()
		}
		if len(byID[e.ID]) == 0 {
			ids = append(ids, e.ID)
		}
		byID[e.ID] = append(byID[e.ID], v)
	}
	var layers []*feedhistory.Document
	for _, id := range ids {
		versions := byID[id]
		slices.SortStableFunc(versions, func(a, b layered) int {
			if a.supersedes(b.version) {
				return -1
			} else if b.supersedes(a.version) {
				return 1
			}
			return 0
		})
		for i, v := range versions {
			layers = put(layers, i, doc, k.choose(change(v.Entry, v.kind), k.ranges))
		}
	}
	return layers
}

// put adds a change to one of the documents to merge, with the head section of another.
func put(layers []*feedhistory.Document, i int, head *feedhistory.Document, c Change) []*feedhistory.Document {
	for i >= len(layers) {
		layers = append(layers, &feedhistory.Document{
			URL: head.URL, Title: head.Title, ID: head.ID, Format: head.Format, Updated: head.Updated, Response: head.Response,
		})
	}
	switch layer := layers[i]; c.Kind {
	case Record:
		layer.Entries = append(layer.Entries, c.Entry)
	case Deleted:
		layer.Deleted = append(layer.Deleted, feedhistory.Tombstone{Ref: c.ID, When: c.Time})
	}
	return layers
}

// collected returns the changes of a feed committed as a whole: first a document with
// the present records, which replaces all others if there are no others; then their
// history, newest first, with at most one entry of each record in a document.
func (k *keeper) collected() ([]*feedhistory.Document, error) {
	head := *k.r.first
	head.Response = feedhistory.Response{} // they are several documents
	layers := put(nil, 0, &head, Change{Kind: Other})
	for c, err := range k.r.changes() {
		if err != nil {
			return nil, err
		}
		layers = put(layers, 0, &head, k.choose(c, k.ranges))
		for i, e := range slices.Backward(c.Historical) {
			layers = put(layers, len(c.Historical)-i, &head, Change{Kind: Record, Entry: e})
		}
	}
	layers[0].Complete = k.r.scope == everything && k.r.whole()
	return slices.DeleteFunc(layers, func(doc *feedhistory.Document) bool {
		return len(doc.Entries)+len(doc.Deleted) == 0 && !doc.Complete
	}), nil
}
