package atompmh

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A FormatError reports a document other than Atom, which cannot be part of a feed of
// records.
type FormatError struct {
	URL    string
	Format feedhistory.Format
	Clause string
}

// Error is Detail with the URL.
func (e *FormatError) Error() string { return e.URL + ": " + e.Detail() }

// Detail names the format, without the URL.
func (e *FormatError) Detail() string {
	return fmt.Sprintf("this is %s, not Atom (%s)", e.Format, e.Clause)
}

func notAtom(doc *feedhistory.Document) error {
	return &FormatError{URL: doc.URL, Format: doc.Format, Clause: "atom-pmh#3"}
}

// An AcceptError reports an invalid media type.
type AcceptError struct {
	Value string // the value as it was given
	Err   error
}

// Error quotes the value.
func (e *AcceptError) Error() string { return fmt.Sprintf("accept %q: %v", e.Value, e.Err) }

// Unwrap returns the fault of the value.
func (e *AcceptError) Unwrap() error { return e.Err }

// A RecordError reports a record of the pool that cannot be published: not at all, not
// yet, or no longer. Nothing of the update has been published then, unless the only
// errors are ErrFuture: such records wait, and the others have been published.
type RecordError struct {
	ID       string
	Modified time.Time
	Clause   string // the clause of Atom-PMH
	Err      error  // matches ErrRecord, ErrLate, ErrSameTime or ErrFuture
}

// Error names the record and the clause.
func (e *RecordError) Error() string {
	return fmt.Sprintf("record %q, modified %s: %v (%s)", e.ID, e.Modified.UTC().Format(time.RFC3339Nano), e.Err, e.Clause)
}

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// The reasons why a record cannot be published. A RecordError matches one of
// them.
var (
	// ErrRecord means the record lacks a required field.
	ErrRecord = errors.New("not a publishable record")
	// ErrLate means the record appeared after a later one, or a later state of its own,
	// was published.
	ErrLate = errors.New("a later change is published already")
	// ErrSameTime means the record was changed again without a later modified time.
	ErrSameTime = errors.New("another state of the record with this time is published")
	// ErrFuture means the record's last modified time is more than a minute ahead of the
	// producer's clock. An update after that time publishes it.
	ErrFuture = errors.New("its time is still to come")
)

// A DeletionsError reports a feed that cannot change the way it shows deletions,
// because of something it has published.
type DeletionsError struct {
	Published Deletions // how the published feed shows deletions
	Clause    string
	Err       error // the published fact that forbids the change
}

// Error names the published fact that forbids the change.
func (e *DeletionsError) Error() string {
	return fmt.Sprintf("the published feed shows deletions by %s: %v (%s)", e.Published, e.Err, e.Clause)
}

// Unwrap returns the published fact that forbids the change.
func (e *DeletionsError) Unwrap() error { return e.Err }
