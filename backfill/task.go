package backfill

import (
	"time"

	"github.com/feedhistory/feedhistory"
)

// A task is what a walk is to do where something is there already, how far it
// has come, and what it has learnt on the way. Its zero value is a walk over
// everything, from the beginning.
type task struct {
	place place
	done  bool // the walk has come to its end, if with gaps
	again bool // it is to begin again
	soon  bool // nothing could be proved, for want of an answer

	// refill has a walk read only what is newer than what is there.
	refill bool

	// holds reports whether all entries are there, in these very versions, since
	// before whatever the walk is to recover. Nil: nothing is there.
	holds func([]*feedhistory.Entry) bool

	// has returns those of the IDs whose entries are there. Nil: nothing is.
	has func(ids []string) map[string]bool

	counter string    // where the server says how many entries it has; "" if nowhere
	total   int       // how many it said, when that was proved to be there
	proven  time.Time // when that was; zero: it was not proved
}

// A place is how far a walk has come. It is set before a document is yielded,
// to what comes after that.
type place struct {
	Page    int    `json:"page,omitempty"`    // to be read next; zero: none
	Until   int    `json:"until,omitempty"`   // the last that is to be read in any case; zero: all are
	Entries int    `json:"entries,omitempty"` // that have come
	Last    string `json:"last,omitempty"`    // the ID of the last of them
	Latest  int    `json:"latest,omitempty"`  // page of what was modified meanwhile, to be read next

	// Before is the time of the snapshot that came last.
	Before time.Time `json:"before,omitzero"`
}

// begun reports whether the walk goes on where another was cut short.
func (p place) begun() bool { return p != place{} }

// overlaps reports whether a page leads to what is there already.
func (t *task) overlaps(entries []*feedhistory.Entry) bool {
	return t.holds != nil && len(entries) > 0 && t.holds(entries)
}
