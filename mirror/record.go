package mirror

import (
	"cmp"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A State says whether an entry is part of its feed.
type State string

// The states of an entry.
const (
	Live    State = "live"    // it is part of the feed
	Deleted State = "deleted" // a tombstone deleted it (RFC 6721)
	Absent  State = "absent"  // a complete feed no longer has it (5005#1)
	Unseen  State = "unseen"  // a tombstone is all that is known of it
	Erased  State = "erased"  // Mirror.Erase has taken it out: nothing is kept of it, nor will be
)

// A Record is what is known of one entry.
type Record struct {
	Feed  string // the feed's URL
	ID    string // the entry's
	State State

	Copy    Copy    // the one that counts; zero if Unseen
	Content Content // of that copy

	// Archived says that an archive document has this copy, or one as new.
	Archived bool

	// Tombstone is the latest of those that name the entry; zero if none does.
	Tombstone Tombstone

	// Absence is the Place of the complete document that lacks the entry; zero
	// if the last complete document had it, or there was none.
	Absence int64

	// First and Change are the versions of the feed at which the entry was first
	// stored with contents, and last changed, in content or State. Zero: not yet.
	First, Change int64

	// Added and Changed are when that was, by the mirror's clock.
	Added, Changed time.Time
}

// Time returns what a record is sorted by: when the entry was updated, else
// when it was published, else when it was added.
func (r *Record) Time() time.Time {
	switch {
	case !r.Content.Updated.IsZero():
		return r.Content.Updated
	case !r.Content.Published.IsZero():
		return r.Content.Published
	}
	return r.Added
}

// Place returns the record's place in a query's order.
func (r *Record) Place() *Place {
	return &Place{Time: r.Time(), Feed: r.Feed, Change: r.Change, ID: r.ID}
}

// Entry returns the entry as it was published. The error is a
// *feedhistory.ParseError if what is stored is damaged.
func (r *Record) Entry() (*feedhistory.Entry, error) { return r.Content.entry(r.ID) }

// A Version is an earlier version of an entry.
type Version struct {
	ID      string // the entry's
	Copy    Copy
	Content Content
}

// Entry returns the version as it was published. See Record.Entry.
func (v *Version) Entry() (*feedhistory.Entry, error) { return v.Content.entry(v.ID) }

// A Content is an entry's own words, and what is often asked of them.
type Content struct {
	Format feedhistory.Format // zero: there is no content
	Data   string             // the entry as published, standing by itself: XML, or JSON
	Base   string             // what references in JSON resolve against; XML has its own
	WeakID bool               // the entry has no id of its own; see feedhistory.Entry

	Title              string    // as plain characters
	Link               string    // its alternate; "" if there is none
	Updated, Published time.Time // zero if it says none

	Size int64 // in bytes, as it counts for the Quota; zero if it was stored before there was one
}

// ContentOf returns what is stored of an entry.
func ContentOf(e *feedhistory.Entry) Content {
	e = e.Signed() // its document will not be there to ask
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
		return nil, fmt.Errorf("mirror: nothing but its deletion is known of %s", id)
	}
	e, err := feedhistory.ReadEntry(c.Format, c.Data, c.Base)
	if err != nil {
		return nil, err
	}
	e.ID, e.WeakID = id, c.WeakID
	return e, nil
}

// A Rank says how recently a document was updated (5005#21).
type Rank struct {
	Time  time.Time // its own; else that of its newer neighbour
	Place int64     // in the chain, over all polls: the larger is the newer
}

// Compare orders ranks, the older first.
func (r Rank) Compare(other Rank) int {
	return cmp.Or(r.Time.Compare(other.Time), cmp.Compare(r.Place, other.Place))
}

// A Copy is one appearance of an entry in a document.
type Copy struct {
	At     time.Time // the entry's update time; that of the document's Rank, if it has none
	Rank   Rank      // of the document
	Digest string    // of the entry; see feedhistory.Entry.Digest
}

// Compare orders the copies of an entry, the older first (5005#20, 5005#21).
func (c Copy) Compare(other Copy) int {
	return cmp.Or(c.At.Compare(other.At), c.Rank.Compare(other.Rank))
}

// A Tombstone says that an entry was deleted.
type Tombstone struct {
	When time.Time // zero if it does not say
	Rank Rank      // the newest of the documents that have a tombstone for the entry
}

// IsZero reports whether there is no tombstone.
func (t Tombstone) IsZero() bool { return t.When.IsZero() && t.Rank == Rank{} }
