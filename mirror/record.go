package mirror

import (
	"cmp"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A State says whether an entry is part of its feed.
type State string

// The states of an entry.
const (
	Live    State = "live"    // the entry is part of the feed
	Deleted State = "deleted" // a tombstone deleted the entry (RFC 6721)
	Absent  State = "absent"  // the feed, which is complete, no longer has the entry (5005#1), or it was added without the publisher's ID and has come under it
	Unseen  State = "unseen"  // only a tombstone of the entry is known
	Erased  State = "erased"  // Mirror.Erase has erased the entry: only its ID is kept, and it is never stored again
)

// A Record is a Store's record of one entry, or of an earlier version of it.
type Record struct {
	Feed  string `json:"-"` // the URL of the feed
	ID    string `json:"-"` // the ID of the entry
	State State  `json:"state,omitempty"`

	Copy Copy `json:"copy,omitzero"` // the copy of the entry that counts; zero if the State is Unseen

	// Archived says whether an archive document has this copy, or one just as
	// new.
	Archived bool `json:"archived,omitempty"`

	// Tombstone is the latest tombstone of the entry; zero if there is none.
	Tombstone TombstoneRecord `json:"tombstone,omitzero"`

	// Absence is the Seq of the complete document without the entry; zero if the last
	// complete document had it, or there never was one.
	Absence int64 `json:"absence,omitempty"`

	// FirstCommit is the number of the commit that first stored the entry with content,
	// LastCommit that of the last one to change its content or State. Zero means there
	// was none.
	FirstCommit int64 `json:"first,omitempty"`
	LastCommit  int64 `json:"change,omitempty"`

	// Added and Changed are the times of FirstCommit and LastCommit, by the mirror's
	// clock.
	Added   time.Time `json:"added,omitzero"`
	Changed time.Time `json:"changed,omitzero"`

	Content Content `json:"content,omitzero"` // the content of Copy
}

// Time returns the time for sorting records: when the entry was published, or else
// updated, or else added.
func (r *Record) Time() time.Time {
	return feedtime.First(r.Content.Published, r.Content.Updated, r.Added)
}

// Deletion returns the deletion of an entry no longer part of its feed: with the time
// its publisher gives, or else the time the mirror noticed. ok is false for a Live
// entry.
func (r *Record) Deletion() (t feedhistory.Tombstone, ok bool) {
	t = feedhistory.Tombstone{Ref: r.ID, When: r.Changed.UTC()}
	if (r.State == Deleted || r.State == Unseen) && !r.Tombstone.When.IsZero() {
		t.When = r.Tombstone.When
	}
	return t, r.State != Live
}

// Entry returns the entry as it was published. If the stored content is
// damaged, the error is a *feedhistory.ParseError.
func (r *Record) Entry() (*feedhistory.Entry, error) { return r.Content.entry(r.ID) }

// A Content is the entry as published, together with the fields often queried.
type Content struct {
	Format feedhistory.Format `json:"format"`            // the format of Data; "" means there is no content
	Data   string             `json:"data,omitempty"`    // the entry as published, as XML or JSON, readable on its own
	Base   string             `json:"base,omitempty"`    // the URL against which relative references in JSON resolve; XML contains its own
	WeakID bool               `json:"weak_id,omitempty"` // whether the entry has no ID of its own; see feedhistory.Entry

	Title     string    `json:"title,omitempty"`    // the title as plain text
	Link      string    `json:"link,omitempty"`     // the URL of the alternate link; "" if there is none
	Updated   time.Time `json:"updated,omitzero"`   // when the entry was updated; zero if it does not say
	Published time.Time `json:"published,omitzero"` // when the entry was published; zero if it does not say

	Size int64 `json:"size,omitempty"` // the size in bytes, as counted for the Quota; zero if it was stored before quotas existed
}

// contentOf returns the content to store for an entry; zero for nil.
func contentOf(e *feedhistory.Entry) Content {
	if e == nil {
		return Content{}
	}
	e = e.Signed() // its document, which its signature may need, is not stored
	c := Content{
		Data: string(e.XML()), WeakID: e.WeakID, Title: e.Title().Plain(),
		Updated: e.Updated, Published: e.Published,
	}
	if e.Head != nil {
		c.Format, c.Base = e.Head.Format, e.Head.URL
	}
	if c.Format == feedhistory.FormatJSONFeed {
		c.Data = string(e.JSON())
	}
	if link, ok := e.Links.Rel("alternate"); ok {
		c.Link = link.Href
	}
	c.Size = int64(len(e.ID) + len(c.Data) + len(c.Base) + len(c.Title) + len(c.Link))
	return c
}

func (c *Content) entry(id string) (*feedhistory.Entry, error) {
	if c.Format == "" {
		return nil, fmt.Errorf("mirror: the entry %q has no content", id)
	}
	e, err := feedhistory.ReadEntry(c.Format, c.Data, c.Base)
	if err != nil {
		return nil, err
	}
	e.ID, e.WeakID = id, c.WeakID
	return e, nil
}

// A Rank says how recent a document is (5005#21).
type Rank struct {
	Time time.Time `json:"time,omitzero"`   // when the document was updated; if unknown, the Time of its newer neighbour
	Seq  int64     `json:"place,omitempty"` // the place in the chain, counted over all polls; newer documents have larger numbers
}

// compare orders ranks, older first.
func (r Rank) compare(other Rank) int {
	return r.precedence().Compare(other.precedence())
}

// isKept reports whether the rank is that of a reader's copy: its Seq is negative. A
// Seq of -1 is that of a copy that a Store has found damaged.
func (r Rank) isKept() bool { return r.Seq < -1 }

// isOfSubscription reports whether the rank is that of a subscription document.
func (r Rank) isOfSubscription() bool { return r.Seq&(1<<31-1) == 0 }

func (r Rank) precedence() feedtime.Rank { return feedtime.Rank{Time: r.Time, Seq: r.Seq} }

// A Copy is one appearance of an entry in a document. The copy of a feed reader has no
// At and a negative Seq in its Rank, so that any copy of the publisher's is newer.
type Copy struct {
	At     time.Time `json:"at,omitzero"`      // when the entry was updated; if unknown, the Time of Rank
	Rank   Rank      `json:"rank,omitzero"`    // the rank of the document
	Digest string    `json:"digest,omitempty"` // the digest of the entry; see feedhistory.Entry.Digest
	Source string    `json:"source,omitempty"` // the Name of the Recall that brought it, or the reader that kept it; "" if a poll or a Keep did
}

// Compare orders the copies of an entry, older first (5005#20, 5005#21), and of equally old
// ones the one with the smaller Digest.
func (c Copy) Compare(other Copy) int {
	return cmp.Or(c.compare(other), cmp.Compare(c.Digest, other.Digest))
}

func (c Copy) compare(other Copy) int { return c.precedence().Compare(other.precedence()) }

// newer puts the newer one of two versions first.
func newer(a, b *Record) int { return b.Copy.Compare(a.Copy) }

func (c Copy) precedence() feedtime.Copy {
	return feedtime.Copy{At: c.At, Rank: c.Rank.precedence()}
}

// A TombstoneRecord is the deletion of an entry.
type TombstoneRecord struct {
	When time.Time `json:"when,omitzero"` // when the entry was deleted; zero if the tombstone does not say
	Rank Rank      `json:"rank,omitzero"` // the rank of the newest document with a tombstone for the entry
}

func (t TombstoneRecord) precedence() feedtime.Tombstone {
	return feedtime.Tombstone{When: t.When, Rank: t.Rank.precedence()}
}

// state returns the State following from a record's copy, tombstone and absence.
func (r *Record) state() State {
	switch {
	case r.Copy.Digest == "":
		return Unseen
	case r.Absence != 0:
		return Absent
	case r.isBuried():
		return Deleted
	}
	return Live
}

// isBuried reports whether a tombstone deletes the copy.
func (r *Record) isBuried() bool {
	rank := r.Copy.Rank.precedence()
	rank.Kept = r.Copy.Rank.isKept()
	updated := r.Content.Updated
	if !updated.IsZero() {
		updated = r.Copy.At // the entry's own time, unless its source knew better
	}
	return r.Tombstone != (TombstoneRecord{}) && r.Tombstone.precedence().Deletes(updated, rank)
}

// An effect is the effect of a document on a record.
type effect struct {
	content  bool    // the entry's content has changed
	resigned bool    // only the signatures in its addresses have: no change, but the newest are to be given out
	presumed bool    // nothing but the entry's ID was known before
	raised   bool    // the rank of its copy has
	touched  bool    // something else to store has changed
	version  *Record // an earlier version of the entry to store: the document's copy, or nil
}

// take merges a copy of the entry. If the document replaces everything, its copy counts
// in any case. A record missing from a complete document takes any copy published after
// the document.
func (r *Record) take(c Copy, it *item, from source) (did effect) {
	if r.State != Live && r.Tombstone.Rank.Seq < from.complete {
		r.Tombstone, did.touched = TombstoneRecord{}, true
	}
	back := (r.Absence != 0 && c.Rank.Seq > r.Absence || r.isVoid(from.complete)) && !from.recalled
	known := r.Copy.Digest != ""
	did.presumed = r.Copy.Digest == presumedDigest
	if c.Rank.isKept() && r.Tombstone != (TombstoneRecord{}) {
		return did // a reader does not bring back entries the publisher has deleted
	}
	if c.Digest == r.Copy.Digest && r.Copy.Source == "" {
		c.Source = "" // the publisher has shown this very copy
	}
	switch order := c.compare(r.Copy); {
	case !known || from.replaces || back || order >= 0:
		did.raised, did.touched = order > 0, did.touched || order < 0 || r.Copy.Source != c.Source || back
		if did.content = r.Copy.Digest != c.Digest; did.content {
			r.Content, r.Archived = it.content(from, known), false
		} else if did.resigned = it.resigned; did.resigned {
			r.Content = it.content(from, known)
		}
		switch r.Copy = c; {
		case !from.recalled:
			r.Absence = 0
		case !known:
			r.Absence = from.absence
		}
	case c.Digest != r.Copy.Digest:
		did.version = &Record{ID: r.ID, Copy: c, Content: it.content(from, known)}
	}
	asNew := c.Digest == r.Copy.Digest || it.entry.Updated.IsZero() || !it.entry.Updated.Before(r.Content.Updated)
	if from.archive && asNew && !r.Archived {
		r.Archived, did.touched = true, true
	}
	return did
}

// isVoid reports whether the copy of a deleted entry was read before the complete document with
// a Seq, which did not make the entry absent because it was deleted.
func (r *Record) isVoid(complete int64) bool {
	return r.State == Deleted && r.Copy.Source == "" && !r.Copy.Rank.isKept() && r.Copy.Rank.Seq < complete
}

// bury merges a tombstone. It replaces one from before the complete document with a Seq, and
// does not bring back the copy that was deleted then.
func (r *Record) bury(t TombstoneRecord, complete int64) (touched bool) {
	old := r.Tombstone
	joined := t.precedence()
	if r.State == Live || old.Rank.Seq >= complete {
		joined = joined.Join(old.precedence())
	}
	t = TombstoneRecord{joined.When, Rank{joined.Rank.Time, joined.Rank.Seq}}
	if r.Tombstone = t; r.isVoid(complete) && r.Absence == 0 && !r.isBuried() {
		r.Absence = complete
	}
	return !t.When.Equal(old.When) || t.Rank.compare(old.Rank) != 0
}

// isShown reports whether the stored copy of an entry is a subscription document's.
func (r *Record) isShown() bool { return r.Copy.Digest != "" && r.Copy.Rank.isOfSubscription() }
