package modifiedrange

import (
	"net/http"
	"slices"
	"time"
)

// A server may name a range although its answer has only some of the items. So if an answer
// that claims to be whole has as many items as any before, its two halves are asked for
// again: from an honest server they bring nothing new, and fewer items each. What is cut
// comes with them, or with their own halves, whichever items the server prefers.

// A confirmation is the ranges still to be asked for to confirm an answer, the most recent
// one last.
type confirmation struct {
	ranges []pendingRange
	active bool
	cut    bool // a range has more items than were known
	known  int  // the number of items known in the range being asked for
}

// A pendingRange is a range to ask for again, with the number of items known there.
type pendingRange struct {
	Range
	known int
}

// mostPlain is the largest number of items a whole answer may have without confirmation.
const mostPlain = 1

// doubts reports whether a whole answer, which names its range, needs to be confirmed.
func (r *run) doubts(a *answer) bool {
	return a.covered != nil && !r.distrust && len(a.stamps) > mostPlain && len(a.stamps) >= r.most
}

// confirm continues with the halves of a range, or with what else is to be confirmed.
func (r *run) confirm(a *answer, whole bool) Range {
	c := &r.confirming
	if c.active {
		c.cut = c.cut || a.within(a.asked, r.top) > c.known
	} else {
		r.top = r.newest // later items may have come meanwhile
		if began := r.Harvest.next.Since.Add(r.c.overlap()); began.After(r.top) {
			r.top = began
		}
		c.active = true
	}
	older := Range{a.asked.Start, a.oldest.Add(r.unit)}
	switch {
	case !whole && len(a.stamps) > 0 && older.narrower(a.asked):
		newer := a.within(a.asked, r.top) - a.within(older, r.top)
		c.push(older, max(0, c.known-newer))
	case !whole || r.doubts(a):
		r.halve(a)
	}
	n := len(c.ranges)
	if n == 0 {
		*c = confirmation{}
		return nothing
	}
	next := c.ranges[n-1]
	c.ranges, c.known = c.ranges[:n-1], next.known
	return next.Range
}

// halve adds the halves of a range to the confirmation. A group of equal stamps has none: if
// the server is known to cut, some of the group may be lost.
func (r *run) halve(a *answer) {
	stamps := slices.SortedFunc(slices.Values(a.stamps), time.Time.Compare)
	if len(stamps) == 0 {
		r.lost = append(r.lost, &PossibleLossError{URL: r.c.URL, Asked: a.asked, Clause: clauseSubset})
		return
	}
	push := func(in Range) { r.confirming.push(in, a.within(in, r.top)) }
	first, middle := stamps[0], stamps[len(stamps)/2]
	if !middle.After(first) {
		if i := slices.IndexFunc(stamps, first.Before); i >= 0 {
			middle = stamps[i]
		}
	}
	if middle.After(first) {
		push(Range{a.asked.Start, middle})
		push(Range{middle, a.asked.End})
		return
	}
	older, newer := Range{a.asked.Start, first}, Range{first.Add(r.unit), a.asked.End}
	if older.isEmpty() && newer.isEmpty() {
		if r.confirming.cut {
			r.lost = append(r.lost, &PossibleLossError{URL: r.c.URL, Asked: a.asked, At: first, Clause: clauseTies})
		}
		return
	}
	push(Range{first, first.Add(r.unit)}) // the last of them, when it is known whether the server cuts
	push(older)
	push(newer)
}

func (c *confirmation) push(r Range, known int) {
	if !r.isEmpty() {
		c.ranges = append(c.ranges, pendingRange{r, known})
	}
}

// isWhole reports whether an answer claims to have the whole of its range.
func (r *run) isWhole(a *answer) bool {
	if a.covered != nil && !a.covered.Start.IsZero() && a.covered.Start.After(a.asked.Start) {
		return false // the answer itself begins later
	}
	return a.status == http.StatusOK && !r.distrust
}
