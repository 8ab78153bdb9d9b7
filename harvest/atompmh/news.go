package atompmh

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// changes yields the changes since the mark, oldest first, and notes the records for the
// next mark. An error ends them.
func (r *reading) changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		absent, err := r.absent()
		if err != nil {
			yield(Change{}, err)
			return
		}
		for h, err := range r.shelf.All() {
			var c Change
			isNews := false
			if err == nil {
				for len(absent) > 0 && absent[0].isBefore(h) {
					if !yield(absent[0].change(), nil) {
						return
					}
					absent = absent[1:]
				}
				c, isNews, err = r.change(h)
			}
			if (isNews || err != nil) && !yield(c, err) || err != nil {
				return
			}
		}
		for _, a := range absent {
			if !yield(a.change(), nil) {
				return
			}
		}
		if err := r.noteUnread(); err != nil {
			yield(Change{}, err)
		}
	}
}

// An absentRecord is one the feed once had and no longer has.
type absentRecord struct {
	id string
	at time.Time
}

func (a absentRecord) change() Change { return Change{Kind: Deleted, ID: a.id, Time: a.at} }

// isBefore reports whether the change comes before that of an entry on the shelf.
func (a absentRecord) isBefore(h Held) bool {
	id, _, _ := splitKey(h.Key)
	return cmp.Or(a.at.Compare(h.Time), strings.Compare(a.id, id)) < 0
}

// absent returns the records absent from a complete feed, oldest first.
func (r *reading) absent() (gone []absentRecord, err error) {
	if !r.from.Complete || !r.whole() || r.unchanged {
		return nil, nil
	}
	for id, seen := range r.from.Seen {
		if seen.Deleted {
			continue
		}
		if _, there, err := r.latest(id); err != nil {
			return nil, err
		} else if !there {
			gone = append(gone, absentRecord{id, seen.Time})
		}
	}
	slices.SortFunc(gone, func(a, b absentRecord) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id))
	})
	return gone, nil
}

// change returns the change an entry on the shelf makes, if it is one since the mark.
func (r *reading) change(h Held) (c Change, isNews bool, err error) {
	id, of, err := splitKey(h.Key)
	if err != nil || of == earlierKey {
		return c, false, err
	}
	v, err := readHeld(h)
	if err != nil {
		return c, false, err
	}
	if of == latestKey {
		seen, known := r.from.Seen[id]
		if isNews = r.scope == everything || !known || r.follows(v, seen); isNews {
			seen = v.seen()
		}
		r.note(id, v, seen)
		if !isNews {
			return c, false, nil
		}
	}
	e, err := r.entry(v)
	if err != nil {
		return c, false, err
	}
	c = change(e, v.kind)
	c.Historical, err = r.historical(id, v)
	return c, true, err
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
	var before []heldEntry
	for n := range latest.earlier {
		h, ok, err := r.shelf.Get(numbered(id, earlierKey, n))
		if err == nil && !ok {
			err = errDamagedShelf
		}
		if err != nil {
			return nil, err
		}
		v, err := readHeld(h)
		if err != nil {
			return nil, err
		}
		if v.at.Before(latest.at) {
			before = append(before, v)
		}
	}
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
