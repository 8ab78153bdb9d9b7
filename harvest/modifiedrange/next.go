package modifiedrange

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// next returns the range to ask for after an answer; an empty one if nothing is
// left.
func (r *run) next(a *answer) (Range, error) {
	if a.stranger != "" {
		return Range{}, r.ignored(a.stranger)
	}
	r.supported = r.supported || r.shows(a)
	switch {
	case r.doubt:
		return r.afterDoubt(a), nil
	case a.over && !r.closed && !r.supported:
		return r.tellApart(a), nil
	case a.over && !r.closed:
		r.closed = true
		return a.span, nil
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
	return a.covered != nil || a.span.above(r.newest, time.Second) ||
		a.span.above(r.newest, 0) && !a.outside
}

// below returns the rest of the harvest before a time.
func (r *run) below(end time.Time) Range { return Range{r.from.Since, end} }

// afterWhole ends the harvest if a 200 can be trusted. A server that ignores ranges also
// answers 200, and so does one that silently cuts its answers. The client finds out by
// asking again for the oldest group of equal stamps and anything older; or only for the
// latter, if everything is one group.
func (r *run) afterWhole(a *answer) (Range, error) {
	if r.supported || len(a.stamps) == 0 || !a.oldest.After(r.from.Since) {
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
	claimed, beyond := r.claimed, a.span.End.Equal(r.claimed)
	if !r.supported {
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
	if before := r.below(a.span.End.Add(-clearly)); !before.isEmpty() {
		r.doubt, r.suspended = true, a.span
		return before
	}
	return r.after(a.span)
}

// after asks for items clearly after everything received; if the server supports the
// range, the harvest continues with put.
func (r *run) after(next Range) Range {
	r.doubt, r.suspended = true, next
	return Range{Start: r.newest.Add(clearly)}
}

// clearly is how far outside of a range an item must be to prove that the server ignores
// the range.
const clearly = 2 * time.Second

// afterDoubt continues with the previous range, now that the server is known to support
// ranges.
func (r *run) afterDoubt(a *answer) Range {
	r.doubt, r.supported, r.closed = false, true, true
	if !r.claimed.IsZero() && !a.span.End.IsZero() && a.fresh > 0 { // the 200 was a part
		claimed := r.claimed
		r.claimed, r.distrust = time.Time{}, true
		return r.below(claimed.Add(r.unit))
	}
	return r.suspended
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
		return Range{}, possibleLoss(r.h.URL, a.span, time.Time{})
	}
	next := r.below(a.oldest.Add(r.unit))
	if next.narrower(a.span) {
		return next, nil
	}
	r.tie = a.oldest
	if r.distrust {
		return r.below(a.oldest), nil // is there anything?
	}
	alone := Range{a.oldest, next.End}
	if !alone.Start.After(a.span.Start) { // that was the last question already
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
	if over := r.below(a.oldest.Add(r.unit)); over.narrower(a.span) && a.above(a.oldest)-a.above(over.End) <= mostOverlap {
		next = over // in case the server has cut the group, or left out what comes before it
	}
	return next, next.narrower(a.span) && c.Start.After(a.span.Start)
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
	r.lost = append(r.lost, possibleLoss(r.h.URL, a.span, group))
	return r.below(group)
}

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
		c.cut = c.cut || a.within(a.span, r.top) > c.known
	} else {
		r.top = r.newest // later items may have come meanwhile
		if r.mark.began.After(r.top) {
			r.top = r.mark.began
		}
		c.active = true
	}
	older := Range{a.span.Start, a.oldest.Add(r.unit)}
	switch {
	case !whole && len(a.stamps) > 0 && older.narrower(a.span):
		newer := a.within(a.span, r.top) - a.within(older, r.top)
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
		r.lost = append(r.lost, possibleLoss(r.h.URL, a.span, time.Time{}))
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
		push(Range{a.span.Start, middle})
		push(Range{middle, a.span.End})
		return
	}
	older, newer := Range{a.span.Start, first}, Range{first.Add(r.unit), a.span.End}
	if older.isEmpty() && newer.isEmpty() {
		if r.confirming.cut {
			r.lost = append(r.lost, possibleLoss(r.h.URL, a.span, first))
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
	if a.covered != nil && !a.covered.Start.IsZero() && a.covered.Start.After(a.span.Start) {
		return false // the answer itself begins later
	}
	return a.status == http.StatusOK && !r.distrust
}

// A stage is how far a harvest has come, besides the end of its range. Each answer is
// yielded together with the place after it, so a harvest after one that was cut short
// repeats only the request under way.
type stage struct {
	Most    int           `json:"most,omitempty"`    // the largest number of items in an answer
	Unit    time.Duration `json:"unit,omitempty"`    // the smallest unit of the stamps, in nanoseconds
	Partial bool          `json:"partial,omitempty"` // the server answers 200 with a part

	Tie time.Time `json:"tie,omitzero"` // the group of equal stamps being asked for

	// Confirm lists the ranges that confirm an answer, each with the number of items known
	// there, the next one last: "start/end=3 start/end=2".
	Confirm string    `json:"confirm,omitempty"`
	Top     time.Time `json:"top,omitzero"`  // the newest item of the answer to confirm
	Cut     bool      `json:"cut,omitempty"` // the server is known to cut

	Began time.Time `json:"began,omitzero"` // the server's time at the first answer

	Lossy bool      `json:"lossy,omitempty"` // something may be lost
	Lost  time.Time `json:"lost,omitzero"`   // the stamp of the lost items, if it is known
	From  time.Time `json:"from,omitzero"`   // the start of the range being asked for, if not the Mark's Since
}

// isSettled reports whether a harvest can continue after an answer without knowing those
// before. It cannot before the client knows how the server answers: until a second answer
// proves it, a 200 may be a part.
func (r *run) isSettled(a *answer) bool {
	return r.supported && !r.doubt && r.claimed.IsZero() && (r.distrust || a.status != http.StatusOK || a.covered != nil)
}

// save notes where to continue. After a loss, that includes where the harvest began, because
// the whole range must be asked for again in the end.
func (r *run) save() {
	lossy, wasCut := r.lossy || len(r.lost) > 0, r.from.Rest != Rest{}
	next := r.mark.since(r.h.overlap())
	at := Mark{Since: r.from.Since, Seen: r.mark.seenSince(next, mostSeenWithRest), Rest: Rest{
		End: r.span.End, Next: next, Dialect: r.dialects[0], Closed: r.closed, Stage: r.stage(),
	}}
	switch {
	case r.span.isEmpty() && !wasCut:
		return
	case r.span.isEmpty() && !lossy:
		at = Mark{Since: next, Seen: at.Seen}
	case r.span.isEmpty(): // the items modified since are still to be asked for
		at.Rest.End, at.Rest.Next, at.Rest.Stage.From = time.Time{}, time.Time{}, next
	case lossy && !r.from.Since.Equal(r.Harvest.from.Since):
		at.Rest.Stage.From = r.from.Since
	}
	if lossy {
		at.Since = r.Harvest.from.Since
	}
	r.at = at
}

// stage returns the stage before the next question.
func (r *run) stage() stage {
	s := stage{Most: r.most, Unit: r.unit, Partial: r.distrust, Tie: r.tie, Began: r.mark.began}
	if c := r.confirming; c.active {
		s.Confirm, s.Top, s.Cut = c.text(r.span), r.top.UTC(), c.cut
	}
	if len(r.lost) > 0 {
		s.Lossy, s.Lost = true, r.lost[0].At.UTC()
	} else if r.lossy {
		s.Lossy, s.Lost = true, r.at.Rest.Stage.Lost
	}
	return s
}

// resume continues a harvest that was cut short.
func (r *run) resume(rest Rest) {
	s := rest.Stage
	if !s.From.IsZero() {
		r.from.Since, r.span.Start = s.From, s.From
	}
	r.span.End, r.supported, r.closed = rest.End, true, rest.Closed
	if !rest.Next.IsZero() {
		r.mark = newNextMark(rest.Next)
		r.mark.begun, r.mark.began, r.mark.least = true, s.Began, rest.Next
		for digest := range strings.FieldsSeq(r.from.Seen) {
			r.mark.remember(digest, rest.Next)
		}
	}
	r.most, r.unit, r.distrust, r.tie = s.Most, s.Unit, s.Partial, s.Tie
	if !r.tie.IsZero() && !r.distrust {
		r.span.Start = r.tie
	}
	if ranges := parseConfirm(s.Confirm); len(ranges) > 0 {
		next := ranges[len(ranges)-1]
		r.span, r.top = next.Range, s.Top
		r.confirming = confirmation{ranges: ranges[:len(ranges)-1], active: true, cut: s.Cut, known: next.known}
	}
	if s.Lossy {
		r.lost = append(r.lost, possibleLoss(r.h.URL, r.span, s.Lost))
	}
}

// text returns the ranges of a confirmation, with the next one.
func (c *confirmation) text(next Range) string {
	var b strings.Builder
	for _, p := range append(c.ranges[:len(c.ranges):len(c.ranges)], pendingRange{next, c.known}) {
		b.WriteString(p.String() + "=" + strconv.Itoa(p.known) + " ")
	}
	return strings.TrimSuffix(b.String(), " ")
}

// parseConfirm returns the ranges of a confirmation; nil if one of them is malformed.
func parseConfirm(text string) (ranges []pendingRange) {
	for field := range strings.FieldsSeq(text) {
		in, known, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(known)
		r, rangeErr := parseRange(in)
		if err != nil || rangeErr != nil {
			return nil
		}
		ranges = append(ranges, pendingRange{r, n})
	}
	return ranges
}

// forget drops the items that cannot come again, because they are clearly after the ranges
// still to be asked for: a server that heeds ranges does not send them. So the size of a run
// does not depend on the collection's.
func (r *run) forget() {
	end := r.span.End
	for _, p := range r.confirming.ranges {
		if p.End.IsZero() || !end.IsZero() && p.End.After(end) {
			end = p.End
		}
	}
	if end.IsZero() {
		return
	}
	past := end.Add(clearly)
	for item := range r.seen {
		if item.at.After(past) {
			delete(r.seen, item)
			delete(r.ids, item.id)
		}
	}
	for q := range r.questions { // ranges only become narrower now
		if q.span.End.IsZero() || q.span.End.After(past) {
			delete(r.questions, q)
		}
	}
}
