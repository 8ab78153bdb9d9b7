package atompmh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/publish"
)

// A Pool returns records of a producer: those created, modified or deleted at or after
// a time, each once in its present state, in any order; all records for the zero time.
// An error ends the sequence.
//
// Every change of a record must have a later last modified time than the one
// before (atom-pmh#12, atom-pmh#13, atom-pmh#23, atom-pmh#24).
type Pool func(ctx context.Context, since time.Time) iter.Seq2[Item, error]

// An Item is a metadata record of a pool, or a deleted one.
type Item struct {
	ID       string    // the identifier, an IRI; it never changes (atom-pmh#10)
	Modified time.Time // when it was created, last modified, or deleted (atom-pmh#11, atom-pmh#22)
	Title    string    // for people who look at the feed; may be empty
	Deleted  bool      // whether the record was deleted

	// Representations are where the record can be retrieved: at least one, each
	// with an absolute URL and its media type (atom-pmh#15, atom-pmh#16). They
	// are ignored if Deleted is set.
	Representations []Representation
}

// Deletions is the way a producer shows deletions, the same for all records
// (atom-pmh#17).
type Deletions uint8

const (
	// ByEntry adds a deletion entry. The feed may have archives.
	ByEntry Deletions = iota
	// ByAbsence removes all entries of the record from a feed of one complete document.
	// The producer need not remember deletions; this suits small pools.
	ByAbsence
)

// String returns "entry" or "absence".
func (d Deletions) String() string {
	if d == ByAbsence {
		return "absence"
	}
	return "entry"
}

// A Producer publishes a pool as a feed to harvest. Output, Base and Pool must
// be set.
//
// All state is in the published feed: another Producer continues where the last
// one ended. Only one may publish a feed at a time; another gets
// publish.ErrLocked.
type Producer struct {
	Output publish.Output
	Base   string // the URL under which the output is served
	Pool   Pool

	// Head describes the feed; nil means the published head, and at first one
	// with Base as its title. If it has no authors, its title is used as the
	// author, because Atom requires one.
	Head  *feedhistory.Document
	Name  string            // Name is the name of the subscription document; "" means feed.atom.
	Split feedhistory.Split // Split says where to cut the feed into archives; zero means every 100 entries.

	// Deletions cannot be changed if the published feed contradicts it: see
	// Update.
	Deletions Deletions

	// Historical keeps the entries of earlier states of records (atom-pmh#27). Otherwise a
	// record's new entry replaces the old one, unless the old one is archived, because
	// archives do not change.
	Historical bool

	// Settle is how long a change may take to appear in the pool after it was stamped, for
	// example because transactions commit in a different order than they begin. Update
	// leaves younger changes to a later update. Zero means no time: a change appearing
	// after a later one was published is refused (ErrLate), by the next update if it is at
	// most a minute late, and otherwise by the next comparison; see Compare. With ByAbsence
	// the order does not matter.
	Settle time.Duration

	// Compare is the time between comparisons of the whole pool with the whole published
	// feed, which find changes however late they appear. A Producer compares at its first
	// Update, and then at this interval; in between it finds changes at most a minute
	// late, or Settle if longer. Zero means a day, a negative value never. With ByAbsence
	// every update compares everything.
	Compare time.Duration

	Now func() time.Time // Now is the clock for stamping changes; nil means time.Now.

	compared time.Time // when the whole pool was last compared
}

// URL returns the URL of the subscription document, for consumers.
func (p *Producer) URL() string { return p.publisher().URL() }

// Update publishes the changes of the pool since the last update, at first everything.
// If it refuses one, it publishes none. More than 2,000 changes are published in portions,
// oldest first: after a crash the next update goes on. The items are in memory meanwhile.
//
// If a record cannot be published, the error is a *RecordError. It is ErrLate
// if the record appeared after a later one was published: consumers no longer
// look for it (atom-pmh#7), so modify it again. It is ErrSameTime if the record
// has changed again without a later modified time.
//
// A record whose time is ahead of the clock waits for its time, because otherwise
// nothing else could be published before it. Until then the published feed has its
// earlier state. If the time is more than a minute ahead, the error is ErrFuture, but
// the other records have been published.
//
// If the published feed shows deletions in the other way, the error is a
// *DeletionsError: for ByAbsence, if there are deletion entries or archives;
// for ByEntry, if records may have vanished without a trace. Begin a new feed
// then, with a different Name. The error may be the context's.
func (p *Producer) Update(ctx context.Context) error {
	if p.Output == nil || p.Pool == nil {
		return errors.New("atompmh: Producer.Output and Producer.Pool must be set")
	}
	if err := plain.Check("atompmh", plain.Number{Name: "Producer.Settle", Value: int64(p.Settle)},
		plain.Number{Name: "Producer.Split.Size", Value: int64(p.Split.Size)}); err != nil {
		return err
	}
	if base, err := url.Parse(p.Base); err != nil || !base.IsAbs() {
		return fmt.Errorf("atompmh: the base is not an absolute URL: %q", p.Base)
	}
	if p.Deletions == ByAbsence {
		return p.replace(ctx)
	}
	published, err := p.published()
	if err != nil {
		return err
	}
	now := p.now()
	window, since := p.since(published, now)
	items, err := p.items(ctx, since)
	if err != nil {
		return err
	}
	items, future := split(items, now)
	items, err = p.window(items, window, since)
	if err != nil {
		return ahead(err, published, now)
	}
	settled := now.Add(-max(p.Settle, 0))
	items = slices.DeleteFunc(items, func(it Item) bool { return it.Modified.After(settled) })
	if err := p.append(ctx, items, published); err != nil {
		return ahead(err, published, now)
	}
	if since.IsZero() {
		p.compared = now
	}
	return early(future, now)
}

// portion is the number of items to publish at a time.
const portion = 2000

// append publishes items, oldest first. Items with the same time come together, because
// the archives are searched for the second of two. Only the first portions can be refused:
// later ones are later than anything published.
func (p *Producer) append(ctx context.Context, items []Item, published *feedhistory.Document) error {
	publisher := p.publisher()
	publisher.Head = p.head(published)
	for first := true; first || len(items) > 0; first = false {
		n := min(portion, len(items))
		for n > 0 && n < len(items) && items[n].Modified.Equal(items[n-1].Modified) {
			n++
		}
		entries, err := entriesOf(items[:n])
		if err != nil {
			return err
		}
		items = items[n:]
		err = publisher.Append(ctx, entries...)
		if errors.Is(err, publish.ErrForeign) && published != nil && published.Complete {
			return &DeletionsError{Published: ByAbsence, Clause: "atom-pmh#17", Err: errVanished}
		}
		if err != nil {
			return recordErrors(err)
		}
	}
	return nil
}

var errVanished = errors.New("records may have been deleted without a deletion entry")

// publisher returns the Publisher for a feed with deletion entries.
func (p *Producer) publisher() *publish.Publisher {
	return &publish.Publisher{
		Output: p.Output, Base: p.Base, Name: p.Name, Split: p.Split,
		Chronological: true, Versions: p.Historical,
		// As long as one document has all active entries, it should say so
		// (atom-pmh#32), but not if it has deletion entries (atom-pmh#18).
		Complete: func(d *feedhistory.Document) bool { return !slices.ContainsFunc(d.Entries, isDeletion) },
	}
}

func isDeletion(e *feedhistory.Entry) bool { return kindOf(e) == Deleted }

func (p *Producer) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// name returns the name of the subscription document in the output.
func (p *Producer) name() string { return cmp.Or(p.Name, "feed.atom") }

// unlimited are the limits for documents written here, which only memory
// limits.
var unlimited = feedhistory.Limits{
	Bytes: math.MaxInt64 - 1, Elements: math.MaxInt32, Entries: math.MaxInt32, HeadLinks: math.MaxInt32,
	ID: math.MaxInt32, URL: math.MaxInt32,
}

// published returns the subscription document; nil if there is none yet.
func (p *Producer) published() (*feedhistory.Document, error) {
	doc, err := p.document(p.name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return doc, err
}

// document returns the published document with a name.
func (p *Producer) document(name string) (*feedhistory.Document, error) {
	f, err := p.Output.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parser{Limits: unlimited, Strict: true}.Parse(f, "")
}

// head returns the head section, which describes the feed.
func (p *Producer) head(published *feedhistory.Document) *feedhistory.Document {
	given := p.Head
	if given == nil {
		given = published
	} else if given.ID == "" && published != nil {
		named := *given
		named.ID, given = published.ID, &named
	}
	return headOf(given, p.Base, p.URL())
}

// items returns the changes since a time, oldest first. Each can be published.
func (p *Producer) items(ctx context.Context, since time.Time) (items []Item, err error) {
	given := map[string]bool{}
	for it, err := range p.Pool(ctx, since) {
		if err != nil {
			return nil, err
		}
		_, err := it.Entry()
		if err == nil && given[it.ID] {
			err = it.refused("atom-pmh#8", "the pool returned it twice")
		}
		if err != nil {
			return nil, err
		}
		given[it.ID] = true
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.ID, b.ID))
	})
	return items, nil
}

// entriesOf returns the entries of items.
func entriesOf(items []Item) (entries []*feedhistory.Entry, err error) {
	for _, it := range items {
		e, err := it.Entry()
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// recordErrors converts the errors of a Publisher into those of records.
func recordErrors(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return recordError(err)
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, recordErrors(err))
	}
	return errors.Join(all...)
}

func recordError(err error) error {
	refused, ok := errors.AsType[*publish.EntryError](err)
	if !ok {
		return err
	}
	r := &RecordError{ID: refused.ID, Modified: refused.Given, Clause: "atom-pmh#3", Err: ErrRecord}
	switch {
	case errors.Is(err, publish.ErrSameTime):
		r.Clause, r.Err = "atom-pmh#13, atom-pmh#24", ErrSameTime
	case errors.Is(err, publish.ErrStale):
		r.Clause, r.Err = "atom-pmh#12, atom-pmh#23", ErrLate
	case errors.Is(err, publish.ErrLate):
		r.Clause, r.Err = "atom-pmh#7", ErrLate
	}
	return r
}
