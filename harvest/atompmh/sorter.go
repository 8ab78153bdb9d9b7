package atompmh

import (
	"cmp"
	"encoding/hex"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/sorter"
)

// A version is the time and the kind of an entry of a record.
type version struct {
	at   time.Time
	kind ChangeKind
}

// supersedes reports whether a version takes precedence over one read before it, in the
// same or in a newer document: the later one does, and of equally late ones the
// deletion (atom-pmh consumer#4).
func (v version) supersedes(old version) bool {
	if v.at.Equal(old.at) {
		return v.kind == Deleted && old.kind != Deleted
	}
	return v.at.After(old.at)
}

// A heldEntry is an entry a reading has seen, or the deletion of a record absent from a
// complete feed. Its fields are exported for gob.
type heldEntry struct {
	ID       string
	At       time.Time // in UTC
	Kind     ChangeKind
	Number   int64     // its place in the order of reading
	Document time.Time // when its document was updated
	Digest   digest
	Text     string         // its XML; "" for an absent record
	Earlier  []earlierEntry // the earlier entries of its record
}

// An earlierEntry is an entry of an earlier state of a record.
type earlierEntry struct {
	At   time.Time
	Text string
}

func (v *heldEntry) version() version { return version{v.At, v.Kind} }

// seen returns the seenRecord of an entry of a record.
func (v *heldEntry) seen() seenRecord {
	s := seenRecord{Time: v.At, Deleted: v.Kind == Deleted}
	if v.Kind == Record {
		s.Digest = hex.EncodeToString(v.Digest[:])
	}
	return s
}

// size returns the approximate number of bytes the entry takes in memory.
func (v *heldEntry) size() int {
	n := 300 + len(v.ID) + len(v.Text)
	for _, e := range v.Earlier {
		n += 50 + len(e.Text)
	}
	return n
}

// byRecord orders entries by record, each record's as they were read.
func byRecord(a, b *heldEntry) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
}

// byTime orders changes by time, and by record. Of a record, those of kind Other come first.
func byTime(a, b *heldEntry) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Number, b.Number))
}

// An entrySorter sorts the entries of a reading.
type entrySorter = sorter.Sorter[heldEntry]
