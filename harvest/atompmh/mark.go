package atompmh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Mark is the progress of a harvest. Store it, as JSON, together with the harvest's
// changes; only the next harvest by the same Harvester uses its fields. With the zero
// value, a harvest gets everything.
//
// Time is the latest update time of any entry, not of the subscription document:
// producers may set the latter to when they wrote the document, and a change stamped
// earlier may still come. If a producer commits in the order of its stamps, later
// changes are not earlier than the latest entry. Those that are, are found in any
// document no older than the mark.
//
// An entry stamped in the future, by the clock of the producer's server, does not count
// for Time: nothing else would be found until then.
//
// The next harvest reads such documents again, so none of several changes with equal
// times is lost. So as not to report them again, Seen has their content. For an
// archived feed this is little, usually one subscription document. For a complete feed
// it is the whole pool, because only the difference shows which records are absent from
// the next document.
type Mark struct {
	Time         time.Time             `json:"time,omitzero"`
	Subscription feedhistory.Known     `json:"subscription,omitzero"` // the subscription document, to ask whether there is anything new
	Complete     bool                  `json:"complete,omitempty"`    // whether the feed was complete; then Seen is the pool
	Seen         map[string]SeenRecord `json:"seen,omitempty"`        // by record identifier
}

// A SeenRecord is a Mark's memory of one record.
type SeenRecord struct {
	Time    time.Time `json:"time"`              // its last modified time
	Deleted bool      `json:"deleted,omitempty"` // whether it was deleted
	Digest  string    `json:"digest,omitempty"`  // a digest of its representations
}

func (s SeenRecord) is(other SeenRecord) bool {
	return s.Time.Equal(other.Time) && s.Deleted == other.Deleted && s.Digest == other.Digest
}

// IsZero reports whether nothing has been harvested yet.
func (m Mark) IsZero() bool { return m.Time.IsZero() && m.Subscription == feedhistory.Known{} }

// seenOf returns an entry's Seen.
func seenOf(e *feedhistory.Entry, kind ChangeKind) SeenRecord {
	s := SeenRecord{Time: e.Updated.UTC(), Deleted: kind == Deleted}
	if kind == Record {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", representations(e)))
		s.Digest = hex.EncodeToString(sum[:8])
	}
	return s
}
