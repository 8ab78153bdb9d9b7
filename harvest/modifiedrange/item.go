package modifiedrange

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// An Item is an entry of a collection, or a deletion (modified-range#10).
type Item struct {
	// Modified is the stamp of the item: the app:edited of its entry, or else
	// the modified of Atom 0.3, or else atom:updated, to the last digit
	// (modified-range#6). For a deletion it is the time of the deletion.
	Modified time.Time

	Entry   *feedhistory.Entry // nil for a deletion
	Deleted string             // the ID of the deleted entry; "" otherwise
}

var errItem = errors.New("an item must be either an entry or a deletion")

// check returns an error for an item misleading to clients.
func (i Item) check(within Range) error {
	switch {
	case (i.Entry == nil) == (i.Deleted == ""):
		return errItem
	case !within.Contains(i.Modified):
		return fmt.Errorf("%s: modified at %s, which is outside of %s", i.id(), formatTime(i.Modified), within)
	case i.Entry != nil && !StampOf(i.Entry).Equal(i.Modified):
		return fmt.Errorf("%s: its XML says that it was modified at %s, the query says at %s (modified-range#6)",
			i.id(), formatTime(StampOf(i.Entry)), formatTime(i.Modified))
	}
	return nil
}

func (i Item) id() string {
	if i.Entry == nil {
		return i.Deleted
	}
	return i.Entry.ID
}
