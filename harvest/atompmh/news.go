package atompmh

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A newsItem is a change a reading has found, before it is made.
type newsItem struct {
	at time.Time
	id string

	other  int  // the number of the entry of kind Other, from one; zero if it is none
	absent bool // whether the record is no longer in a complete feed
}

// news returns the changes since the mark, oldest first.
func (r *reading) news() (all []newsItem) {
	for i, v := range r.others {
		all = append(all, newsItem{at: v.at, id: v.id, other: i + 1})
	}
	for id, v := range r.latest {
		if seen, ok := r.from.Seen[id]; r.scope == everything || !ok || r.follows(v, seen) {
			all = append(all, newsItem{at: v.at, id: id})
		}
	}
	if r.from.Complete && r.whole() && !r.unchanged {
		all = append(all, r.absent()...)
	}
	slices.SortStableFunc(all, func(a, b newsItem) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id))
	})
	return all
}

// absent returns the records the feed once had and no longer has.
func (r *reading) absent() (gone []newsItem) {
	for id, seen := range r.from.Seen {
		if _, there := r.latest[id]; !there && !seen.Deleted {
			gone = append(gone, newsItem{at: seen.Time, id: id, absent: true})
		}
	}
	return gone
}

// changes yields the changes since the mark, oldest first. An error ends them.
func (r *reading) changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, n := range r.news() {
			if c, err := r.change(n); !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// change makes a change.
func (r *reading) change(n newsItem) (Change, error) {
	if n.absent {
		return Change{Kind: Deleted, ID: n.id, Time: n.at}, nil
	}
	v := r.latest[n.id]
	if n.other > 0 {
		v = r.others[n.other-1].heldEntry
	}
	e, err := r.entry(v)
	if err != nil {
		return Change{}, err
	}
	c := change(e, v.kind)
	if v.kind != Other {
		c.Historical, err = r.historical(n.id, v)
	}
	return c, err
}

// entry reads an entry from the shelf.
func (r *reading) entry(v heldEntry) (*feedhistory.Entry, error) {
	text, err := r.texts.get(v.text)
	if err != nil {
		return nil, err
	}
	return feedhistory.ReadEntry(feedhistory.Atom, text, "")
}

// historical returns the earlier entries of a record, each once, oldest first.
func (r *reading) historical(id string, latest heldEntry) (entries []*feedhistory.Entry, err error) {
	before := slices.DeleteFunc(r.earlier[id], func(v heldEntry) bool { return !v.at.Before(latest.at) })
	slices.SortStableFunc(before, func(a, b heldEntry) int { return a.at.Compare(b.at) })
	before = slices.CompactFunc(before, func(a, b heldEntry) bool { return a.at.Equal(b.at) })
	for _, v := range before {
		e, err := r.entry(v)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// change returns the change an entry reports.
func change(e *feedhistory.Entry, kind ChangeKind) Change {
	return Change{Kind: kind, ID: e.ID, Time: e.Updated, Entry: e, Representations: representations(e)}
}
