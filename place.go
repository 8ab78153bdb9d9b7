package feedhistory

import "sync/atomic"

// A place has a walk's findings about a document it yields.
type place struct {
	feed   Kind      // the kind of the document's chain; Plain if it is in none
	begins string    // the target of its link to the beginning, unless it leads elsewhere
	again  bool      // the next walk from here must look for the beginning again
	walk   *progress // of the walk; nil if none has yielded it
}

// A progress is shared by a walk and the documents it yields, so a Merger of them knows
// whether it has all.
type progress struct {
	more atomic.Bool // the walk may yield more
}

// isLast reports whether the walk, if there is one, yields nothing after the document.
func (p place) isLast() bool { return p.walk == nil || !p.walk.more.Load() }
