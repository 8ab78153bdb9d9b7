package modifiedrange

import (
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// An Item is an entry of a collection, or the deletion of one
// (modified-range#10).
type Item struct {
	// Modified is the item's stamp: the app:edited of its entry, else modified
	// of Atom 0.3, else atom:updated, to its last digit (modified-range#6). For a
	// deletion it is when that happened.
	Modified time.Time

	Entry   *feedhistory.Entry // nil for a deletion
	Deleted string             // the ID of the entry that was deleted; "" otherwise
}

var errItem = errors.New("either an entry or a deletion is needed")

// check refuses what a client would be misled by.
func (i Item) check(within Range) error {
	switch {
	case (i.Entry == nil) == (i.Deleted == ""):
		return errItem
	case !within.Contains(i.Modified):
		return fmt.Errorf("%s: modified at %s, which is outside of %s", i.id(), formatTime(i.Modified), within)
	case i.Entry != nil && !stampOf(i.Entry).Equal(i.Modified):
		return fmt.Errorf("%s: its XML says that it was modified at %s, the query says at %s (modified-range#6)",
			i.id(), formatTime(stampOf(i.Entry)), formatTime(i.Modified))
	}
	return nil
}

func (i Item) id() string {
	if i.Entry == nil {
		return i.Deleted
	}
	return i.Entry.ID
}
