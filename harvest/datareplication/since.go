package datareplication

import (
	"fmt"
	"hash/maphash"
)

// This file decides which entities come after the mark
// (datareplication#consumer-2).

// hand yields an entity if it comes after the mark.
func (r *run) hand(e *Entity) error {
	if r.first.IsZero() {
		r.first = e.Modified
	}
	wanted, err := r.wanted(e)
	if err == nil {
		err = r.fault(e, wanted)
	}
	switch {
	case err != nil:
		return err
	case !wanted:
		if r.found { // it is the mark's entity
			r.cursor.Page, r.cursor.Next = e.Page, ""
		}
		return nil
	}
	r.cursor, r.came = Mark{Time: e.Modified, ContentID: e.ContentID, Page: e.Page}, true
	if r.left = !r.yield(e, nil); r.left {
		return errLeft
	}
	return nil
}

// fault returns the fault of a wanted entity, or of the mark's entity.
func (r *run) fault(e *Entity, wanted bool) error {
	if r.c.Lenient {
		return nil
	}
	repeated := r.ids.repeated(e.ContentID)
	if !wanted && e.ContentID != r.since.ContentID {
		return nil
	}
	err := e.fault()
	if err == nil && repeated {
		err = fmt.Errorf("%w: %q", ErrRepeatedID, clip(e.ContentID))
	}
	if err != nil {
		return &MalformedError{URL: e.Page, Entity: e.number, Err: err, Clause: clauseParts}
	}
	return nil
}

// recentIDs notices repeated Content-IDs. It remembers digests of the last mostIDs at least,
// and of twice as many at most. A repetition beyond that is harmless to a mark, which also
// has the entity's stamp.
type recentIDs struct {
	seed          [2]maphash.Seed
	newer, before map[[2]uint64]struct{}
}

// mostIDs is the number of Content-IDs to remember: they take up to 16 MB.
const mostIDs = 1 << 17

func newRecentIDs() recentIDs {
	return recentIDs{seed: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, newer: map[[2]uint64]struct{}{}}
}

// repeated reports whether an ID has come before, and remembers it.
func (r *recentIDs) repeated(id string) bool {
	key := [2]uint64{maphash.String(r.seed[0], id), maphash.String(r.seed[1], id)}
	_, newer := r.newer[key]
	_, before := r.before[key]
	if newer || before {
		return true
	}
	if len(r.newer) == mostIDs {
		r.before, r.newer = r.newer, make(map[[2]uint64]struct{}, mostIDs)
	}
	r.newer[key] = struct{}{}
	return false
}

// wanted reports whether an entity comes after the mark. The error reports a feed
// without the mark's place.
func (r *run) wanted(e *Entity) (bool, error) {
	since := r.since
	if e.Modified.Before(since.Time) {
		r.earlier = true
	}
	switch {
	case since.IsZero() || r.found:
		return true, nil
	case since.ContentID == "" && e.Modified.Before(since.Time):
		return false, nil
	case since.ContentID == "":
		if !r.earlier && e.Modified.After(since.Time) {
			return false, r.lost(e.Page)
		}
		r.found = true
		return true, nil
	case e.ContentID == since.ContentID && (since.Time.IsZero() || e.Modified.Equal(since.Time)):
		r.found = true
		return false, nil
	case !since.Time.IsZero() && e.Modified.After(since.Time):
		return false, r.missing(e.Page)
	}
	return false, nil
}

// missing returns why the mark's entity is not there.
func (r *run) missing(page string) error {
	if !r.earlier {
		return r.lost(page)
	}
	return &NotFoundError{URL: r.c.URL, Mark: r.since, Clause: clauseCursor}
}

func (r *run) lost(page string) error {
	return &ReachError{URL: page, Mark: r.since, Oldest: r.first, Clause: clauseReach}
}
