package publish

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// ErrEmptySource is the error of a Batch that would delete entries because
// its Entries are empty. More likely, the source could not be read.
var ErrEmptySource = errors.New("the source is empty, so no entry is deleted")

// A TooManyDeletionsError is the error of a Batch whose DeleteMissing would
// delete more entries than MaxDeletions allows. Nothing has been published.
type TooManyDeletionsError struct {
	Missing   int // the number of published entries the source lacks
	Published int // the number of published entries
}

// Error returns the numbers.
func (e *TooManyDeletionsError) Error() string {
	return fmt.Sprintf("%d of the %d published entries are missing from the source: too many to delete", e.Missing, e.Published)
}

// A deletionReport is the outcome of comparing the published entries with the
// source's.
type deletionReport struct {
	items     []item // the deletions to publish, oldest first
	published int    // the number of published entries
	missing   int    // the number of published entries the source lacks and does not call deleted
}

// deletions returns the deletions an update publishes.
func deletions(known map[string]version, given map[string]bool, u Batch) (d deletionReport) {
	for _, t := range u.Deleted {
		old, published := known[t.Ref]
		if given[t.Ref] || !published || old.deleted {
			continue
		}
		if given[t.Ref] = true; t.When.Before(old.time) && !t.When.IsZero() {
			continue // the entry has been published again since (RFC 6721 §2)
		}
		d.items = append(d.items, item{id: t.Ref, time: feedtime.Later(cmp.Or(t.When, u.Now), old.time)})
	}
	for id, old := range known {
		if old.deleted {
			continue
		}
		d.published++
		if given[id] {
			continue
		}
		d.missing++
		if u.DeleteMissing {
			d.items = append(d.items, item{id: id, time: feedtime.Later(u.Now, old.time)})
		}
	}
	slices.SortFunc(d.items, func(a, b item) int { return cmp.Or(a.time.Compare(b.time), strings.Compare(a.id, b.id)) })
	return d
}

// The deletions that need no MaxDeletions: five, or a fifth of the published
// entries if that is more.
const (
	fewDeletions  = 5
	deletableEach = 5
)

// permit returns an error if the update must not delete the missing entries.
func (u *Batch) permit(d deletionReport) error {
	most := cmp.Or(u.MaxDeletions, max(fewDeletions, d.published/deletableEach))
	switch {
	case !u.DeleteMissing || d.missing == 0:
		return nil
	case len(u.Entries) == 0:
		return ErrEmptySource
	case most >= 0 && d.missing > most:
		return &TooManyDeletionsError{Missing: d.missing, Published: d.published}
	}
	return nil
}
