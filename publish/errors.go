package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// The reasons for refusing an entry. The error of an *EntryError matches one of
// them.
var (
	// ErrSameTime means another version with the same update time is published, so nobody
	// could tell the newer one (5005#16).
	ErrSameTime = errors.New("another version with the same update time is already published")
	// ErrStale means a version, or a deletion, with a later time is published.
	ErrStale = errors.New("a newer version is published")
	// ErrLate means a newer entry is published and the feed is Chronological.
	ErrLate = errors.New("the feed has newer entries")
	// ErrNotPublished means there is no entry with this id to correct or erase.
	ErrNotPublished = errors.New("no such entry is published")
	// ErrNoID means an entry is nil, or a literal without an ID.
	ErrNoID = errors.New("the entry is nil or has no ID")
	// ErrUnpublishable means readers would not read the entry as given, for instance
	// because its id contains characters forbidden in XML.
	ErrUnpublishable = errors.New("readers would not read the entry as given")
)

// ErrForeign means the file with the name of the subscription document was not written
// by a Publisher. Move it away; its entries can then be published by AppendHistory.
var ErrForeign = errors.New("not a subscription document written by feedhistory")

// An EntryError says which entry was refused, and why. Nothing of the call has
// been published then.
type EntryError struct {
	ID        string
	Given     time.Time // the update time of the entry
	Published time.Time // the time of the published version or deletion; with ErrLate, of the newest published entry
	Err       error     // matches ErrSameTime, ErrStale, ErrLate, ErrNotPublished, ErrNoID or ErrUnpublishable
}

// Error returns the id, the reason and the times.
func (e *EntryError) Error() string {
	s := fmt.Sprintf("entry %q: %v", e.ID, e.Err)
	if !e.Published.IsZero() {
		s += fmt.Sprintf(" (%s, given %s)", e.Published.Format(time.RFC3339Nano), e.Given.Format(time.RFC3339Nano))
	}
	return s
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }

// refused returns the error for an entry, which may be nil.
func refused(e *feedhistory.Entry, err error) error {
	if e == nil {
		return &EntryError{Err: err}
	}
	return &EntryError{ID: e.ID, Given: e.Updated, Err: err}
}
