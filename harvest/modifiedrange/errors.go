package modifiedrange

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A PossibleLossError reports a harvest that may have missed items. The server answers
// with a part that cannot be reduced further, because it cuts through a group of items
// with the same stamp. The harvest has continued with older items, unless they cannot be
// requested, or the part has no items.
type PossibleLossError struct {
	URL    string
	Asked  Range     // the range of the last request
	At     time.Time // the stamp of the group; zero if there were no items
	Stuck  bool      // whether items older than the group are missing, too
	Clause string
}

// Error is Detail with the URL.
func (e *PossibleLossError) Error() string { return e.URL + ": " + e.Detail() }

// Detail says where something may be missing.
func (e *PossibleLossError) Detail() string {
	if e.At.IsZero() {
		return fmt.Sprintf("possible data loss: the server sent an empty part of %s (%s)", e.Asked, e.Clause)
	}
	if e.Stuck {
		return fmt.Sprintf("possible data loss: the server gives the same answer for %s again, so items older than %s cannot be retrieved (%s)",
			e.Asked, formatTime(e.At), e.Clause)
	}
	return fmt.Sprintf("possible data loss: the server sent only some of the items modified at %s (%s)",
		formatTime(e.At), e.Clause)
}

// An IgnoredError reports a server that ignores the range: it answers with items from
// outside of it. Its answer may or may not be everything.
type IgnoredError struct {
	URL    string
	Tried  []Dialect // the dialects, all of which it ignores
	Asked  Range     // the range of the last request
	ID     string    // the ID of an item clearly outside of the range; "" if there is none
	Clause string
}

// Error is Detail with the URL.
func (e *IgnoredError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the ignored range.
func (e *IgnoredError) Detail() string {
	var tried []string
	for _, d := range e.Tried {
		tried = append(tried, d.String())
	}
	s := fmt.Sprintf("the server ignores the range (%s)", strings.Join(tried, ", "))
	if e.ID != "" {
		s += fmt.Sprintf(": asked for %s it sent %s", e.Asked, clip(e.ID))
	}
	return s + " (" + e.Clause + ")"
}

// A StampError reports an item without a time of modification, or with one in another
// element than the other items'.
type StampError struct {
	URL    string
	ID     string // the ID of the item
	Clause string
}

// Error is Detail with the URL.
func (e *StampError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the item.
func (e *StampError) Detail() string {
	return fmt.Sprintf("%s does not say when it was last modified, or not as the others do (%s)", clip(e.ID), e.Clause)
}

// A BudgetError reports a harvest that needs more than its Budget allows.
type BudgetError struct {
	URL    string
	Limit  string // "requests", "items" or "bytes"
	Max    int64  // the limit
	Clause string
}

// Error is Detail with the URL.
func (e *BudgetError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the limit.
func (e *BudgetError) Detail() string {
	return fmt.Sprintf("the harvest needs more %s than the limit of %d (%s)", e.Limit, e.Max, e.Clause)
}

// The clauses cited by errors.
const (
	clauseTies    = "modified-range#5: a server never cuts through a group of equal stamps"
	clauseSubset  = "modified-range#4: a part has the most recent items of the range"
	clauseHeed    = "modified-range#3: an answer has items of the range"
	clauseStamp   = "modified-range#6: each item has a stamp, of one kind throughout"
	clauseBounded = "modified-range#12: every loop is bounded"
)

// gap returns the gap an error leaves after a harvest has begun.
func gap(url string, err error) *feedhistory.Gap {
	g := feedhistory.NewGap(url, err)
	switch {
	case errors.As(err, new(*PossibleLossError)):
		g.Reason = feedhistory.ReasonBarren
	case errors.As(err, new(*IgnoredError)): // the part received is only a window
		g.Reason = feedhistory.ReasonMissedWindow
	case errors.As(err, new(*StampError)):
		g.Reason = feedhistory.ReasonMalformed
	case errors.As(err, new(*BudgetError)):
		g.Reason = feedhistory.ReasonBudget
	}
	return g
}
