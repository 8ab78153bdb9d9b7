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
	Absent  State = "absent"  // the feed, which is complete, no longer has the entry (5005#1)
	Unseen  State = "unseen"  // only a tombstone of the entry is known
	Erased  State = "erased"  // Mirror.Erase has erased the entry: only its ID is kept, and it is never stored again
)

// A Record is what a Store keeps about one entry.
type Record struct {
	Feed  string // the URL of the feed
	ID    string // the ID of the entry
	State State

	Copy    Copy    // the copy of the entry that counts; zero if the State is Unseen
	Content Content // the content of that copy

	// Archived says whether an archive document has this copy, or one just as
	// new.
	Archived bool

	// Tombstone is the latest tombstone that names the entry; zero if there is
	// none.
	Tombstone Tombstone

	// Absence is the Place of the complete document that lacked the entry; zero
	// if the last complete document had it, or there never was one.
	Absence int64

	// First is the version of the feed at which the entry was first stored with
	// content, Change the version at which it last changed, in content or
	// State. Zero means that this has not happened yet.
	First, Change int64

	// Added and Changed are the times of First and Change, by the mirror's
	// clock.
	Added, Changed time.Time
}

// Time returns the time that records are sorted by: when the entry was updated,
// or else published, or else added.
func (r *Record) Time() time.Time {
	return feedtime.First(r.Content.Updated, r.Content.Published, r.Added)
}

// Place returns the record's place in the order of a Query.
func (r *Record) Place() *Place {
	return &Place{Time: r.Time(), Feed: r.Feed, Change: r.Change, ID: r.ID}
}

// Entry returns the entry as it was published. If the stored content is
// damaged, the error is a *feedhistory.ParseError.
func (r *Record) Entry() (*feedhistory.Entry, error) { return r.Content.entry(r.ID) }

// A Version is an earlier version of an entry.
type Version struct {
	ID      string // the ID of the entry
	Copy    Copy
	Content Content
}

// Entry returns the version as it was published; see Record.Entry.
func (v *Version) Entry() (*feedhistory.Entry, error) { return v.Content.entry(v.ID) }

// A Content is the entry as published, together with the fields that are often
// queried.
type Content struct {
	Format feedhistory.Format // the format of Data; zero means that there is no content
	Data   string             // the entry as published, as XML or JSON that can be read on its own
	Base   string             // the URL that relative references in JSON resolve against; XML contains its own
	WeakID bool               // whether the entry has no ID of its own; see feedhistory.Entry

	Title              string    // the title as plain text
	Link               string    // the URL of the alternate link; "" if there is none
	Updated, Published time.Time // when the entry was updated and published; zero if it does not say

	Size int64 // the size in bytes that counts for the Quota; zero if it was stored before quotas existed
}

// ContentOf returns the content to store for an entry.
func ContentOf(e *feedhistory.Entry) Content {
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
	Time  time.Time // when the document was updated; if unknown, the Time of its newer neighbour
	Place int64     // the place in the chain, counted over all polls; newer documents have larger numbers
}

// Compare orders ranks, older first.
func (r Rank) Compare(other Rank) int {
	return precedence.Rank(r).Compare(precedence.Rank(other))
}

// A Copy is one appearance of an entry in a document.
type Copy struct {
	At     time.Time // when the entry was updated; if unknown, the Time of Rank
	Rank   Rank      // the rank of the document
	Digest string    // the digest of the entry; see feedhistory.Entry.Digest
}

// Compare orders the copies of an entry, older first (5005#20, 5005#21).
func (c Copy) Compare(other Copy) int {
	return c.precedence().Compare(other.precedence())
}

func (c Copy) precedence() precedence.Copy {
	return precedence.Copy{At: c.At, Rank: precedence.Rank(c.Rank)}
}

// A Tombstone says that an entry was deleted.
type Tombstone struct {
	When time.Time // when the entry was deleted; zero if the tombstone does not say
	Rank Rank      // the rank of the newest document that has a tombstone for the entry
}

func (t Tombstone) precedence() precedence.Tombstone {
	return precedence.Tombstone{When: t.When, Rank: precedence.Rank(t.Rank)}
}

// IsZero reports whether there is no tombstone.
func (t Tombstone) IsZero() bool { return t.When.IsZero() && t.Rank == Rank{} }
