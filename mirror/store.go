package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
)

var (
	// ErrNotFound means a Store does not have the feed or the document.
	ErrNotFound = errors.New("not in the store")
	// ErrConflict means another mirror has changed, added or removed the feed since it was
	// read. Nothing was committed.
	ErrConflict = errors.New("another mirror has changed the feed")
)

// A Store holds feeds: for each feed its state, its entries and its documents.
// A Store makes no decisions; a Mirror decides what to store.
//
// All methods may be called at the same time, even by other processes with a
// store over the same data. None of them ever sees part of a Commit. When its
// context ends, a call returns the context's error, and a sequence under way ends with it.
//
// A Store leaves nothing out because it cannot read it: a damaged state, record or
// document is an error, in a sequence too, with the name of the feed, entry or
// document. A Content is not examined: a damaged entry's is returned as it is, and
// Record.Entry reports the damage.
//
// A sequence may be ranged over several times, and begins again each time. During a
// range, the same goroutine may call other methods, Commit included. A store may read a
// sequence in portions: the rest of it may then show some effects of changes committed
// meanwhile and lack others, and a record may come twice or not at all if it moves in
// the order. An error ends a sequence.
//
// If a Store does not have a feed, the feed has no records, documents, entries
// or versions; asking for them is not an error.
//
// Text is UTF-8 and may contain any character, NUL included. A store keeps times as
// instants, to the nanosecond, from year 1 to 9999, and JSON as a value. Empty lists
// may come back as nil. The caller owns the values it passes to a Store, and those a
// Store returns.
//
// Two methods are optional: Months(context.Context, Query) (map[time.Time]int64, error),
// which the function Months calls in place of reading the entries, and Index(context.Context) error, which indexes committed entries for searching
// later, so that commits need not wait: a Poller calls it when no feed is being polled, and
// a search indexes the rest.
//
// Package storetest tests an implementation.
type Store interface {
	// Feed returns the state of a feed. The error matches ErrNotFound if the
	// Store has no feed with this URL.
	Feed(ctx context.Context, url string) (*Feed, error)

	// Feeds yields the feeds selected by a query, in its order.
	Feeds(ctx context.Context, q FeedQuery) iter.Seq2[*Feed, error]

	// Records returns the records of entries, by ID, whatever their State. Unknown IDs are
	// missing from the result. Of each Content only Format, Updated, Published and Size
	// are set.
	Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error)

	// Document returns the document with the URL among its Names. The error matches
	// ErrNotFound if there is none.
	Document(ctx context.Context, feed, url string) (*DocumentRecord, error)

	// Documents yields all documents of a feed, the newest first: by Rank.Time, Rank.Seq and
	// URL, all descending.
	Documents(ctx context.Context, feed string) iter.Seq2[*DocumentRecord, error]

	// Commit stores a change, either all of it or nothing. The change is
	// durable: once Commit has returned nil, it survives a loss of power. After
	// an error the change may or may not be stored, unless the error matches
	// ErrConflict: then nothing is stored.
	//
	// The caller sets everything in a record, FirstCommit, LastCommit and the times too. To
	// erase an entry, it puts a record without Content, and Keep is 0.
	//
	// Commit stores the change only if the feed's stored Commits are those of c.Feed; if
	// they are zero, only if the store does not have the feed. Afterwards Commits, both
	// stored and in c.Feed, is one more, or c.Number if set.
	//
	// While a Commit is under way, a Mirror goes on reading the feed's other entries and
	// documents. A change may combine several documents.
	Commit(ctx context.Context, c *Commit) error

	// Entries yields the records selected by a query, with their contents, in its order. If
	// the query's Search has no searchable words or too many, or the store does not search,
	// the error matches errors.ErrUnsupported. The values the query points to may change
	// afterwards: Entries copies them, see Query.Clone.
	Entries(ctx context.Context, q Query) iter.Seq2[*Record, error]

	// Versions yields the earlier versions kept of an entry, without the current one: the
	// newest first, by Copy.Compare: by Copy.At, Rank.Time, Rank.Seq and Digest, all
	// descending. Only ID, Copy and Content of each are set.
	Versions(ctx context.Context, feed, id string) iter.Seq2[*Record, error]

	// Remove removes a feed and everything belonging to it. The error matches ErrNotFound
	// if there is no such feed. If the feed is added again, its versions begin again.
	Remove(ctx context.Context, url string) error
}

// Months returns the number of entries a query selects in each calendar month with any, by
// the first instant of the month in UTC; an entry's month is that of Record.Time. The query
// needs a Feed; of its other fields only Search, Prefix and States count. Entries without
// any time are left out. Months asks the Store if it has such a method, and reads the
// entries otherwise.
func Months(ctx context.Context, s Store, q Query) (map[time.Time]int64, error) {
	if s == nil {
		return nil, errors.New("mirror: Months: the Store is nil")
	}
	if q.Feed == "" {
		return nil, errors.New("mirror: a Query for Months needs a Feed")
	}
	if counts, ok := s.(interface {
		Months(context.Context, Query) (map[time.Time]int64, error)
	}); ok {
		return counts.Months(ctx, q)
	}
	months := map[time.Time]int64{}
	q = Query{Feed: q.Feed, Search: q.Search, Prefix: q.Prefix, States: q.States}
	for r, err := range s.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		if at := r.Time().UTC(); !at.IsZero() {
			months[time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)]++
		}
	}
	return months, nil
}

// A Commit is one atomic change of one feed. The commits to a feed are numbered.
type Commit struct {
	// Feed is the new state of the feed, but with the Commits it was made from.
	Feed *Feed

	// Number is the number of the commit, for a feed copied from another store. Zero means
	// the next number.
	Number int64

	// Put are records with content, new or changed. The replaced content of a record
	// becomes a version, if its Digest differs and Keep allows; a version with the Digest of
	// the new content goes. Put and Touch together contain each ID at most once.
	Put []*Record

	// Touch are records whose stored content does not change, or records without content.
	// Their Content is ignored.
	Touch []*Record

	// Versions are earlier versions of entries to add, of which ID, Copy and Content count.
	// A version is ignored if the entry has a version with the same Digest, the current one
	// included.
	Versions []*Record

	// Keep is the maximum number of versions to keep of each entry in the commit; the
	// oldest are dropped. Zero means none.
	Keep int

	// Documents are processed documents. A document replaces the stored one with the same
	// URL. If several documents share a name, the name belongs to the one committed last,
	// of those still having it.
	Documents []*DocumentRecord

	// Forget drops all documents stored before this commit.
	Forget bool

	response feedhistory.Response // that of the Report
	changes  []Change             // of a Poll's program
}

// A FeedQuery selects feeds. The zero value selects all, ordered by URL, byte
// by byte.
type FeedQuery struct {
	// Due, if not zero, leaves out feeds that are Gone or an Alias and feeds whose Next is
	// later than Due; the order is by Next, then URL. With a Due far in the future and a
	// Limit of 1, the feed's Next is when a loop of your own has to poll again.
	Due time.Time

	// After, if not "", selects the feeds whose URL follows this one. A query
	// with both Due and After is an error.
	After string

	Limit int // Limit is the maximum number of feeds; zero means all, a negative one is an error.
}

// has reports whether the query selects a feed, Limit aside.
func (q FeedQuery) has(f *Feed) bool {
	return f.URL > q.After && (q.Due.IsZero() || !f.Gone && f.Alias == "" && !f.Next.After(q.Due))
}

// compare compares feeds in the order of the query.
func (q FeedQuery) compare(a, b *Feed) int {
	if q.Due.IsZero() {
		return cmp.Compare(a.URL, b.URL)
	}
	return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.URL, b.URL))
}

// A Query selects entries. The zero value selects all live entries of all
// feeds, newest first: by Record.Time, then Feed, then ID, all descending.
type Query struct {
	Feed string // Feed is the URL of one feed; "" means all feeds.

	Since time.Time // Since is the earliest Record.Time; zero means any.
	Until time.Time // Until is the Record.Time at which the query ends, exclusive; zero means any.

	// Search, if not "", selects entries by the words of their titles and contents, as
	// words.Parse reads it: all of its words in any of their forms, "a phrase", -excluded, and
	// one side or the other of OR. Case and accents do not matter. Whatever it is, it is no
	// statement of the database.
	Search string

	// Prefix makes the last word of Search match all words beginning with it, for
	// searching while somebody types.
	Prefix bool

	// AfterCommit, if not nil, selects the entries changed after the commit with this
	// number, ordered by Record.LastCommit, then ID, both ascending. Feed must be set.
	// Entries may share a commit: to resume part-way through one, set Beyond as well.
	// The numbers of a feed removed and added again begin again: forget yours when you
	// Remove it.
	AfterCommit *int64

	// Beyond, if not nil, selects only entries after this one in the order: older ones, or
	// later changes with AfterCommit; newer ones, or earlier changes, with Reverse. Only
	// its Feed, ID and Time count or, with AfterCommit, LastCommit and ID. The entry need
	// not be there.
	Beyond *Record

	// Reverse turns the order around: the oldest entries come first or, with AfterCommit, the
	// latest changes.
	Reverse bool

	States States // States selects by the State of entries; zero means Current.
	Skip   int    // Skip is the number of entries to leave out at the beginning of the order; a negative one is an error.
	Limit  int    // Limit is the maximum number of entries; zero means all, a negative one is an error.
}

// Clone returns a copy of the query and the values it points to: a Store's Entries begins with it.
func (q Query) Clone() Query {
	if q.AfterCommit != nil {
		after := *q.AfterCommit
		q.AfterCommit = &after
	}
	if q.Beyond != nil {
		beyond := *q.Beyond
		q.Beyond = &beyond
	}
	return q
}

// has reports whether the query selects a record, Search, Skip and Limit aside.
func (q Query) has(r *Record) bool {
	return (q.Feed == "" || q.Feed == r.Feed) && q.States.has(r) &&
		(q.Since.IsZero() || !r.Time().Before(q.Since)) && (q.Until.IsZero() || r.Time().Before(q.Until)) &&
		(q.AfterCommit == nil || r.LastCommit > *q.AfterCommit) &&
		(q.Beyond == nil || q.compare(r, q.Beyond) > 0)
}

// compare compares records in the order of the query. No two are equal.
func (q Query) compare(a, b *Record) int {
	if q.Reverse {
		a, b = b, a
	}
	if q.AfterCommit != nil {
		return cmp.Or(cmp.Compare(a.LastCommit, b.LastCommit), cmp.Compare(a.ID, b.ID))
	}
	return cmp.Or(b.Time().Compare(a.Time()), cmp.Compare(b.Feed, a.Feed), cmp.Compare(b.ID, a.ID))
}

// States is a set of kinds of entries, by their State.
type States uint8

// The kinds of entries. A Search finds no Traces.
const (
	Current States = 1 << iota // entries that are part of their feed: Live
	Former                     // entries no longer part of it, whose Content is kept
	Traces                     // entries without a Content: only a tombstone is known, or they are erased

	AllStates = Current | Former | Traces
)

// has reports whether a record is of one of the kinds.
func (s States) has(r *Record) bool {
	switch {
	case r.State == Live:
		return s == 0 || s&Current != 0
	case r.Content.Format != "":
		return s&Former != 0
	}
	return s&Traces != 0
}

// Subscribe adds a feed to a store, such as a NewFeed, and reports whether it was new: of a
// feed that is there already, it changes nothing. A Mirror that polls the store then polls
// the feed. The error is the store's, or says the feed's URL is not an absolute one.
func Subscribe(ctx context.Context, s Store, f *Feed) (added bool, err error) {
	if s == nil || f == nil {
		return false, errors.New("mirror: Subscribe: the Store or the Feed is nil")
	}
	if err := checkURL(f.URL); err != nil {
		return false, err
	}
	err = s.Commit(ctx, &Commit{Feed: f})
	if errors.Is(err, ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// Lookup returns a record with its content. The error matches ErrNotFound if the
// Store has no such entry, or only a tombstone of it.
func Lookup(ctx context.Context, s Store, feed, id string) (*Record, error) {
	if s == nil {
		return nil, errors.New("mirror: Lookup: the Store is nil")
	}
	records, err := s.Records(ctx, feed, []string{id})
	if err != nil {
		return nil, err
	}
	if known := records[id]; known != nil {
		beyond := *known
		beyond.ID += "\x01"
		query := Query{Feed: feed, Until: known.Time().Add(time.Second), Beyond: &beyond, States: Current | Former, Limit: 1}
		for r, err := range s.Entries(ctx, query) {
			if err != nil {
				return nil, err
			}
			if r.ID == id {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("entry %q of %s: %w", id, feed, ErrNotFound)
}
