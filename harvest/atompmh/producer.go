package atompmh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/publish"
)

// An Item is a metadata record of a pool, or a deleted one.
type Item struct {
	ID       string    // the identifier, an IRI; it never changes (atom-pmh#10)
	Modified time.Time // when it was created, last modified, or deleted (atom-pmh#11, atom-pmh#22)
	Title    string    // for people who look at the feed; may be empty
	Deleted  bool      // whether the record was deleted

	// Representations are where the record can be retrieved: at least one, each
	// with an absolute URL and its media type (atom-pmh#15, atom-pmh#16). They
	// are ignored if Deleted is set. Atom allows one alternate of a type (RFC 4287
	// §4.1.2): of several with the same type, only the first is published as one, and the
	// others as related, where consumers do not find them.
	Representations []Representation
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

	// Pool returns records: those created, modified or deleted at or after a time, each once in
	// its present state, in any order; all records for the zero time. An error ends the
	// sequence.
	//
	// Every change of a record must have a later last modified time than the one before
	// (atom-pmh#12, atom-pmh#13, atom-pmh#23, atom-pmh#24).
	Pool func(ctx context.Context, since time.Time) iter.Seq2[Item, error]

	// Head describes the feed; nil means the published head, and at first one
	// with Base as its title. If it has no authors, its title is used as the
	// author, because Atom requires one.
	Head  *feedhistory.Document
	Name  string        // Name is the name of the subscription document; "" means feed.atom.
	Split compose.Split // Split says where to cut the feed into archives; zero means every 100 entries.

	// ByAbsence shows deletions by removing all entries of the record from a feed of one
	// complete document. The producer need not remember deletions; this suits small pools.
	// Otherwise a deletion entry is added, and the feed may have archives. The way is the same
	// for all records (atom-pmh#17), and cannot be changed if the published feed contradicts
	// it: see Update.
	ByAbsence bool

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
// If a record cannot be published, the error is a *harvest.Error: ErrRecord if the record lacks
// something; ErrLate if it appeared after a later one was published: consumers no longer
// look for it (atom-pmh#7), so modify it again; or ErrSameTime if it
// has changed again without a later modified time.
//
// A record whose time is ahead of the clock waits for its time, because otherwise
// nothing else could be published before it. Until then the published feed has its
// earlier state. If the time is more than a minute ahead, the error is ErrFuture, but
// the other records have been published.
//
// If the published feed shows deletions in the other way, the error is ErrDeletions: with
// ByAbsence, if there are deletion entries or archives; without, if records may have
// vanished without a trace. Begin a new feed then, with a different Name.
func (p *Producer) Update(ctx context.Context) error {
	if p.Output == nil || p.Pool == nil {
		return errors.New("atompmh: Producer.Output and Producer.Pool must be set")
	}
	numbers := settings.Check("atompmh", settings.Number{Name: "Producer.Settle", Value: int64(p.Settle)},
		settings.Number{Name: "Producer.Split.Size", Value: int64(p.Split.Size)})
	if err := cmp.Or(numbers, settings.CheckBase("atompmh: Producer.Base", p.Base)); err != nil {
		return err
	}
	if p.ByAbsence {
		return p.replace(ctx)
	}
	published, err := p.published()
	if err != nil {
		return err
	}
	now := settings.Now(p.Now)
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
			return otherwise("absence", "atom-pmh#17", "records may have been deleted without a deletion entry")
		}
		if err != nil {
			return recordErrors(err)
		}
	}
	return nil
}

// otherwise reports a feed that shows deletions in another way, because of something it has
// published.
func otherwise(published, clause, why string) error {
	return &harvest.Error{
		Code: harvest.ErrDeletions, Item: published, Clause: clause,
		Text: fmt.Sprintf("the published feed shows deletions by %s: %s", published, why),
	}
}

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

// name returns the name of the subscription document in the output.
func (p *Producer) name() string { return cmp.Or(p.Name, "feed.atom") }

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
	return feedhistory.Parser{Trusted: true, Strict: true}.Parse(f, "")
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

// A refusal is a Publisher's error about a record out of order.
type refusal struct {
	err    error
	code   harvest.Code
	clause string
}

var (
	sameTime = refusal{publish.ErrSameTime, harvest.ErrSameTime, "atom-pmh#13, atom-pmh#24"}
	stale    = refusal{publish.ErrStale, harvest.ErrLate, "atom-pmh#12, atom-pmh#23"}
	late     = refusal{publish.ErrLate, harvest.ErrLate, "atom-pmh#7"}
)

func recordError(err error) error {
	refused, ok := errors.AsType[*publish.EntryError](err)
	if !ok {
		return err
	}
	r := &harvest.Error{Code: harvest.ErrRecord, Item: refused.ID, At: refused.Given, Clause: "atom-pmh#3"}
	for _, of := range []refusal{sameTime, stale, late} {
		if errors.Is(err, of.err) {
			r.Code, r.Clause = of.code, of.clause
			break
		}
	}
	return r
}

// replace publishes the pool as one complete document (atom-pmh#19,
// atom-pmh#20).
func (p *Producer) replace(ctx context.Context) (err error) {
	unlock, err := p.Output.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	published, err := p.published()
	if err != nil {
		return err
	}
	if published != nil {
		if err := p.canReplace(published); err != nil {
			return err
		}
	}
	items, err := p.items(ctx, time.Time{})
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(it Item) bool { return it.Deleted })
	now := settings.Now(p.Now)
	items, future := split(items, now)
	entries, err := entriesOf(items)
	if err != nil {
		return err
	}
	entries = append(entries, former(future, published)...)
	if p.Historical && published != nil {
		entries = withHistory(entries, published)
	}
	slices.SortFunc(entries, func(a, b *feedhistory.Entry) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	if err := p.write(ctx, entries, published, now); err != nil {
		return err
	}
	return early(future, now)
}

// former returns the published entries of records whose present entries wait
// for their time; otherwise the records would count as deleted.
func former(future []Item, published *feedhistory.Document) (entries []*feedhistory.Entry) {
	latest := map[string]*feedhistory.Entry{}
	if published != nil {
		for _, e := range published.Entries {
			if old := latest[e.ID]; old == nil || e.Updated.After(old.Updated) {
				latest[e.ID] = e
			}
		}
	}
	for _, it := range future {
		if old := latest[it.ID]; old != nil {
			entries = append(entries, old)
		}
	}
	return entries
}

// canReplace refuses to replace a feed with deletion entries, which readers may not
// have seen yet; a feed with archives, which would have to be read for the history of
// deleted records; and a file no Producer has written.
func (p *Producer) canReplace(published *feedhistory.Document) error {
	var why string
	switch {
	case published.Kind() == feedhistory.KindArchived:
		why = "it has archives"
	case slices.ContainsFunc(published.Entries, isDeletion):
		why = "it has deletion entries"
	case !published.Complete || p.head(published).ID != published.ID:
		return publish.ErrForeign
	default:
		return nil
	}
	return otherwise("entry", "atom-pmh#17, atom-pmh#18", why)
}

// withHistory adds the published entries of the records' earlier states.
func withHistory(entries []*feedhistory.Entry, published *feedhistory.Document) []*feedhistory.Entry {
	active := make(map[string]time.Time, len(entries))
	for _, e := range entries {
		active[e.ID] = e.Updated
	}
	for _, e := range published.Entries {
		if e.Updated.Before(active[e.ID]) {
			entries = append(entries, e)
		}
	}
	return entries
}

// write writes the complete document if it has anything new. Its update time is now, or
// its latest entry's (atom-pmh#5).
func (p *Producer) write(ctx context.Context, entries []*feedhistory.Entry, published *feedhistory.Document, now time.Time) error {
	doc := compose.Complete(p.head(published), entries, p.URL())
	var old bytes.Buffer
	doc.Updated = time.Time{}
	if published != nil {
		doc.Updated = published.Updated
		if err := compose.WriteAtom(&old, doc); err != nil {
			return err
		}
		if published.Text() == old.String() {
			return nil
		}
	}
	if now := now.UTC().Truncate(time.Second); now.After(doc.Updated) {
		doc.Updated = now
	}
	doc.Updated = updatedOf(doc)
	var text bytes.Buffer
	if err := compose.WriteAtom(&text, doc); err != nil {
		return err
	}
	return p.Output.Put(ctx, p.name(), text.Bytes())
}

// A feed with deletion entries relies on the order of time. These functions find records
// out of order: those from the future, which would make everything after them late, and
// late ones.

// slack is how much clocks may differ, and how late a change may be for each
// update to find it.
const slack = time.Minute

// since returns the time from which to ask the pool for changes. Usually it lies some
// time before the latest published change, so each update finds changes late by less.
// To compare the whole pool, it is the beginning.
func (p *Producer) since(published *feedhistory.Document, now time.Time) (window, since time.Time) {
	if published == nil {
		return time.Time{}, time.Time{}
	}
	latest := published.Updated
	if now.Before(latest) {
		latest = now // a feed dated in the future has no later changes
	}
	window = latest.Add(-max(p.Settle, slack))
	due := now.Before(p.compared) || now.Sub(p.compared) >= cmp.Or(p.Compare, 24*time.Hour)
	if p.Compare >= 0 && due {
		return window, time.Time{}
	}
	return window, window
}

// split separates the items ahead of the clock.
func split(items []Item, now time.Time) (come, future []Item) {
	for i, it := range items { // oldest first
		if it.Modified.After(now) {
			return items[:i:i], items[i:]
		}
	}
	return items, nil
}

// early returns the errors for records waiting for a time further ahead than clocks may
// differ.
func early(future []Item, now time.Time) error {
	var all []error
	for _, it := range future {
		if it.Modified.After(now.Add(slack)) {
			all = append(all, &harvest.Error{Code: harvest.ErrFuture, Item: it.ID, At: it.Modified, Clause: "atom-pmh#7"})
		}
	}
	return errors.Join(all...)
}

// ahead adds to an error why nothing can be published, if the published feed is
// itself ahead of the clock.
func ahead(err error, published *feedhistory.Document, now time.Time) error {
	if published == nil || !errors.Is(err, harvest.ErrLate) || !published.Updated.After(now.Add(slack)) {
		return err
	}
	return fmt.Errorf("%w\nthe published feed is dated %s, and nothing can be published before that: begin a new feed with a different Name",
		err, published.Updated.Format(time.RFC3339))
}

// window returns the items to publish, among those of the pool since some time. Items
// before the window should be published already; if they are not, they are late.
func (p *Producer) window(items []Item, window, since time.Time) ([]Item, error) {
	n := 0
	for n < len(items) && items[n].Modified.Before(window) {
		n++
	}
	if n == 0 || !since.IsZero() {
		return items[n:], nil
	}
	known, whole, err := p.all()
	if err != nil {
		return nil, err
	}
	var late []error
	for _, it := range items[:n] {
		seen, ok := known[it.ID]
		if err := compare(it, seen); err != nil && (ok || whole) {
			late = append(late, err)
		}
	}
	return items[n:], errors.Join(late...)
}

// compare returns why an old item cannot be published; nil if it is published already.
func compare(it Item, published seenRecord) error {
	of := late
	switch c := it.Modified.Compare(published.Time); {
	case c == 0 && it.Deleted == published.Deleted:
		return nil
	case c == 0:
		of = sameTime
	case c < 0:
		of = stale
	}
	return &harvest.Error{Code: of.code, Item: it.ID, At: it.Modified, Clause: of.clause}
}

// all returns the latest published entry of each record, and whether the feed is whole:
// an archive may have been removed (5005#18).
func (p *Producer) all() (known map[string]seenRecord, whole bool, err error) {
	known = map[string]seenRecord{}
	for name := p.name(); ; {
		doc, err := p.document(name)
		if errors.Is(err, fs.ErrNotExist) {
			return known, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, e := range doc.Entries {
			kind := kindOf(e)
			if seen, ok := known[e.ID]; kind != Other && (!ok || e.Updated.After(seen.Time)) {
				known[strings.Clone(e.ID)] = seenRecord{Time: e.Updated, Deleted: kind == Deleted}
			}
		}
		older, linked := doc.Links.Rel("prev-archive")
		if !linked {
			return known, true, nil
		}
		// The base may have changed since the archive was written.
		self, _ := doc.Links.Rel("self")
		base, _ := strings.CutSuffix(self.Href, "/"+name)
		if name, linked = strings.CutPrefix(older.Href, base+"/"); !linked || !fs.ValidPath(name) {
			return nil, false, fmt.Errorf("atompmh: %s: not an archive of the feed: %q", path.Base(doc.URL), older.Href)
		}
	}
}
