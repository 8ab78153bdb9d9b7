package modifiedrange

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A run is a harvest under way.
type run struct {
	*Harvest
	ctx    context.Context // for the requests
	http   *feedhistory.Client
	yield  func(*feedhistory.Document, error) bool
	limits Budget
	from   Mark // the Harvest's; after its Rest, the following one
	bytes  int64
	items  int // the number of items received

	dialects []Dialect // the possible dialects, the one in use first
	begun    bool      // a document was yielded
	told     Mark      // the mark after the last document yielded
	left     bool      // the caller has stopped ranging over the documents
	lossy    bool      // a loss was yielded

	unit   time.Duration         // the smallest unit of the stamps so far; zero if there are none
	seen   map[itemState]Dialect // the items received, each with the last dialect that brought it
	ids    map[string]int        // the IDs of the entries received, with the number of the request
	newest time.Time             // the newest stamp so far
	oldest time.Time             // the oldest stamp of the last answer

	progress
}

// A progress is how far a run has come in the dialect in use.
type progress struct {
	question      // the next one
	heeded   bool // the server has proved its support for ranges

	// A server that does not name the range of its answers may answer 200 with a part, as
	// GData does. So one more request confirms its first 200.
	claimed time.Time // the oldest item of the 200 to confirm
	newer   int       // the number of items of the 200 left out by the confirmation

	tie time.Time // the group of equal stamps no answer went beyond; zero if there is none

	put Range // the range requested before the one in doubt

	most       int       // the largest number of items in an answer so far
	top        time.Time // the newest item of the answer to confirm
	confirming confirmation

	asked map[question]bool    // the questions so far: no question brings anything new twice
	lost  []*PossibleLossError // those not yielded yet
}

// A question must not be asked again, because the answer would be the same.
//
// A server may take the end to be part of the range; it is then asked for a tick less. But
// a server that ignores the range looks the same, so the client first requests a range to
// distinguish the two.
type question struct {
	span     Range
	closed   bool // the end is part of the range
	doubt    bool // this is the distinguishing range
	distrust bool // a 200 was found to be a part
}

// run makes requests until nothing is left.
func (r *run) run() {
	r.restart()
	for !r.left {
		if err := r.ctx.Err(); err != nil {
			r.yield(nil, err)
			return
		}
		err := r.step()
		if err == nil && r.span.isEmpty() && len(r.lost) > 0 && !r.heeded {
			r.span = r.after(nothing)
		}
		if r.heeded {
			r.tell()
		}
		switch {
		case r.left:
			return
		case err == nil && r.span.isEmpty() && r.from.Rest != (Rest{}):
			r.tell()
			r.from = r.Harvest.next
			if r.Harvest.next = (Mark{}); !r.lossy {
				r.at = r.from
			}
			clear(r.seen)
			clear(r.ids)
			r.restart()
		case err == nil && r.span.isEmpty():
			r.finish()
			return
		case err != nil && !r.turn(err):
			r.end(err)
			return
		}
	}
}

// finish ends a harvest that has nothing left to ask for. After a loss, the next one asks for
// the whole range again.
func (r *run) finish() {
	r.tell()
	switch {
	case r.left:
	case r.lossy:
		r.at = Mark{Since: r.Harvest.from.Since}
	default:
		r.whole = true
	}
}

// step asks one question. It yields the answer last, so Mark then has the place after it.
func (r *run) step() error {
	a, err := r.ask()
	if err != nil {
		return err
	}
	r.span, err = r.next(a)
	r.most = max(r.most, len(a.stamps))
	if err == nil && r.isSettled(a) {
		r.save()
		r.forget()
	}
	r.hand(a.doc)
	return err
}

// tell yields the losses. As long as it is unknown whether the server supports ranges
// at all, another dialect may still bring the lost items.
func (r *run) tell() {
	for _, loss := range r.lost {
		r.lossy = true
		if r.left = r.left || !r.yield(nil, gap(r.c.URL, loss)); r.left {
			break
		}
	}
	r.lost = nil
}

// restart begins with everything since the last harvest (modified-range#8), or with the rest
// of a harvest that was cut short.
func (r *run) restart() {
	r.progress = progress{question: question{span: Range{Start: r.from.Since}}, asked: map[question]bool{}}
	if rest := r.from.Rest; rest != (Rest{}) && rest.Dialect == r.dialects[0] {
		r.resume(rest)
	}
	r.Harvest.dialect = r.dialects[0]
}

// turn switches to the next dialect if the error is about an unsupported one, and
// reports whether there is a next.
func (r *run) turn(err error) bool {
	status, refused := errors.AsType[*feedhistory.StatusError](err)
	refused = refused && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented,
	}, status.Status)
	_, ignored := errors.AsType[*IgnoredError](err)
	if !refused && !ignored || len(r.dialects) == 1 {
		return false
	}
	r.dialects = r.dialects[1:]
	r.restart()
	return true
}

// end yields the harvest's last error. A fault of the server would meet the next harvest at the
// same place again, before anything newer, so that one starts where this one did.
func (r *run) end(err error) {
	if errors.As(err, new(*PossibleLossError)) || errors.As(err, new(*StampError)) || errors.As(err, new(*IgnoredError)) {
		r.at = Mark{Since: r.Harvest.from.Since}
	}
	g, isGap := errors.AsType[*feedhistory.Gap](err)
	_, status := errors.AsType[*feedhistory.StatusError](err)
	ctxErr := r.ctx.Err()
	switch {
	case ctxErr != nil:
		r.yield(nil, ctxErr)
	case !r.begun:
		r.yield(nil, err)
	case isGap:
		r.yield(nil, g)
	case status && r.c.Dialect == AnyDialect && !r.heeded:
		// The earlier dialects were ignored, and this one is refused.
		r.yield(nil, gap(r.c.URL, r.ignored("")))
	default:
		r.yield(nil, gap(r.c.URL, err))
	}
}

// hand yields a document if it has something new, or is the first, or if the mark has moved.
func (r *run) hand(doc *feedhistory.Document) {
	if r.begun && len(doc.Entries)+len(doc.Deleted) == 0 && r.at == r.told {
		return
	}
	r.begun, r.told = true, r.at
	r.left = !r.yield(doc, nil)
}

// ignored returns the error for a server that ignores all dialects so far.
func (r *run) ignored(id string) error {
	all := r.c.Dialect.candidates()
	return &IgnoredError{
		URL: r.c.URL, Tried: all[:len(all)-len(r.dialects)+1], Asked: r.span, ID: id, Clause: clauseHeed,
	}
}

func (r *run) limit(name string, most int64) error {
	return &BudgetError{URL: r.c.URL, Limit: name, Max: most, Clause: clauseBounded}
}
