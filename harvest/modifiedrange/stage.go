package modifiedrange

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// This file has the memory of a harvest that is cut short: each answer is yielded together
// with the place after it, so the next harvest repeats only the request under way.

// A stage is how far a harvest has come, besides the end of its range.
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

	Lossy bool      `json:"lossy,omitempty"` // something may be lost
	Lost  time.Time `json:"lost,omitzero"`   // the stamp of the lost items, if it is known
	From  time.Time `json:"from,omitzero"`   // the start of the range being asked for, if not the Mark's Since
}

// isSettled reports whether a harvest can continue after an answer without knowing those
// before. It cannot before the client knows how the server answers: until a second answer
// proves it, a 200 may be a part.
func (r *run) isSettled(a *answer) bool {
	return r.heeded && !r.doubt && r.claimed.IsZero() && (r.distrust || a.status != http.StatusOK || a.covered != nil)
}

// save notes where to continue. After a loss, that includes where the harvest began, because
// the whole range must be asked for again in the end.
func (r *run) save() {
	lossy, wasCut := r.lossy || len(r.lost) > 0, r.from.Rest != Rest{}
	at := Mark{Since: r.from.Since, Rest: Rest{
		End: r.span.End, Next: r.Harvest.next.Since, Dialect: r.dialects[0], Closed: r.closed, Stage: r.stage(),
	}}
	switch {
	case r.span.isEmpty() && !wasCut:
		return
	case r.span.isEmpty() && !lossy:
		at = Mark{Since: r.Harvest.next.Since}
	case r.span.isEmpty(): // the items modified since are still to be asked for
		at.Rest.End, at.Rest.Next, at.Rest.Stage.From = time.Time{}, time.Time{}, r.Harvest.next.Since
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
	s := stage{Most: r.most, Unit: r.unit, Partial: r.distrust, Tie: r.tie}
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
	r.span.End, r.heeded, r.closed = rest.End, true, rest.Closed
	r.Harvest.next = Mark{Since: rest.Next}
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
		loss := &PossibleLossError{URL: r.c.URL, Asked: r.span, At: s.Lost, Clause: clauseTies}
		if s.Lost.IsZero() {
			loss.Clause = clauseSubset
		}
		r.lost = append(r.lost, loss)
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
	for q := range r.asked { // ranges only become narrower now
		if q.span.End.IsZero() || q.span.End.After(past) {
			delete(r.asked, q)
		}
	}
}
