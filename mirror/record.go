package mirror

import (
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/precedence"
)

// A State says whether an entry is part of its feed.
type State string

// The states of an entry.
const (
	Live    State = "live"    // the entry is part of the feed
	Deleted State = "deleted" // a tombstone deleted the entry (RFC 6721)
	Absent  State = "absent"  // the feed, which is complete, no longer has the entry (5005#1), or it has come under another ID; see Feed.Unnamed
	Unseen  State = "unseen"  // only a tombstone of the entry is known
	Erased  State = "erased"  // Mirror.Erase has erased the entry: only its ID is kept, and it is never stored again
)

// A Record is a Store's record of one entry.
type Record struct {
	Feed  string `json:"-"` // the URL of the feed
	ID    string `json:"-"` // the ID of the entry
	State State  `json:"state"`

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

// Place returns the record's place in the order of a Query.
func (r *Record) Place() *Place {
	return &Place{Time: r.Time(), Feed: r.Feed, Commit: r.LastCommit, ID: r.ID}
}

// Deletion returns the deletion of an entry no longer part of its feed: with the time
// its publisher gives, or else the time the mirror noticed. ok is false for a Live
// entry.
func (r *Record) Deletion() (t feedhistory.Tombstone, ok bool) {
	t = feedhistory.Tombstone{Ref: r.ID, When: r.Changed.UTC()}
	if r.State == Deleted && !r.Tombstone.When.IsZero() {
		t.When = r.Tombstone.When
	}
	return t, r.State != Live
}

// Entry returns the entry as it was published. If the stored content is
// damaged, the error is a *feedhistory.ParseError.
func (r *Record) Entry() (*feedhistory.Entry, error) { return r.Content.entry(r.ID) }

// A Version is an earlier version of an entry.
type Version struct {
	ID      string  `json:"-"` // the ID of the entry
	Copy    Copy    `json:"copy"`
	Content Content `json:"content"`
}

// Entry returns the version as it was published; see Record.Entry.
func (v *Version) Entry() (*feedhistory.Entry, error) { return v.Content.entry(v.ID) }

// A Content is the entry as published, together with the fields often queried.
type Content struct {
	Format feedhistory.Format `json:"format"`            // the format of Data; zero means there is no content
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
	if e.Source != nil {
		c.Format, c.Base = e.Source.Format, e.Source.URL
	}
	if c.Format == feedhistory.JSONFeed {
		c.Data = string(e.JSON())
	}
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok {
		c.Link = link.Href
	}
	c.Size = int64(len(e.ID) + len(c.Data) + len(c.Base) + len(c.Title) + len(c.Link))
	return c
}

func (c *Content) entry(id string) (*feedhistory.Entry, error) {
	if c.Format == 0 {
		return nil, fmt.Errorf("mirror: %s has no content", id)
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

func (r Rank) precedence() precedence.Rank { return precedence.Rank{Time: r.Time, Seq: r.Seq} }

// A Copy is one appearance of an entry in a document. The copy of a feed reader has no
// At and a negative Seq in its Rank, so that any copy of the publisher's is newer.
type Copy struct {
	At     time.Time `json:"at,omitzero"`      // when the entry was updated; if unknown, the Time of Rank
	Rank   Rank      `json:"rank,omitzero"`    // the rank of the document
	Digest string    `json:"digest,omitempty"` // the digest of the entry; see feedhistory.Entry.Digest
	Source string    `json:"source,omitempty"` // the Name of the Recall that brought it, or the reader that kept it; "" if a poll or a Merge did
}

// compare orders the copies of an entry, older first (5005#20, 5005#21).
func (c Copy) compare(other Copy) int {
	return c.precedence().Compare(other.precedence())
}

func (c Copy) precedence() precedence.Copy {
	return precedence.Copy{At: c.At, Rank: c.Rank.precedence()}
}

// A TombstoneRecord is the deletion of an entry.
type TombstoneRecord struct {
	When time.Time `json:"when,omitzero"` // when the entry was deleted; zero if the tombstone does not say
	Rank Rank      `json:"rank,omitzero"` // the rank of the newest document with a tombstone for the entry
}

func (t TombstoneRecord) precedence() precedence.Tombstone {
	return precedence.Tombstone{When: t.When, Rank: t.Rank.precedence()}
}

// IsZero reports whether there is no tombstone.
func (t TombstoneRecord) IsZero() bool { return t.When.IsZero() && t.Rank == Rank{} }
