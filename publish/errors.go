package publish

import (
	"errors"
	"fmt"
	"time"
)

// Why an entry is refused: what the error of an *EntryError matches.
var (
	// ErrSameTime: another version with the same update time is published, so
	// nobody could tell which is the newer (5005#16).
	ErrSameTime = errors.New("another version with this update time is published already")
	// ErrStale: a version, or a deletion, with a later time is published.
	ErrStale = errors.New("what is published is newer")
	// ErrLate: another entry is newer, and the feed is Chronological.
	ErrLate = errors.New("the feed is newer")
	// ErrNotPublished: there is no entry with this id that could be corrected,
	// or erased.
	ErrNotPublished = errors.New("no such entry is published")
	// ErrUnpublishable: the entry would not be read as it was given, for
	// instance because its id has characters that XML cannot have.
	ErrUnpublishable = errors.New("the entry cannot be written so that it is read as it was meant")
)

// ErrForeign says that the file in the place of the subscription document was
// not written by a Publisher. Its entries can be published by AppendHistory,
// once it is out of the way.
var ErrForeign = errors.New("not a subscription document that this package wrote")

// An EntryError says which entry is refused, and why. Nothing of the call has
// been published then.
type EntryError struct {
	ID        string
	Given     time.Time // the time it came with
	Published time.Time // that of the version, or deletion, which is published; with ErrLate, that of the newest entry
	Err       error     // ErrSameTime, ErrStale, ErrLate, ErrNotPublished or ErrUnpublishable, or wraps it
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
