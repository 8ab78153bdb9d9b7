package atompmh

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// sourceName is the Source of a mirrored feed.
const sourceName = "atom-pmh"

// Keep harvests into a mirror's store, from the mark that is stored with its
// feed there. So the store has each record's present state, its history and its
// deletion, and the next harvest makes up for one that is not whole. The URL of
// the feed is the Harvester's.
//
// Changes are committed before the mark, which is stored with the last of them;
// after a crash some come again, which does no harm. Keep leaves out entries of
// kind Other. What is missing is among the Gaps of the result. The error is
// that of the subscription document, the store's or the context's.
func (h *Harvester) Keep(ctx context.Context, m *mirror.Mirror) (*mirror.Changes, error) {
	var from Mark
	if err := m.ReadMark(ctx, h.URL, sourceName, &from); err != nil {
		return nil, err
	}
	all := *h
	all.Historical = true
	harvest := all.Harvest(ctx, from)
	return m.Merge(ctx, h.URL, mirror.Source{Name: sourceName, Documents: harvest.toMerge(), End: harvest.end})
}

// end returns the next mark, and whether all records have come; if the harvest
// is not whole, there is no mark.
func (h *Harvest) end() (json.RawMessage, bool) {
	next, whole := h.Mark()
	if !whole {
		return nil, false
	}
	text, _ := json.Marshal(next) // cannot fail, because all times in it can be written: see isTime
	return text, true
}

// toMerge yields what has changed as documents to merge: first a document with
// the present records, complete if there are no others; then their history,
// with at most one entry of each record in a document; then what is missing.
func (h *Harvest) toMerge() iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		layers := []*feedhistory.Document{{}}
		var gaps []error
		for c, err := range h.Changes() {
			if _, isGap := errors.AsType[*feedhistory.Gap](err); isGap {
				gaps = append(gaps, err)
			} else if err != nil {
				yield(nil, err)
				return
			} else {
				layers = addTo(layers, c)
			}
		}
		layers[0].Complete = h.All()
		for _, doc := range layers {
			if len(doc.Entries)+len(doc.Deleted) == 0 && !doc.Complete {
				continue
			}
			head := h.head
			doc.URL, doc.Title, doc.ID, doc.Format, doc.Updated = head.URL, head.Title, head.ID, head.Format, head.Updated
			if !yield(doc, nil) {
				return
			}
		}
		for _, gap := range gaps {
			if !yield(nil, gap) {
				return
			}
		}
	}
}

// addTo adds a change to documents: the present entry to the first, and the
// historical entries, newest first, to one other document each.
func addTo(layers []*feedhistory.Document, c Change) []*feedhistory.Document {
	switch now := layers[0]; c.Kind {
	case Record:
		now.Entries = append(now.Entries, c.Entry)
	case Deleted:
		now.Deleted = append(now.Deleted, feedhistory.Tombstone{Ref: c.ID, When: c.Time})
	}
	n := 0
	for _, e := range slices.Backward(c.Historical) {
		if n++; n == len(layers) {
			layers = append(layers, &feedhistory.Document{})
		}
		layers[n].Entries = append(layers[n].Entries, e)
	}
	return layers
}
