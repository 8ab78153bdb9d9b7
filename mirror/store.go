package mirror

import (
	"context"
	"errors"
	"iter"
	"time"
)

var (
	// ErrNotFound says that a Store does not have the feed, or the document.
	ErrNotFound = errors.New("not in the store")
	// ErrConflict says that another mirror has changed, made or removed the
	// feed since it was read. Nothing was committed.
	ErrConflict = errors.New("the feed has been changed by another mirror")
)

// A Store holds feeds: the state of each, its entries and documents. It decides
// nothing; what is to be stored comes out of a Mirror.
//
// All methods may be called at the same time, also by other processes with a
// store over the same data. None of them ever sees a part of a Change. A
// context that ends, ends the call, with the context's error.
//
// Sequences may be ranged over again, and then start afresh. While one is ranged
// over, other methods may be called by the same goroutine, Commit too. A sequence
// may be read in portions: of changes that are committed meanwhile, the rest of
// it may show some effects and lack others, and what moves in its order may come
// twice or not at all. An error ends a sequence.
//
// Of a feed that a Store does not have, there are no records, documents, entries
// or versions, which is no error.
//
// Text is UTF-8, and may have any character, NUL too. Times are kept as instants,
// to the nanosecond, from year 1 to 9999; JSON as a value. Empty lists may come
// back as nil. What a Store is given, and what it returns, stays the caller's.
//
// Package storetest proves an implementation.
type Store interface {
	// Feed returns the state of a feed. The error matches ErrNotFound if there
	// is none with this URL.
	Feed(ctx context.Context, url string) (*Feed, error)

	// Feeds yields the feeds that a query asks for.
	Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error]

	// Records returns what is known of entries, by their IDs, those included
	// that are not live. IDs that are not known are missing in the result. Of
	// their contents only Format, Updated, Published and Size are there.
	Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error)

	// Document returns the document that has a URL among its Names. The error
	// matches ErrNotFound if there is none.
	Document(ctx context.Context, feed, url string) (*Document, error)

	// Documents yields all documents of a feed, by Rank, the newest first.
	Documents(ctx context.Context, feed string) iter.Seq2[*Document, error]

	// Commit stores a change, all of it or nothing. It is durable: what Commit
	// has returned nil for survives a loss of power. After an error either may
	// be the case, unless it matches ErrConflict: then nothing is stored.
	//
	// The change is made only if the store has the feed at the version which
	// Change.Feed has; at zero, only if it does not have the feed. What is
	// stored has the next version, or Change.Version, and so has Change.Feed
	// afterwards.
	//
	// While a Commit is under way a Mirror goes on reading the feed: what is known
	// of entries and documents that are not in the change. A change may be that of
	// several documents.
	Commit(ctx context.Context, c *Change) error

	// Entries yields the records that a query asks for, with their contents.
	// Text that cannot be searched for is an error which matches
	// errors.ErrUnsupported.
	Entries(ctx context.Context, q Query) iter.Seq2[*Record, error]

	// Versions yields the earlier versions of an entry that are kept, the newest
	// first. The current one is not among them.
	Versions(ctx context.Context, feed, id string) iter.Seq2[*Version, error]

	// Remove removes a feed with all that belongs to it. The error matches
	// ErrNotFound if there is none.
	Remove(ctx context.Context, url string) error
}

// An Indexer is a Store that makes what was committed ready to be searched
// afterwards, so that commits need not wait for it. A search does so, too: Index
// saves it the time.
type Indexer interface {
	Store

	// Index indexes what is not indexed yet.
	Index(ctx context.Context) error
}

// A Calendar is a Store that counts entries by month.
type Calendar interface {
	Store

	// Months returns the months that have entries which a query asks for, the
	// oldest first. Of the query, Feed, which must be set, Search, Prefix, Deleted
	// and Gone count. Entries without any time are left out.
	Months(ctx context.Context, q Query) ([]Month, error)
}

// A Month says how many entries fall into a calendar month.
type Month struct {
	Start   time.Time // its first instant, in UTC
	Entries int64     // by Record.Time
}

// A Change is what one commit changes of one feed.
type Change struct {
	// Feed is its new state, but for Version, which is that of the state it
	// was made from.
	Feed *Feed

	// Version is that of what is stored, for a feed that comes from another store.
	// Zero: the next one.
	Version int64

	// Put are records with contents, new or changed. What they replace becomes
	// a version, if it has contents, its Digest is another, and Keep allows. An
	// ID stands at most once in Put and Touch together.
	Put []*Record

	// Touch are records whose content stays as it is stored, or that have none.
	// Their Content is disregarded.
	Touch []*Record

	// Versions are earlier versions of entries. One with an entry's ID and a
	// Digest that is among the versions already, or the current one's, is left
	// out.
	Versions []*Version

	// Keep is how many versions of an entry are kept: of the entries that the
	// change touches, the oldest by Copy.Compare beyond that are dropped. Zero:
	// none are kept.
	Keep int

	// Documents are documents that have been processed. A document replaces the
	// one with the same URL. If several have a name, it is that of the last one
	// that was committed with it.
	Documents []*Document

	// Forget drops all documents that were stored before this change.
	Forget bool
}

// A FeedQuery says which feeds are asked for. The zero value asks for all, in
// the order of their URLs, by bytes.
type FeedQuery struct {
	// Due, if not zero, leaves out feeds that are Gone or an Alias and those whose
	// Next is later, and orders by Next, then URL.
	Due time.Time

	// After, if not "", begins after this URL. It goes with the order by URL
	// only: a query with both Due and After is an error.
	After string

	Limit int // how many at most; zero: all
}

// A Query says which entries are asked for. The zero value asks for all that
// are live, of all feeds, the newest first: by Record.Time, then Feed, then ID,
// all descending.
type Query struct {
	Feed string // Feed is the URL of one feed; "" means all feeds.

	Since time.Time // Since is the earliest Record.Time; zero means any.
	Until time.Time // Until is the Record.Time at which the query ends, exclusive; zero means any.

	// Search, if not "", selects entries whose title or content has all of its
	// words, in any case of letters. The database decides what a word is. No
	// character of Search is an operator.
	Search string

	// Prefix makes the last word of Search match all words that begin with it, as
	// for somebody who is still typing.
	Prefix bool

	// Changes, if not nil, selects what changed after the given Version of the
	// feed, in the order of Record.Change and then ID, both ascending. Feed must
	// be set.
	Changes *int64

	// Beyond, if not nil, selects what lies beyond a place: older entries, with
	// Oldest newer ones, and with Changes those that changed after it.
	Beyond *Place

	// Oldest puts the oldest entries first. Changes have their own order.
	Oldest bool

	Deleted bool // Deleted adds entries that are not live, but have a Content.
	Gone    bool // Gone selects only entries that are not live, but have a Content.
	Limit   int  // Limit is the maximum number of entries; zero means all.

	// Bare selects instead the entries that are not live and have no Content: those
	// of which only a tombstone is known, and those that were erased. Search finds
	// none of them.
	Bare bool
}

// A Place is where a Record is in a Query's order.
type Place struct {
	Time   time.Time // Record.Time; not used with Query.Changes
	Feed   string    // likewise
	Change int64     // Record.Change; used with Query.Changes only
	ID     string
}
