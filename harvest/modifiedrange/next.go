package modifiedrange

import (
	"net/http"
	"time"
)

// next returns the range to ask for after an answer; an empty one if nothing is
// left.
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
	whole := r.isWhole(a)
	switch {
	case r.confirming.active:
		return r.confirm(a, whole), nil
	case !r.tie.IsZero():
		return r.afterTie(a, whole)
	case !r.claimed.IsZero():
		return r.afterClaim(a)
	case whole && r.doubts(a):
		return r.confirm(a, true), nil
	case whole:
		return r.afterWhole(a)
	}
	return r.afterPart(a)
}

// nothing is an empty range: the harvest is whole.
var nothing = Range{Start: time.Unix(0, 0), End: time.Unix(0, 0)}

// shows reports whether an answer proves support for ranges: it names the range it
// covers, or leaves out items known to be outside.
func (r *run) shows(a *answer) bool {
	return a.covered != nil || a.asked.above(r.newest, time.Second) ||
		a.asked.above(r.newest, 0) && !a.outside
}

// below returns the rest of the harvest before a time.
func (r *run) below(end time.Time) Range { return Range{r.from.Since, end} }

// afterWhole ends the harvest if a 200 can be trusted. A server that ignores ranges also
// answers 200, and so does one that silently cuts its answers. The client finds out by
// asking again for the oldest group of equal stamps and anything older; or only for the
// latter, if everything is one group.
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

// afterClaim ends the harvest if there is nothing beyond the items of a 200. Otherwise the
// 200 was a part, and may have cut through a group.
func (r *run) afterClaim(a *answer) (Range, error) {
	claimed, beyond := r.claimed, a.asked.End.Equal(r.claimed)
	if !r.heeded {
		return Range{}, r.ignored("")
	}
	switch {
	case a.fresh > 0:
	case len(a.stamps) == 0, !beyond && len(a.stamps) <= r.newer:
		// The group alone may be all the server has room for. But not if it is as small as
		// the newer part: there was room for that part, and for at least one item of the
		// group.
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

// tellApart returns the range to ask for after items came at the end of the
// range: either the server takes the end to be part of the range, or it ignores
// the range. In the latter case it sends the items again if asked for a time
// clearly before them, or else after everything.
func (r *run) tellApart(a *answer) Range {
	if before := r.below(a.asked.End.Add(-clearly)); !before.isEmpty() {
		r.doubt, r.put = true, a.asked
		return before
	}
	return r.after(a.asked)
}

// after asks for items clearly after everything received; if the server supports the
// range, the harvest continues with put.
func (r *run) after(put Range) Range {
	r.doubt, r.put = true, put
	return Range{Start: r.newest.Add(clearly)}
}

// clearly is how far outside of a range an item must be to prove that the server ignores
// the range.
const clearly = 2 * time.Second

// afterDoubt continues with the previous range, now that the server is known to support
// ranges.
func (r *run) afterDoubt(a *answer) Range {
	r.doubt, r.heeded, r.closed = false, true, true
	if !r.claimed.IsZero() && !a.asked.End.IsZero() && a.fresh > 0 { // the 200 was a part
		claimed := r.claimed
		r.claimed, r.distrust = time.Time{}, true
		return r.below(claimed.Add(r.unit))
	}
	return r.put
}

// afterPart shortens the range. If the server names the range it has covered, that
// range does not cut through groups, and the new range ends before it. Otherwise the
// range ends just after the oldest item, so the rest of its group comes, if it was cut
// (modified-range#5). If that is no progress, afterPart asks for the group alone, or
// for anything beyond it.
func (r *run) afterPart(a *answer) (Range, error) {
	if next, ok := r.uncovered(a); ok {
		return next, nil
	}
	switch {
	case len(a.stamps) == 0 && r.distrust && a.status == http.StatusOK: // the items have changed meanwhile
		return nothing, nil
	case len(a.stamps) == 0:
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
	if !alone.Start.After(a.asked.Start) { // that was the last question already
		r.tie = time.Time{}
		return r.beyond(a, a.oldest), nil
	}
	return alone, nil
}

// mostOverlap is the largest group of equal stamps to be asked for again with what is older.
const mostOverlap = 20

// uncovered returns the part of the range the server says it has not sent, or nothing
// if that is no smaller than before.
func (r *run) uncovered(a *answer) (Range, bool) {
	c := a.covered
	if c == nil || c.Start.IsZero() || c.narrower(a.sent) && !a.sent.End.IsZero() {
		return Range{}, false
	}
	next := r.below(c.Start)
	if over := r.below(a.oldest.Add(r.unit)); over.narrower(a.asked) && a.above(a.oldest)-a.above(over.End) <= mostOverlap {
		next = over // in case the server has cut the group, or left out what comes before it
	}
	return next, next.narrower(a.asked) && c.Start.After(a.asked.Start)
}

// afterTie continues beyond a group of equal stamps. If the answer had only
// part of it, or if the server does not say when it cuts, some of the group may
// be lost; except, in the latter case, if there is nothing beyond.
func (r *run) afterTie(a *answer, whole bool) (Range, error) {
	at := r.tie
	r.tie = time.Time{}
	switch {
	case r.distrust && len(a.stamps) == 0:
		return nothing, nil
	case r.distrust: // the part beyond was requested
		r.beyond(a, at)
		return r.afterPart(a)
	case !whole && a.oldest.After(at): // the stamps have a smaller unit than was known
		return r.afterPart(a)
	case !whole:
		return r.beyond(a, at), nil
	}
	return r.below(at), nil
}

// beyond notes that some items of a group may be lost, and continues with older items.
func (r *run) beyond(a *answer, group time.Time) Range {
	r.lost = append(r.lost, &PossibleLossError{URL: r.c.URL, Asked: a.asked, At: group, Clause: clauseTies})
	return r.below(group)
}
