// Package harvest is the common vocabulary of the sibling protocols of RFC 5005, which keep a
// consumer up to date with a collection: atompmh, datareplication and modifiedrange, each a
// package with a Harvester and its other side. They share how a harvest fails, and what it
// may cost. A Mark is each protocol's own, because each remembers something else.
//
// Each package has a type Harvest, which yields items. Its other methods are the same in all
// three: Mark returns where the next harvest begins, which is to be stored even if something is
// missing, and whether the harvest is whole; Gaps returns the gaps, and Requests the number of
// requests.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package harvest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Code says why a harvest failed, or may have missed something, or why something cannot be
// published. It is an error itself, so errors.Is(err, harvest.ErrBudget) finds an *Error with
// this Code.
type Code string

// The codes, with the protocols that use them where these are not all.
const (
	ErrBudget    Code = "budget"    // the harvest needs more than its Budget allows; the next one continues there
	ErrMalformed Code = "malformed" // a page, an entity or the index of a snapshot is unreadable (datareplication)
	ErrFormat    Code = "format"    // a document is not Atom, so it cannot be part of a feed of records (atompmh)
	ErrCutShort  Code = "cut-short" // a page ended before its last delimiter; the next harvest continues there (datareplication)
	ErrLink      Code = "link"      // two pages disagree about being neighbours (datareplication)
	ErrLoop      Code = "loop"      // a link leads back to a visited page (datareplication)
	ErrStamp     Code = "stamp"     // a stamp is missing (modifiedrange), or earlier than the one before (datareplication)
	ErrMark      Code = "mark"      // the feed goes back further than the mark, but lacks its entity: with only the mark's Time nothing is lost (datareplication)
	ErrReach     Code = "reach"     // the feed does not reach back to the mark: entities may be lost; begin again, preferably with a snapshot (datareplication)
	ErrPage      Code = "page"      // a linked page cannot be retrieved (datareplication)
	ErrSnapshot  Code = "snapshot"  // the index or a page of a snapshot cannot be retrieved; discard its entities (datareplication)
	ErrLoss      Code = "loss"      // items of one stamp, or of a part without items, may be missing; older ones were harvested if they can be (modifiedrange)
	ErrStuck     Code = "stuck"     // the same, and items older than these cannot be retrieved (modifiedrange)
	ErrIgnored   Code = "ignored"   // the server ignores ranges, in all dialects tried; its answer may or may not be everything (modifiedrange)
	ErrAccept    Code = "accept"    // the Item is no media type to accept (atompmh)

	ErrRecord    Code = "record"    // a record lacks a required field (atompmh)
	ErrLate      Code = "late"      // a record appeared after a later one, or a later state of its own, was published (atompmh)
	ErrSameTime  Code = "same-time" // a record was changed again without a later modified time (atompmh)
	ErrFuture    Code = "future"    // a record is more than a minute ahead of the producer's clock; an update after that time publishes it (atompmh)
	ErrDeletions Code = "deletions" // the published feed shows deletions as the Item says, so it cannot show them in the other way (atompmh)
	ErrEntity    Code = "entity"    // an entity cannot be published; Err says why (datareplication)
)

// texts are those of the errors about a record.
var texts = map[Code]string{
	ErrRecord: "not a publishable record", ErrLate: "a later change is published already",
	ErrSameTime: "another state of the record with this time is published", ErrFuture: "its time is still to come",
}

// Error returns the code.
func (c Code) Error() string { return string(c) }

// reasons are the reasons of the gaps that errors leave; the others have that of their Err.
var reasons = map[Code]feedhistory.Reason{
	ErrBudget: feedhistory.ReasonBudget, ErrMalformed: feedhistory.ReasonMalformed, ErrFormat: feedhistory.ReasonNotFeed,
	ErrCutShort: feedhistory.ReasonTruncated, ErrLink: feedhistory.ReasonContradiction, ErrLoop: feedhistory.ReasonLoop,
	ErrStamp: feedhistory.ReasonMalformed, ErrMark: feedhistory.ReasonMissedWindow, ErrReach: feedhistory.ReasonMissedWindow,
	ErrLoss: feedhistory.ReasonBarren, ErrStuck: feedhistory.ReasonBarren,
	ErrIgnored: feedhistory.ReasonMissedWindow, // the part received is only a window
}

// An Error is a failure of a harvest, or of a producer, mostly one that a clause of its protocol
// names.
type Error struct {
	Code   Code
	URL    string // the document or page concerned; the collection, if it is none in particular; "" for a producer's
	Clause string // the clause, with its words; "" if there is none
	Text   string // what happened; "" if Err or the Code says so

	From  string    // the page with the link to URL (ErrPage, ErrSnapshot); "" for the index of a snapshot
	Item  string    // the ID of the item concerned; "" if it is none in particular
	At    time.Time // the stamp of the lost items (ErrLoss, ErrStuck), of the oldest entity there is (ErrReach), or of the record; zero if unknown
	Limit string    // the limit exceeded (ErrBudget): "requests", "items", "bytes" or "entity"
	Max   int64     // its value
	Err   error     // the cause; nil if there is no other
}

// Error is Detail with the URL and, if the page cannot be retrieved, with what leads to it.
func (e *Error) Error() string {
	switch {
	case e.URL == "":
		return e.Detail()
	case !e.isOfPage():
		return e.URL + ": " + e.Detail()
	}
	from := ""
	if e.From != "" {
		from = ", to which " + e.From + " leads"
	}
	return fmt.Sprintf("%s%s: %v (%s)", e.URL, from, e.Err, e.Clause)
}

// Detail describes the error without the URL, which programs show separately.
func (e *Error) Detail() string {
	if e.isOfPage() {
		return feedhistory.Describe(e.Err)
	}
	text := e.Text
	if what, ok := texts[e.Code]; ok {
		if text != "" {
			what += ": " + text
		}
		text = fmt.Sprintf("record %q, modified %s: %s", e.Item, e.At.UTC().Format(time.RFC3339Nano), what)
	}
	if e.Clause == "" {
		return text
	}
	return text + " (" + e.Clause + ")"
}

func (e *Error) isOfPage() bool { return e.Code == ErrPage || e.Code == ErrSnapshot }

// Is reports whether target is the error's Code.
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// NewGap returns the gap an error leaves in a collection after its harvest has begun.
func NewGap(url string, err error) *feedhistory.Gap {
	g := feedhistory.NewGap(url, err)
	if e, ok := errors.AsType[*Error](err); ok {
		g.Reason = cmp.Or(reasons[e.Code], g.Reason)
	}
	return g
}

// A Query finds the items of a Handler: those created, modified or deleted at or after start and
// before end, most recently changed first, and at most limit of them. A zero time, or a zero
// limit, means no bound. Several goroutines may call it at the same time.
//
// In SQL: WHERE modified >= ? AND modified < ? ORDER BY modified DESC LIMIT ?.
type Query[Item any] func(ctx context.Context, start, end time.Time, limit int) ([]Item, error)

// A Budget bounds the cost of one harvest: one that reaches a limit ends with ErrBudget. A
// field of zero means the default of the protocol, which its Harvester names.
type Budget struct {
	Requests int   // Requests is the maximum number of requests.
	Items    int   // Items is the maximum number of items to receive (modifiedrange).
	Bytes    int64 // Bytes is the maximum size of all documents together, decompressed (atompmh, modifiedrange).
	Page     int64 // Page is the maximum size of a page, decompressed; only one entity of it is in memory (datareplication).
	Entity   int64 // Entity is the maximum size of an entity's body (datareplication).
}

// Check returns an error that names the first negative field, for a package.
func (b Budget) Check(pkg string) error {
	return settings.Check(pkg, settings.Number{Name: "Budget.Requests", Value: int64(b.Requests)}, settings.Number{Name: "Budget.Items", Value: int64(b.Items)},
		settings.Number{Name: "Budget.Bytes", Value: b.Bytes}, settings.Number{Name: "Budget.Page", Value: b.Page}, settings.Number{Name: "Budget.Entity", Value: b.Entity})
}
