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
	if err != nil || !wanted {
		return err
	}
	r.cursor, r.came = Mark{e.Modified, e.ContentID}, true
	if r.left = !r.yield(e, nil); r.left {
		return errLeft
	}
	return nil
}

// fault returns the fault of a wanted entity, or of the mark's entity.
func (r *run) fault(e *Entity, wanted bool) error {
	repeated := r.repeated(e.ContentID)
	if r.c.Lenient || !wanted && e.ContentID != r.since.ContentID {
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

// mostIDs is the maximum number of Content-IDs to remember, in order to find
// repeated ones: 32 MB.
const mostIDs = 1 << 20

// repeated reports whether an ID has come before, and remembers it.
func (r *run) repeated(id string) bool {
	key := [2]uint64{maphash.String(r.seed[0], id), maphash.String(r.seed[1], id)}
	if r.ids[key] {
		return true
	}
	if len(r.ids) < mostIDs {
		r.ids[key] = true
	}
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
