package datareplication

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// A NotFoundError reports a feed that goes back further than the mark, but does not
// contain the mark's entity. If you begin again with only the mark's Time, nothing
// is lost.
type NotFoundError struct {
	URL    string // the URL of the feed
	Mark   Mark
	Clause string
}

// Error is Detail with the URL.
func (e *NotFoundError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the entity.
func (e *NotFoundError) Detail() string {
	return fmt.Sprintf("the feed does not have the cursor's entity %q of %s (%s)",
		clip(e.Mark.ContentID), stamp(e.Mark.Time), e.Clause)
}

// A ReachError reports a feed that does not reach back to the mark: some or all
// entities after it have been removed, and may be lost. Begin again, either with a
// snapshot, or with everything the feed has: the zero Mark.
type ReachError struct {
	URL    string // the URL of the oldest page
	Mark   Mark
	Oldest time.Time // the first stamp in the feed; zero if there is none
	Clause string
}

// Error is Detail with the URL.
func (e *ReachError) Error() string { return e.URL + ": " + e.Detail() }

// Detail says how far the feed reaches.
func (e *ReachError) Detail() string {
	s := fmt.Sprintf("the feed does not reach back to %s", e.Mark)
	if !e.Oldest.IsZero() {
		s += ", only to " + stamp(e.Oldest)
	}
	return s + ": some entities may be lost (" + e.Clause + ")"
}

// A PageError is a failed request for a linked page, or for the index or a page of a
// snapshot.
//
// A missing page (404, 410) may have been cleaned up meanwhile. A harvest then
// continues by itself from where it is, so the error reports a page still linked to,
// and still missing. A snapshot can begin again by itself only if none of its entities
// has been yielded. Otherwise discard its entities: the next harvest begins with the
// snapshot of that time.
type PageError struct {
	URL      string // the URL of the page
	From     string // the URL of the page or index with the link; "" for an index
	Snapshot bool   // whether the page is part of a snapshot
	Err      error  // the error of the request: see feedhistory.Client.Get
	Clause   string
}

// Error names the page, and the page linking to it.
func (e *PageError) Error() string {
	from := ""
	if e.From != "" {
		from = ", to which " + e.From + " leads"
	}
	return fmt.Sprintf("%s%s: %v (%s)", e.URL, from, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *PageError) Unwrap() error { return e.Err }

// A LinkError reports two pages that disagree about being neighbours, or a page whose
// link to itself differs from the link to it.
type LinkError struct {
	URL    string // the URL of the page with the link
	Rel    string // "self", "prev" or "next"
	Link   string // the URL in the link; "" if there is no link
	Want   string // the URL expected there
	Clause string
}

// Error is Detail with the URL.
func (e *LinkError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the link, and the URL expected there.
func (e *LinkError) Detail() string {
	if e.Link == "" {
		return fmt.Sprintf("there is no link with rel=%s; it should lead to %s (%s)", e.Rel, e.Want, e.Clause)
	}
	return fmt.Sprintf("the link with rel=%s leads to %s, but should lead to %s (%s)", e.Rel, e.Link, e.Want, e.Clause)
}

// A LoopError reports a link back to a visited page.
type LoopError struct {
	URL    string // the URL of the page with the link
	Link   string // the URL in the link
	Clause string
}

// Error is Detail with the URL.
func (e *LoopError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the link.
func (e *LoopError) Detail() string {
	return fmt.Sprintf("the link to %s makes a loop (%s)", e.Link, e.Clause)
}

// A StampError reports an entity older than the entity before it, or a page older than
// the previous page or its own entities. In such a feed, a time does not tell where to
// continue.
type StampError struct {
	URL       string    // the URL of the page
	ContentID string    // the Content-ID of the entity; "" for the page
	Stamp     time.Time // the early stamp
	Before    time.Time // the stamp before it
	Clause    string
}

// Error is Detail with the URL.
func (e *StampError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the stamps.
func (e *StampError) Detail() string {
	what := "the page"
	if e.ContentID != "" {
		what = fmt.Sprintf("the entity %q", clip(e.ContentID))
	}
	return fmt.Sprintf("%s is stamped %s, after an entity stamped %s (%s)", what, stamp(e.Stamp), stamp(e.Before), e.Clause)
}

// A CutShortError reports a page that ended before its last delimiter. The entities
// yielded are whole; the next harvest continues after them.
type CutShortError struct {
	URL    string // the URL of the page
	Whole  int    // the number of whole entities on the page
	Err    error  // io.ErrUnexpectedEOF, or the error of the request
	Clause string
}

// Error is Detail with the URL.
func (e *CutShortError) Error() string { return e.URL + ": " + e.Detail() }

// Detail says how much was read.
func (e *CutShortError) Detail() string {
	return fmt.Sprintf("the page is cut short after %d entities: %s (%s)", e.Whole, feedhistory.Describe(e.Err), e.Clause)
}

// Unwrap returns Err.
func (e *CutShortError) Unwrap() error { return e.Err }

// A MalformedError reports an unreadable page, entity or index of a snapshot.
type MalformedError struct {
	URL    string
	Entity int // the number of the entity on the page, from 1; zero for the page itself
	Err    error
	Clause string
}

// Error is Detail with the URL.
func (e *MalformedError) Error() string { return e.URL + ": " + e.Detail() }

// Detail says where and why.
func (e *MalformedError) Detail() string {
	where := ""
	if e.Entity > 0 {
		where = fmt.Sprintf("entity %d: ", e.Entity)
	}
	return fmt.Sprintf("%s%v (%s)", where, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *MalformedError) Unwrap() error { return e.Err }

// The faults of entities. A MalformedError about an entity's content, and each
// EntityError, match one of them.
var (
	ErrNoID       = errors.New("an entity without Content-ID: a harvest could not continue exactly after it")
	ErrRepeatedID = errors.New("an entity with the Content-ID of an earlier one: a cursor could mean either")
	ErrOperation  = errors.New("an Operation-Type other than PUT, DELETE and PATCH")
	ErrNoStamp    = errors.New("an entity without Last-Modified")
	ErrField      = errors.New("a header field cannot contain it")
	ErrLength     = replication.ErrLength // the length of the body differs from Content-Length
)

// A BudgetError reports a harvest that needs more than its Budget allows.
type BudgetError struct {
	URL    string
	Limit  string // "requests" or "entity"
	Max    int64  // the limit
	Clause string
}

// Error is Detail with the URL.
func (e *BudgetError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the limit.
func (e *BudgetError) Detail() string {
	return fmt.Sprintf("the limit on %s (%d) is exceeded (%s)", e.Limit, e.Max, e.Clause)
}

// The clauses cited by errors.
const (
	clauseReading  = "datareplication#feed-2: a page is multipart, with a boundary"
	clauseLinks    = "datareplication#feed-3: links of neighbours agree, and do not form a loop"
	clausePages    = "datareplication#feed-1: every linked page exists"
	clauseParts    = "datareplication#feed-4: each entity has a stamp, a unique ID and an operation"
	clauseStamps   = "datareplication#feed-5: stamps never decrease"
	clauseReach    = "datareplication#consumer-3: entities that the feed no longer has are lost"
	clauseCursor   = "datareplication#consumer-2: what follows the cursor's entity is yielded"
	clauseTorn     = "datareplication#consumer-4: no part of a torn entity is yielded"
	clauseBounded  = "datareplication#consumer-7: every harvest is bounded"
	clauseSnapshot = "datareplication#snapshot-1: an index has createdAt and the pages' URLs"
)

// gap returns the gap for the end of a harvest.
func gap(url string, err error) *feedhistory.Gap {
	g := feedhistory.NewGap(url, err)
	switch {
	case errors.As(err, new(*BudgetError)):
		g.Reason = feedhistory.ReasonBudget
	case errors.As(err, new(*CutShortError)):
		g.Reason = feedhistory.ReasonTruncated
	case errors.As(err, new(*LoopError)):
		g.Reason = feedhistory.ReasonLoop
	case errors.As(err, new(*ReachError)), errors.As(err, new(*NotFoundError)):
		g.Reason = feedhistory.ReasonMissedWindow
	case errors.As(err, new(*LinkError)):
		g.Reason = feedhistory.ReasonContradiction
	case errors.As(err, new(*StampError)), errors.As(err, new(*MalformedError)):
		g.Reason = feedhistory.ReasonMalformed
	}
	return g
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func clip(s string) string { return replication.Clip(s) }

// String describes the place.
func (c Mark) String() string {
	switch {
	case c.IsZero():
		return "the beginning"
	case c.ContentID == "":
		return stamp(c.Time)
	}
	return fmt.Sprintf("%s, entity %q", stamp(c.Time), clip(c.ContentID))
}
