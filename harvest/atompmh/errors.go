package atompmh

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A FormatError says that a document is no Atom, and so nothing of a feed of
// records.
type FormatError struct {
	URL    string
	Format feedhistory.Format
	Clause string
}

// Error names the document and its format.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: this is %s, not Atom (%s)", e.URL, e.Format, e.Clause)
}

func notAtom(doc *feedhistory.Document) error {
	return &FormatError{URL: doc.URL, Format: doc.Format, Clause: "atom-pmh#3"}
}

// An AcceptError says that what was given as a media type is none.
type AcceptError struct {
	Value string // as it was given
	Err   error
}

// Error quotes the value.
func (e *AcceptError) Error() string { return fmt.Sprintf("accept %q: %v", e.Value, e.Err) }

// Unwrap returns what is wrong with the value.
func (e *AcceptError) Unwrap() error { return e.Err }

// A RecordError says that a record of the pool cannot be published, not yet, or
// no longer. Nothing of the update has been published then, unless all that is
// wrong is ErrFuture: such a record waits, and the others have been published.
type RecordError struct {
	ID       string
	Modified time.Time
	Clause   string // of Atom-PMH
	Err      error  // ErrRecord, ErrLate, ErrSameTime or ErrFuture, or wraps it
}

// Error names the record and the clause.
func (e *RecordError) Error() string {
	return fmt.Sprintf("record %q, modified %s: %v (%s)", e.ID, e.Modified.UTC().Format(time.RFC3339Nano), e.Err, e.Clause)
}

// Unwrap returns the reason.
func (e *RecordError) Unwrap() error { return e.Err }

// Why a record cannot be published: what a RecordError matches.
var (
	// ErrRecord: it lacks what a record must have.
	ErrRecord = errors.New("not a record that can be published")
	// ErrLate: it is seen after another was published that is later, or a later
	// state of its own.
	ErrLate = errors.New("what is published is later")
	// ErrSameTime: it was changed again, and its last modified time is the same.
	ErrSameTime = errors.New("another state of the record with this time is published")
	// ErrFuture: its last modified time is more than a minute ahead of the
	// producer's clock. It is published when that time has come.
	ErrFuture = errors.New("its time is still to come")
)

// A DeletionsError says that a feed cannot go over to telling of deletions in
// another way: what is published contradicts it.
type DeletionsError struct {
	Published Deletions // how the published feed tells of deletions
	Clause    string
	Err       error // what contradicts
}

// Error says what contradicts.
func (e *DeletionsError) Error() string {
	return fmt.Sprintf("the published feed tells of deletions by %s: %v (%s)", e.Published, e.Err, e.Clause)
}

// Unwrap returns what contradicts.
func (e *DeletionsError) Unwrap() error { return e.Err }
