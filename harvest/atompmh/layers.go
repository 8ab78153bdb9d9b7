package atompmh

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A mirror merges documents, in each of which an entry stands once. So this file makes
// layers of a document: the latest states of its records, the ones before, and so on.

// layers returns a document's records and deletions as documents to merge: the
// latest entry of each record first, then the one before it, and so on.
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
			if i == len(layers) {
				layers = append(layers, k.headed(doc))
			}
			layer := layers[i]
			switch c := k.choose(change(v.Entry, v.kind), k.ranges); c.Kind {
			case Record:
				layer.Entries = append(layer.Entries, c.Entry)
			case Deleted:
				layer.Deleted = append(layer.Deleted, feedhistory.Tombstone{Ref: c.ID, When: c.Time})
			}
		}
	}
	return layers
}

// headed returns a document without entries, with the head section of the feed.
func (k *keeper) headed(doc *feedhistory.Document) *feedhistory.Document {
	return &feedhistory.Document{
		URL: doc.URL, Title: doc.Title, ID: doc.ID, Format: doc.Format, Updated: doc.Updated, Response: doc.Response,
	}
}

// collected returns the changes of a feed committed as a whole: first a document with
// the present records, which replaces all others if there are no others; then their
// history, with at most one entry of each record in a document.
func (k *keeper) collected() ([]*feedhistory.Document, error) {
	layers := []*feedhistory.Document{{}}
	for c, err := range k.r.changes() {
		if err != nil {
			return nil, err
		}
		layers = addTo(layers, k.choose(c, k.ranges))
	}
	layers[0].Complete = k.r.scope == everything && k.r.whole()
	layers = slices.DeleteFunc(layers, func(doc *feedhistory.Document) bool {
		return len(doc.Entries)+len(doc.Deleted) == 0 && !doc.Complete
	})
	for _, doc := range layers {
		head := k.r.first
		doc.URL, doc.Title, doc.ID, doc.Format, doc.Updated = head.URL, head.Title, head.ID, head.Format, head.Updated
	}
	return layers, nil
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
