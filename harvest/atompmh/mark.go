package atompmh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Mark says how far a harvest has come. Store it, as JSON, together with what
// the harvest brought; only the next harvest by the same Harvester uses its
// fields. With the zero value, a harvest gets everything.
//
// Time is the latest update time of any entry, not that of the subscription
// document: producers may set the latter to when they wrote the document, and a
// change that is stamped before that may still come. If a producer commits in
// the order of its stamps, later changes are not earlier than the latest entry.
// If they are, they are found in any document that is not older than the mark.
//
// An entry that is stamped in the future, by the clock of the producer's
// server, does not count for Time, because otherwise nothing would be found
// until then.
//
// The next harvest reads such documents again, so that none of several changes
// with equal times is lost. So as not to report them again, Seen has their
// content. For an archived feed this is little, usually one subscription
// document. For a complete feed it is the whole pool, because only the
// difference shows what is absent from the next document.
type Mark struct {
	Time         time.Time         `json:"time,omitzero"`
	Subscription feedhistory.Known `json:"subscription,omitzero"` // the subscription document, to ask whether there is anything new
	Complete     bool              `json:"complete,omitempty"`    // whether the feed was complete, so that Seen is the pool
	Seen         map[string]Seen   `json:"seen,omitempty"`        // by record identifier
}

// A Seen is what a Mark remembers about a record.
type Seen struct {
	Time    time.Time `json:"time"`              // its last modified time
	Deleted bool      `json:"deleted,omitempty"` // whether it was deleted
	Digest  string    `json:"digest,omitempty"`  // a digest of its representations
}

func (s Seen) is(other Seen) bool {
	return s.Time.Equal(other.Time) && s.Deleted == other.Deleted && s.Digest == other.Digest
}

// IsZero reports whether nothing has been harvested yet.
func (m Mark) IsZero() bool { return m.Time.IsZero() && m.Subscription == feedhistory.Known{} }

// seenOf returns what to remember about an entry.
func seenOf(e *feedhistory.Entry, kind Kind) Seen {
	s := Seen{Time: e.Updated.UTC(), Deleted: kind == Deleted}
	if kind == Record {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", representations(e)))
		s.Digest = hex.EncodeToString(sum[:8])
	}
	return s
}
