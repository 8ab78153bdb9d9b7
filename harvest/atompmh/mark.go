package atompmh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Mark is how far a harvest has come. It is to be stored, as JSON, together
// with what the harvest brought; its fields are for nobody but the next harvest
// by the same Harvester. The zero value stands for nothing: the first harvest
// gets everything.
//
// Time is the latest update time of any entry, rather than that of the
// subscription document: producers may set the latter to when they wrote the
// document, and a change that is stamped before that may still come. What comes
// is not earlier than the latest entry, as far as a producer commits in the order
// of its stamps; and if it is, it is found in whatever document is not older than
// the mark.
//
// An entry that is stamped in the future, by the clock of the producer's server,
// does not count for Time: else nothing would be found until that has come.
//
// Such documents are read once more the next time, so that of several changes
// with equal times none is lost. Not to report them again, Seen has what stood
// there. This is little, a subscription document as a rule, for an archived feed;
// for a complete one it is the whole pool, for what is absent from the next
// document can only be told by it.
type Mark struct {
	Time         time.Time         `json:"time,omitzero"`
	Subscription feedhistory.Known `json:"subscription,omitzero"` // to ask whether anything is new
	Complete     bool              `json:"complete,omitempty"`    // the feed was: Seen is the pool
	Seen         map[string]Seen   `json:"seen,omitempty"`        // by the record's identifier
}

// Seen is what a Mark remembers of a record.
type Seen struct {
	Time    time.Time `json:"time"`
	Deleted bool      `json:"deleted,omitempty"`
	Digest  string    `json:"digest,omitempty"` // of its representations
}

func (s Seen) is(other Seen) bool {
	return s.Time.Equal(other.Time) && s.Deleted == other.Deleted && s.Digest == other.Digest
}

// IsZero reports whether nothing has been harvested yet.
func (m Mark) IsZero() bool { return m.Time.IsZero() && m.Subscription == feedhistory.Known{} }

// seenOf returns what to remember of an entry.
func seenOf(e *feedhistory.Entry, kind Kind) Seen {
	s := Seen{Time: e.Updated.UTC(), Deleted: kind == Deleted}
	if kind == Record {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", representations(e)))
		s.Digest = hex.EncodeToString(sum[:8])
	}
	return s
}
