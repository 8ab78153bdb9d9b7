package modifiedrange

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A run is a sync under way.
type run struct {
	*Sync
	ctx    context.Context // of the requests
	http   *feedhistory.Client
	yield  func(*feedhistory.Document, error) bool
	limits Limits
	bytes  int64

	dialects []Dialect // those that may be heeded, the one in use first
	begun    bool      // a document was yielded
	left     bool      // by whoever ranges over the documents

	stamp  stampKind
	unit   time.Duration       // the smallest that a stamp was written in; zero: none was
	seen   map[stamped]Dialect // what has come, with the last dialect that brought it
	ids    map[string]int      // the IDs of the entries that have come, with the number of the request
	newest time.Time           // of what has come
	oldest time.Time           // of the last answer
	lossy  bool                // a loss was yielded

	progress
}

// A progress is how far a run has come in the dialect in use.
type progress struct {
	span   Range // to be asked for next
	heeded bool  // the server has shown that it heeds the range

	// A server that does not say what its answers cover may answer 200 with a
	// part: GData does. Its first 200 is confirmed by one more request.
	claimed  time.Time // the oldest item of a 200 that is to be confirmed
	newer    int       // how many items of that 200 the confirmation leaves out
	distrust bool      // a 200 was found to be a part

	tie time.Time // the group of equal stamps that no answer went beyond; zero: none

	// A server may take the end to be part of the range. Found out, it is asked
	// for a tick less. What shows that is shown by one that ignores the range as
	// well, so a range is asked for first that tells them apart.
	closed bool
	doubt  bool  // that range is being asked for
	put    Range // what was asked for before

	asked map[question]bool    // what was asked: no question brings anything twice
	lost  []*PossibleLossError // that are not yielded yet
}

// A question is what may not be asked again, for the answer would be the same.
type question struct {
	span                    Range
	doubt, closed, distrust bool
}

// run asks until there is nothing left to ask for.
func (r *run) run() {
	r.restart()
	for !r.left {
		if err := r.ctx.Err(); err != nil {
			r.yield(nil, err)
			return
		}
		a, err := r.ask()
		if err == nil && !r.left {
			r.span, err = r.next(a)
		}
		if err == nil && r.span.IsEmpty() && len(r.lost) > 0 && !r.heeded {
			r.span = r.after(nothing)
		}
		if r.heeded {
			r.tell()
		}
		switch {
		case r.left:
			return
		case err == nil && r.span.IsEmpty():
			r.tell()
			r.whole = !r.lossy && !r.left
			return
		case err != nil && !r.turn(err):
			r.end(err)
			return
		}
	}
}

// tell yields what is lost. As long as it is not known whether the server heeds
// the range at all, another dialect may bring it.
func (r *run) tell() {
	for _, loss := range r.lost {
		r.lossy = true
		if r.left = r.left || !r.yield(nil, gap(r.c.URL, loss)); r.left {
			break
		}
	}
	r.lost = nil
}

// restart begins with everything since the last sync (modified-range#8).
func (r *run) restart() {
	r.progress = progress{span: Range{Start: r.from.Since}, asked: map[question]bool{}}
	r.Sync.dialect = r.dialects[0]
}

// turn goes on to the next dialect if the error says that the one in use is not
// understood, and reports whether there is one.
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

// end yields the error that ends the sync.
func (r *run) end(err error) {
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
	case status && r.c.Dialect == Probe && !r.heeded:
		// The dialects before were ignored, and this one is refused.
		r.yield(nil, gap(r.c.URL, r.ignored("")))
	default:
		r.yield(nil, gap(r.c.URL, err))
	}
}

// hand yields a document, if there is something new in it or it is the first.
func (r *run) hand(doc *feedhistory.Document) {
	if r.begun && len(doc.Entries)+len(doc.Deleted) == 0 {
		return
	}
	r.begun = true
	r.left = !r.yield(doc, nil)
}

// ignored makes the error that all dialects so far are ignored.
func (r *run) ignored(id string) error {
	all := r.c.Dialect.candidates()
	return &IgnoredError{
		URL: r.c.URL, Tried: all[:len(all)-len(r.dialects)+1], Asked: r.span, ID: id, Clause: clauseHeed,
	}
}

func (r *run) limit(name string, most int64) error {
	return &BudgetError{URL: r.c.URL, Limit: name, Max: most, Clause: clauseBounded}
}
