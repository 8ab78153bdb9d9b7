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
	"github.com/feedhistory/feedhistory/publish"
)

// A Pool is a producer's question to its records: those that were created,
// modified or deleted at or after a time, each once, as it is now, in any order;
// since the zero time, all. An error ends it.
//
// Of each record every change has a later last modified time than the one before
// (atom-pmh#12, atom-pmh#13, atom-pmh#23, atom-pmh#24).
type Pool func(ctx context.Context, since time.Time) iter.Seq2[Item, error]

// An Item is a metadata record of a pool, or one that was deleted from it.
type Item struct {
	ID       string    // the identifier, an IRI, for good (atom-pmh#10)
	Modified time.Time // when it was created, last modified, or deleted (atom-pmh#11, atom-pmh#22)
	Title    string    // for people who look at the feed; may be empty
	Deleted  bool

	// Representations are where it can be retrieved, one at least, each with an absolute
	// URL and its media type (atom-pmh#15, atom-pmh#16). Disregarded if Deleted.
	Representations []Representation
}

// Deletions says how a producer tells of deleted records: all alike
// (atom-pmh#17).
type Deletions uint8

const (
	// ByEntry adds a deletion entry. The feed may have archives.
	ByEntry Deletions = iota
	// ByAbsence removes all entries of the record from a feed that is one complete
	// document. It needs no memory of what was deleted, and suits small pools.
	ByAbsence
)

// String returns "entry" or "absence".
func (d Deletions) String() string {
	if d == ByAbsence {
		return "absence"
	}
	return "entry"
}

// A Producer publishes a pool as a feed to harvest. Output, Base and Pool must be
// set.
//
// All that it remembers is the published feed: a Producer that is set up anew
// goes on where another has ended. A feed is to be published by one at a time;
// another gets publish.ErrLocked.
type Producer struct {
	Output publish.Output
	Base   string // the URL under which the output is served
	Pool   Pool

	// Head describes the feed; nil means as published, and at first with Base as
	// its title. Without authors, its title is the author: Atom requires one.
	Head  *feedhistory.Document
	Name  string            // Name is the subscription document's; "" means feed.atom.
	Split feedhistory.Split // Split says where to cut the feed into archives; zero means every 100 entries.

	// Deletions cannot be changed while the published feed contradicts it: see
	// Update.
	Deletions Deletions

	// Historical keeps the entries of earlier states of records (atom-pmh#27).
	// Otherwise a record's new entry replaces the old one, unless that is archived:
	// archives do not change.
	Historical bool

	// Settle is how long a change may take to appear in the pool after it was
	// stamped, for example because transactions end in another order than they
	// began. Update leaves younger changes to a later one. Zero means no time: a
	// change that appears after a later one was published is refused (ErrLate).
	// With ByAbsence the order has no meaning.
	Settle time.Duration

	// Compare is how often to compare the whole pool with the whole published feed,
	// to find changes however late they appear. A Producer compares at its first
	// Update, and then at this interval; in between it finds changes that are at
	// most a minute late, or Settle. Zero means a day, negative never. With
	// ByAbsence every update compares everything.
	Compare time.Duration

	Now func() time.Time // Now is the clock that stamps changes; nil means time.Now.

	compared time.Time // when the whole pool was
}

// URL returns that of the subscription document: what consumers are given.
func (p *Producer) URL() string { return p.publisher().URL() }

// Update publishes what changed in the pool since the last one, all or nothing:
// at first all of it. The items are in memory meanwhile.
//
// A record that cannot be published gives a *RecordError. It is ErrLate for one
// that is seen after a later one was published: consumers need not look for it
// any more (atom-pmh#7), so let it be modified once more. It is ErrSameTime for
// one that changed again within one and the same last modified time.
//
// A record whose time is ahead of the clock waits until that has come: else
// nothing could be published before. The published feed has its earlier state
// until then. If it is more than a minute ahead the error is ErrFuture, but the
// other records have been published all the same.
//
// Where the published feed tells of deletions in the other way, the error is a
// *DeletionsError: if it is to be ByAbsence, and there are deletion entries or
// archives; if it is to be ByEntry, and records may have vanished without a
// trace. Then a new feed is to be begun, under another Name.
func (p *Producer) Update(ctx context.Context) error {
	if p.Output == nil || p.Pool == nil {
		return errors.New("atompmh: an Output and a Pool are needed")
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
	entries, err := p.entries(ctx, since)
	if err != nil {
		return err
	}
	entries, future := split(entries, now)
	entries, err = p.window(entries, window, since)
	if err != nil {
		return ahead(err, published, now)
	}
	settled := now.Add(-max(p.Settle, 0))
	entries = slices.DeleteFunc(entries, func(e *feedhistory.Entry) bool { return e.Updated.After(settled) })
	publisher := p.publisher()
	publisher.Head = p.head(published)
	err = publisher.Append(entries...)
	if errors.Is(err, publish.ErrForeign) && published != nil && published.Complete {
		return &DeletionsError{Published: ByAbsence, Clause: "atom-pmh#17", Err: errVanished}
	}
	if err != nil {
		return ahead(recordErrors(err), published, now)
	}
	if since.IsZero() {
		p.compared = now
	}
	return early(future, now)
}

var errVanished = errors.New("records may have been deleted without a deletion entry")

// publisher returns the one for a feed with deletion entries.
func (p *Producer) publisher() *publish.Publisher {
	return &publish.Publisher{
		Output: p.Output, Base: p.Base, Name: p.Name, Split: p.Split,
		Chronological: true, Versions: p.Historical,
		// While there is one document with all active entries it should say so
		// (atom-pmh#32), but not beside deletion entries (atom-pmh#18).
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

// name is that of the subscription document in the output.
func (p *Producer) name() string { return cmp.Or(p.Name, "feed.atom") }

// unlimited are the limits for what was written here: memory is the bound.
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

// document returns what is published by a name.
func (p *Producer) document(name string) (*feedhistory.Document, error) {
	f, err := p.Output.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return feedhistory.Parser{Limits: unlimited, Strict: true}.Parse(f, "")
}

// head returns what describes the feed.
func (p *Producer) head(published *feedhistory.Document) *feedhistory.Document {
	head := feedhistory.Document{Title: p.Base}
	switch {
	case p.Head != nil:
		head = *p.Head
	case published != nil:
		head = *published
	}
	if head.ID == "" && published != nil {
		head.ID = published.ID
	}
	head.ID = cmp.Or(head.ID, p.URL())
	if len(head.Authors) == 0 {
		head.Authors = []feedhistory.Person{{Name: cmp.Or(head.Title, head.ID)}}
	}
	return &head
}

// entries returns the entries of what changed since a time, the oldest first.
func (p *Producer) entries(ctx context.Context, since time.Time) (entries []*feedhistory.Entry, err error) {
	given := map[string]bool{}
	for it, err := range p.Pool(ctx, since) {
		if err != nil {
			return nil, err
		}
		e, err := it.entry()
		if err == nil && given[it.ID] {
			err = it.refused("atom-pmh#8", "the pool has it twice")
		}
		if err != nil {
			return nil, err
		}
		given[it.ID] = true
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *feedhistory.Entry) int {
		return cmp.Or(a.Updated.Compare(b.Updated), strings.Compare(a.ID, b.ID))
	})
	return entries, nil
}

// recordErrors returns the errors of a Publisher in the words of records.
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
