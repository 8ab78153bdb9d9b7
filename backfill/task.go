package backfill

import (
	"time"

	"github.com/feedhistory/feedhistory"
)

// A task is the work of a walk if some entries are known already: its aim, its progress
// and its findings. The zero value is a walk over everything, from the beginning.
type task struct {
	place place
	state taskState
	soon  bool // nothing could be proved because an answer was missing

	// refill makes a walk read only the entries newer than the known ones.
	refill bool

	// holds reports whether all of these versions of entries are known from before the
	// time of the entries to recover. Nil means nothing is known.
	holds func([]*feedhistory.Entry) bool

	// has returns the IDs whose entries are known. Nil means none.
	has func(ids []string) map[string]bool

	counter string    // the URL at which the server says how many entries it has; "" if it does not
	total   int       // the number it gave, if all of them are proved to have come
	proven  time.Time // when it counted; zero without the proof
}

// A taskState is how a walk has ended.
type taskState uint8

const (
	unended taskState = iota // the walk may continue at its place
	restart                  // the walk must begin again
	ended                    // the walk has reached its end, perhaps with gaps
)

// A place is how far a walk has come. Before a document is yielded, the place is set to
// the next one.
type place struct {
	Page    int    `json:"page,omitempty"`    // the next page to read; zero for none
	Until   int    `json:"until,omitempty"`   // the last page to read; zero means all
	Entries int    `json:"entries,omitempty"` // the number of entries so far
	Last    string `json:"last,omitempty"`    // the ID of the last of them
	Latest  int    `json:"latest,omitempty"`  // the next page to read of the posts modified meanwhile

	// Before is the time of the last snapshot.
	Before time.Time `json:"before,omitzero"`
}

// begun reports whether the walk continues an interrupted one.
func (p place) begun() bool { return p != place{} }

// overlaps reports whether a page leads to known entries.
func (t *task) overlaps(entries []*feedhistory.Entry) bool {
	return t.holds != nil && len(entries) > 0 && t.holds(entries)
}
