package modifiedrange

import (
	"net/http"
	"time"
)

// next returns the range to ask for after an answer; an empty one if there is
// nothing left.
func (r *run) next(a *answer) (Range, error) {
	if a.stranger != "" {
		return Range{}, r.ignored(a.stranger)
	}
	r.heeded = r.heeded || r.shows(a)
	switch {
	case r.doubt:
		return r.afterDoubt(a), nil
	case a.over && !r.closed && !r.heeded:
		return r.tellApart(a), nil
	case a.over && !r.closed:
		r.closed = true
		return a.asked, nil
	}
	whole := a.status == http.StatusOK && !r.distrust
	if a.covered != nil && !a.covered.Start.IsZero() && a.covered.Start.After(a.asked.Start) {
		whole = false // it says itself that it begins later
	}
	switch {
	case !r.tie.IsZero():
		return r.afterTie(a, whole)
	case !r.claimed.IsZero():
		return r.afterClaim(a)
	case whole:
		return r.afterWhole(a)
	}
	return r.afterPart(a)
}

// nothing is a range without any time in it: the sync is whole.
var nothing = Range{Start: time.Unix(0, 0), End: time.Unix(0, 0)}

// shows reports whether an answer shows that the server heeds the range: it
// names the one that it covers, or leaves out what is known to be outside.
func (r *run) shows(a *answer) bool {
	return a.covered != nil || a.asked.above(r.newest, time.Second) ||
		a.asked.above(r.newest, 0) && !a.outside
}

// below is what is left of the sync before a time.
func (r *run) below(end time.Time) Range { return Range{r.from.Since, end} }

// afterWhole ends the sync if the answer can be trusted. A server that knows
// nothing of ranges answers 200 as well, and so does one that cuts without
// saying so: they are found out by asking again for the oldest group of equal
// stamps and what is older, or only the latter if all is one group.
func (r *run) afterWhole(a *answer) (Range, error) {
	if r.heeded || len(a.stamps) == 0 || !a.oldest.After(r.from.Since) {
		return nothing, nil
	}
	again := r.below(a.oldest.Add(r.unit))
	if !again.above(r.newest, 0) {
		again.End = a.oldest
	}
	r.claimed, r.newer = a.oldest, a.above(again.End)
	return again, nil
}

// afterClaim ends the sync if there is nothing else than what a 200 had.
// Otherwise that was a part, and may have cut through a group.
func (r *run) afterClaim(a *answer) (Range, error) {
	claimed, beyond := r.claimed, a.asked.End.Equal(r.claimed)
	if !r.heeded {
		return Range{}, r.ignored("")
	}
	switch {
	case a.fresh > 0:
	case len(a.stamps) == 0, !beyond && len(a.stamps) <= r.newer:
		// The group alone may be all that the server has room for, but not if it
		// is as small as what is newer: there was room for that, and for one of
		// the group at least.
		return nothing, nil
	case beyond: // deletions, which may be older than the oldest entry
		r.claimed = a.oldest
		return r.below(a.oldest), nil
	default:
		return r.below(claimed), nil
	}
	r.claimed, r.distrust = time.Time{}, true
	if beyond {
		return r.below(claimed.Add(r.unit)), nil
	}
	return r.afterPart(a)
}

// tellApart is what to ask for after items at the end of the range: they come
// from a server that takes the end to be part of it, and from one that ignores
// the range. The latter sends them again if asked for what is clearly before
// them, or else after everything.
func (r *run) tellApart(a *answer) Range {
	if before := r.below(a.asked.End.Add(-clearly)); !before.IsEmpty() {
		r.doubt, r.put = true, a.asked
		return before
	}
	return r.after(a.asked)
}

// after asks for what is clearly after everything that has come, to go on with
// a range if the server heeds that.
func (r *run) after(put Range) Range {
	r.doubt, r.put = true, put
	return Range{Start: r.newest.Add(clearly)}
}

// clearly is by how much an item is outside of a range if the server does not
// heed that.
const clearly = 2 * time.Second

// afterDoubt goes on with what was asked for before, now that it is known that
// the server heeds the range.
func (r *run) afterDoubt(a *answer) Range {
	r.doubt, r.heeded, r.closed = false, true, true
	if !r.claimed.IsZero() && !a.asked.End.IsZero() && a.fresh > 0 { // the 200 was a part
		claimed := r.claimed
		r.claimed, r.distrust = time.Time{}, true
		return r.below(claimed.Add(r.unit))
	}
	return r.put
}

// afterPart shortens the range: to before what the server says it has covered,
// for that does not cut through groups; else to just after the oldest item, so
// that the rest of its group comes, if it was cut (modified-range#5). Where
// that is no progress the group is asked for alone, or what is beyond it.
func (r *run) afterPart(a *answer) (Range, error) {
	if next, ok := r.uncovered(a); ok {
		return next, nil
	}
	if len(a.stamps) == 0 {
		return Range{}, &PossibleLossError{URL: r.c.URL, Asked: a.asked, Clause: clauseSubset}
	}
	next := r.below(a.oldest.Add(r.unit))
	if next.narrower(a.asked) {
		return next, nil
	}
	r.tie = a.oldest
	if r.distrust {
		return r.below(a.oldest), nil // is there anything?
	}
	alone := Range{a.oldest, next.End}
	if !alone.Start.After(a.asked.Start) { // that was the question already
		r.tie = time.Time{}
		return r.beyond(a, a.oldest), nil
	}
	return alone, nil
}

// uncovered returns what is left by the server's own account, if it gives one
// and that brings the sync forward.
func (r *run) uncovered(a *answer) (Range, bool) {
	c := a.covered
	if c == nil || c.Start.IsZero() || c.narrower(a.sent) && !a.sent.End.IsZero() {
		return Range{}, false
	}
	next := r.below(c.Start)
	return next, next.narrower(a.asked) && c.Start.After(a.asked.Start)
}

// afterTie goes on beyond a group of equal stamps. If the answer had only a part
// of it, or the server does not say when it cuts, some of it may be lost; unless,
// in the latter case, there is nothing beyond.
func (r *run) afterTie(a *answer, whole bool) (Range, error) {
	at := r.tie
	r.tie = time.Time{}
	switch {
	case r.distrust && len(a.stamps) == 0:
		return nothing, nil
	case r.distrust: // what is beyond was asked for
		r.beyond(a, at)
		return r.afterPart(a)
	case !whole && a.oldest.After(at): // it has stamps in a smaller unit than was known
		return r.afterPart(a)
	case !whole:
		return r.beyond(a, at), nil
	}
	return r.below(at), nil
}

// beyond notes that some items of a group may be lost, and goes on with what is
// older.
func (r *run) beyond(a *answer, group time.Time) Range {
	r.lost = append(r.lost, &PossibleLossError{URL: r.c.URL, Asked: a.asked, At: group, Clause: clauseTies})
	return r.below(group)
}
