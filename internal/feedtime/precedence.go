package feedtime

import (
	"cmp"
	"time"
)

// Two copies of an entry have an order, and a tombstone deletes one of them or not
// (5005#20, 5005#21; RFC 6721 §2). The merging of one walk and of many polls both use it,
// and so agree.

// A Rank says how recent a document is (5005#21).
type Rank struct {
	Time time.Time // when the document was updated; if it does not say, the Time of its newer neighbour
	Seq  int64     // the document's place in the sequence: newer documents have larger numbers
	Kept bool      // the copy is a feed reader's: any copy of the publisher's own is more recent
}

// Compare orders ranks, older first. The place breaks ties.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(r.compareKept(other), r.Time.Compare(other.Time), cmp.Compare(r.Seq, other.Seq))
}

// compareKept orders readers' copies before the publisher's.
func (r Rank) compareKept(other Rank) int {
	switch {
	case r.Kept == other.Kept:
		return 0
	case r.Kept:
		return -1
	}
	return 1
}

// A Copy is one appearance of an entry in a document.
type Copy struct {
	At   time.Time // when the entry was updated; if it does not say, the Time of Rank
	Rank Rank      // of the document
}

// CopyOf returns a document's copy of an entry. Updated is when the entry was updated,
// or zero if it does not say: it then counts as updated with its document, so all
// copies have an order even if only some have a time. A publication time does not
// count, because an RSS item keeps its pubDate when it is updated.
//
// Read literally, 5005#21 compares an undated copy with a dated one by their documents.
// That is no order: of a copy updated on day 9 in the oldest document, an undated one in
// the next, and one updated on day 8 in the newest, each would be more recent than
// another, and the result depend on which two are compared first, or on which documents
// a poll has read. So the document's time stands in for the missing one. Both readings
// agree unless the newer document has the dated copy, with a time before the older
// document's: then the undated copy counts.
func CopyOf(updated time.Time, doc Rank) Copy {
	if updated.IsZero() {
		updated = doc.Time
	}
	return Copy{updated, doc}
}

// Compare orders the copies of an entry, older first: readers' copies before the
// publisher's, then by their update times, then by their documents.
func (c Copy) Compare(other Copy) int {
	return cmp.Or(c.Rank.compareKept(other.Rank), c.At.Compare(other.At), c.Rank.Compare(other.Rank))
}

// A Tombstone is the deletion of an entry.
type Tombstone struct {
	When time.Time // zero if the tombstone does not say
	Rank Rank      // of the newest document with one for the entry
}

// Join returns the later time and the newer document of two tombstones of one entry.
func (t Tombstone) Join(other Tombstone) Tombstone {
	if other.When.After(t.When) {
		t.When = other.When
	}
	if other.Rank.Compare(t.Rank) > 0 {
		t.Rank = other.Rank
	}
	return t
}

// Deletes reports whether the tombstone applies to an entry's copy: it is not older
// than the entry's update or, if one of them has no time, its document is not older
// than the copy's. It always applies to a reader's copy, whose times are not the
// publisher's word.
func (t Tombstone) Deletes(updated time.Time, doc Rank) bool {
	if doc.Kept {
		return true
	}
	if updated.IsZero() || t.When.IsZero() {
		return doc.Compare(t.Rank) <= 0
	}
	return !t.When.Before(updated)
}
