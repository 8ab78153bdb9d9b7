package datareplication

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// A NotFoundError says that the feed goes back further than the cursor, but the
// entity that the cursor names is not in it. To begin again with the cursor's
// Time alone loses nothing.
type NotFoundError struct {
	URL    string // of the feed
	Cursor Cursor
	Clause string
}

// Error names the entity.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s: the entity %q of %s, after which to go on, is not in the feed (%s)",
		e.URL, clip(e.Cursor.ContentID), stamp(e.Cursor.Time), e.Clause)
}

// A ReachError says that the feed does not reach back to the cursor: what came
// after it has been removed, all or in part, so some of it may be lost. What can
// be done is to begin again, with a snapshot, or with everything that there is:
// the zero Cursor.
type ReachError struct {
	URL    string // of the oldest page that there is
	Cursor Cursor
	Oldest time.Time // the first stamp that there is; zero: there is none
	Clause string
}

// Error says how far the feed reaches.
func (e *ReachError) Error() string {
	s := fmt.Sprintf("%s: the feed does not reach back to %s", e.URL, e.Cursor)
	if !e.Oldest.IsZero() {
		s += ", only to " + stamp(e.Oldest)
	}
	return s + ": some entities may be lost (" + e.Clause + ")"
}

// A PageError says that a page cannot be retrieved that another leads to, or the index
// or a page of a snapshot.
//
// One that is not there (404, 410) may have been cleaned up meanwhile. Then a
// harvest begins again on its own, from where it is, so the error says that the
// page is linked to and missing still. A snapshot can be begun again only as
// long as nothing of it has been yielded: after that, to harvest again is to
// begin with the snapshot that there is then, and what was yielded of the other
// is to be given up.
type PageError struct {
	URL      string // of the page
	From     string // the page or index that leads to it; "" for an index
	Snapshot bool   // it is part of a snapshot
	Err      error  // of the request: see feedhistory.Client.Get
	Clause   string
}

// Error names the page, and what leads to it.
func (e *PageError) Error() string {
	from := ""
	if e.From != "" {
		from = ", to which " + e.From + " leads"
	}
	return fmt.Sprintf("%s%s: %v (%s)", e.URL, from, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *PageError) Unwrap() error { return e.Err }

// A LinkError says that two pages disagree about being neighbours, or that a
// page is known by another URL than the one it is linked to by.
type LinkError struct {
	URL    string // of the page with the link
	Rel    string // "self", "prev" or "next"
	Link   string // where that leads; "" if the link is missing
	Want   string // where it should lead
	Clause string
}

// Error names both pages.
func (e *LinkError) Error() string {
	if e.Link == "" {
		return fmt.Sprintf("%s: there is no link with rel=%s; it should lead to %s (%s)", e.URL, e.Rel, e.Want, e.Clause)
	}
	return fmt.Sprintf("%s: the link with rel=%s leads to %s, but should to %s (%s)", e.URL, e.Rel, e.Link, e.Want, e.Clause)
}

// A LoopError says that the links lead back to a page that was visited.
type LoopError struct {
	URL    string // of the page with the link
	Link   string // where it leads
	Clause string
}

// Error names the link.
func (e *LoopError) Error() string {
	return fmt.Sprintf("%s: the link to %s leads in a circle (%s)", e.URL, e.Link, e.Clause)
}

// A StampError says that an entity is older than the one before it, or that a
// page is than the page before it or its own entities. Where to go on in such a
// feed cannot be told by time.
type StampError struct {
	URL       string    // of the page
	ContentID string    // of the entity; "" for the page
	Stamp     time.Time // that is too early
	Before    time.Time // what came before
	Clause    string
}

// Error names the stamps.
func (e *StampError) Error() string {
	what := "the page"
	if e.ContentID != "" {
		what = fmt.Sprintf("the entity %q", clip(e.ContentID))
	}
	return fmt.Sprintf("%s: %s is stamped %s, after an entity stamped %s (%s)", e.URL, what, stamp(e.Stamp), stamp(e.Before), e.Clause)
}

// A CutShortError says that a page ended before its last delimiter. What was
// handed on is whole; the next harvest goes on after that.
type CutShortError struct {
	URL    string // of the page
	Whole  int    // entities that came before
	Err    error  // io.ErrUnexpectedEOF, or how the request failed
	Clause string
}

// Error says how much was read.
func (e *CutShortError) Error() string {
	return fmt.Sprintf("%s: the page is cut short after %d entities: %v (%s)", e.URL, e.Whole, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *CutShortError) Unwrap() error { return e.Err }

// A MalformedError says that a page, an entity or the index of a snapshot
// cannot be read.
type MalformedError struct {
	URL    string
	Entity int // which of the page, from 1; 0: the page as such
	Err    error
	Clause string
}

// Error says where and why.
func (e *MalformedError) Error() string {
	where := ""
	if e.Entity > 0 {
		where = fmt.Sprintf(" entity %d:", e.Entity)
	}
	return fmt.Sprintf("%s:%s %v (%s)", e.URL, where, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *MalformedError) Unwrap() error { return e.Err }

// What an entity lacks: what a MalformedError matches.
var (
	ErrNoID       = errors.New("an entity without Content-ID: after it, nothing could come exactly once")
	ErrRepeatedID = errors.New("an entity with the Content-ID of one before it: after which to go on cannot be told")
	ErrOperation  = errors.New("an Operation-Type that is none of PUT, DELETE and PATCH")
	ErrNoStamp    = errors.New("an entity without Last-Modified")
	ErrLength     = replication.ErrLength // Content-Length is not the length of the body
)

// A BudgetError says that a harvest needs more than Limits allow.
type BudgetError struct {
	URL    string
	Limit  string // "requests" or "entity"
	Max    int64  // what was allowed
	Clause string
}

// Error names the limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s: the limit on %s (%d) is exceeded (%s)", e.URL, e.Limit, e.Max, e.Clause)
}

// What the errors cite.
const (
	clauseReading  = "datareplication#feed-2: a page is multipart, with a boundary"
	clauseLinks    = "datareplication#feed-3: links of neighbours agree, and do not form a loop"
	clausePages    = "datareplication#feed-1: every page that is linked to is there"
	clauseParts    = "datareplication#feed-4: each entity has a stamp, an ID of its own and an operation"
	clauseStamps   = "datareplication#feed-5: stamps never decrease"
	clauseReach    = "datareplication#consumer-3: entities that the feed no longer has are lost"
	clauseCursor   = "datareplication#consumer-2: what follows the cursor's entity is handed on"
	clauseTorn     = "datareplication#consumer-4: nothing of a torn entity is handed on"
	clauseBounded  = "datareplication#consumer-7: every harvest is bounded"
	clauseSnapshot = "datareplication#snapshot-1: an index has createdAt and the pages' URLs"
)

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func clip(s string) string { return replication.Clip(s) }

// String names the place.
func (c Cursor) String() string {
	switch {
	case c.IsZero():
		return "the beginning"
	case c.ContentID == "":
		return stamp(c.Time)
	}
	return fmt.Sprintf("%s, entity %q", stamp(c.Time), clip(c.ContentID))
}
