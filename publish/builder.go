package publish

import (
	"cmp"
	"path"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A builder writes the documents of a call.
type builder struct {
	p       *session
	s       *state // the published state
	head    *feedhistory.Document
	ledger  ledger    // of the next subscription document
	updated time.Time // when the feed last changed
	written []string  // new archives, which nothing refers to yet

	name, text string // the archive waiting for the name of its successor
	waiting    []file // archives still to be written
	held       int    // their size in bytes
}

// advance takes the times of new items into account. The feed's time is never
// earlier than the time of anything in it. If an item has no time, the feed's
// time becomes later than it was, because readers use it for entries without a
// time (5005#21).
func (b *builder) advance(items []item) {
	timeless := false
	for _, it := range items {
		timeless = timeless || it.time.IsZero()
		b.updated = feedtime.Later(b.updated, it.change())
	}
	if was := b.s.updated(); timeless && !b.updated.After(was) {
		b.updated = feedtime.Later(was.Add(time.Second), epoch)
	}
	if b.updated.IsZero() { // the feed is empty
		b.updated = epoch
	}
	b.updated = b.p.resolution(b.updated)
}

// change returns when an item was changed, as far as is known.
func (it item) change() time.Time {
	if it.time.IsZero() && it.entry != nil {
		return it.entry.Published
	}
	return it.time
}

// resolution rounds a time up to one documents can express; RSS has whole seconds.
func (p *Publisher) resolution(t time.Time) time.Time {
	t = t.UTC()
	if p.format() == feedhistory.RSS && !t.Equal(t.Truncate(time.Second)) {
		return t.Truncate(time.Second).Add(time.Second)
	}
	return t
}

// close closes an archive.
func (b *builder) close(part part) error {
	updated := b.ledger.latest
	for _, it := range part.items {
		updated = feedtime.Later(updated, it.change())
	}
	stem := path.Join(b.p.dir(), part.name)
	if err := b.add(stem, b.head, part.items, b.p.resolution(updated)); err != nil {
		return err
	}
	b.ledger.archives++
	b.ledger.latest = b.p.resolution(updated)
	return nil
}

// add renders an archive, which is written when the name of its successor is
// known.
func (b *builder) add(stem string, head *feedhistory.Document, items []item, updated time.Time) error {
	name, text, err := b.p.renderArchive(stem, b.ledger.prev, head, items, updated)
	if err != nil {
		return err
	}
	if b.name != "" {
		if b.text, err = setNext(b.text, b.p.url(name), b.p.format()); err != nil {
			return err
		}
	} else {
		b.ledger.before, b.ledger.next = b.ledger.prev, name
	}
	if err := b.flush(); err != nil {
		return err
	}
	b.name, b.text, b.ledger.prev = name, text, name
	return nil
}

// count counts the entries among new items, and keeps how many the source shows.
// Nobody can have missed those of a feed's first call.
func (b *builder) count(items []item, now time.Time) {
	n := len(entriesOf(items))
	if n == 0 || b.p.recent() == 0 {
		return
	}
	b.ledger.source = cmp.Or(b.p.source, b.ledger.source)
	if b.s.doc == nil || b.p.Backlog {
		return
	}
	b.ledger.added = b.ledger.added.Begin(b.ledger.added.Next(), now)
	b.ledger.added.Add(n)
}

// shown returns the number of entries to show in the subscription document, if
// they are not too large.
func (b *builder) shown() int {
	if b.p.recent() == 0 {
		return 0
	}
	return max(b.p.recent(), b.ledger.source) + b.ledger.added.Entries()
}

// repeated returns the archived entries to show after open ones, newest first.
func (b *builder) repeated(open, recent []*feedhistory.Entry) []*feedhistory.Entry {
	size := 0
	for _, e := range open {
		size += len(e.XML())
	}
	for i, e := range recent {
		size += len(e.XML())
		if n := len(open) + i; n >= b.shown() || n >= b.p.recent() && size > feedtime.MostShown {
			return recent[:i]
		}
	}
	return recent
}

// subscription renders the subscription document.
func (b *builder) subscription(open []item, recent []*feedhistory.Entry) (string, error) {
	entries := entriesOf(open)
	b.ledger.open = len(entries)
	entries = slices.Concat(entries, b.repeated(entries, recent))
	d := feedhistory.NewSubscription(b.head, entries, b.p.URL(), b.p.url(b.ledger.prev))
	d.Deleted, d.Updated = deletionsOf(open), b.updated
	// The document is complete for now (5005#2), so readers can tell nothing is missing.
	hasAll := d.Coverage == nil || d.Coverage.Verdict == feedhistory.Whole
	d.Complete = b.ledger.prev == "" && hasAll && (b.p.Complete == nil || b.p.Complete(d))
	return b.p.render(d)
}
