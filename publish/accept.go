package publish

import (
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A change has the items of one call.
type change struct {
	entries    []*feedhistory.Entry // oldest first
	deleted    []feedhistory.Tombstone
	lenient    bool // leave out entries older than the published ones, instead of refusing them
	source     int  // number of entries the source's own document shows; zero if unknown
	correction bool // refuse entries not yet published in another version
}

// accept returns the items of a change to publish: those newer than the published ones.
// It leaves out items already published.
func (p *session) accept(s *state, c change) ([]item, error) {
	given, err := p.items(c)
	if err != nil {
		return nil, err
	}
	known, err := p.known(s, given, c)
	if err != nil {
		return nil, err
	}
	accepted := given[:0]
	var refused []error
	for _, it := range given {
		old, ok := known[it.id]
		switch err := it.follows(old); {
		case c.correction && (!ok || old.entry == nil):
			refused = append(refused, &EntryError{ID: it.id, Given: it.time, Err: ErrNotPublished})
		case ok && p.same(it, old):
		case !ok || err == nil:
			known[it.id] = it
			accepted = append(accepted, it)
		case !c.lenient:
			refused = append(refused, &EntryError{ID: it.id, Given: it.time, Published: old.time, Err: err})
		}
	}
	return accepted, errors.Join(refused...)
}

// items returns the normalized entries and the deletions of a change.
func (p *Publisher) items(c change) ([]item, error) {
	given := make([]item, 0, len(c.entries)+len(c.deleted))
	for _, e := range c.entries {
		normal, err := p.normalize(e)
		if err != nil {
			return nil, refused(e, err)
		}
		given = append(given, entryItem(normal))
	}
	for _, t := range c.deleted {
		if t.Ref == "" || t.When.IsZero() {
			return nil, &EntryError{ID: t.Ref, Given: t.When, Err: ErrUnpublishable}
		}
		given = append(given, item{id: t.Ref, time: t.When})
	}
	return given, nil
}

// follows returns why an item cannot come after an old one of the same id, or
// nil if it can. An entry without a time counts as changed when its document
// was (5005#21), so it is newer than anything before.
func (it item) follows(old item) error {
	switch {
	case it.entry != nil && it.time.IsZero():
		return nil
	case it.time.Before(old.time):
		return ErrStale
	case !it.time.Equal(old.time), it.entry == nil && old.entry != nil:
		return nil // a deletion also applies to an entry of the same time (RFC 6721 §2)
	case old.entry == nil:
		return ErrStale
	}
	return ErrSameTime
}

// same reports whether an item is published already, as old.
func (p *Publisher) same(it, old item) bool {
	if it.entry == nil || old.entry == nil {
		return it.entry == old.entry && it.time.Equal(old.time)
	}
	if !it.entry.Updated.Equal(old.entry.Updated) {
		return false
	}
	published := p.words(old.entry)
	return p.words(it.entry) == published ||
		p.words(it.entry.Signed()) == published // the authors of the entry's own feed were not ours
}

// known returns the published versions of the given items, as far as they can matter.
func (p *session) known(s *state, given []item, c change) (map[string]item, error) {
	known := make(map[string]item, len(s.log)+len(s.recent))
	for _, it := range s.items() {
		if _, ok := known[it.id]; !ok {
			known[it.id] = it
		}
	}
	want := map[string]time.Time{}
	for _, it := range given {
		if _, ok := known[it.id]; ok {
			continue
		}
		since, wanted := it.time, c.correction
		switch {
		case it.time.IsZero() && it.entry != nil:
			wanted = wanted || c.lenient
		case c.correction:
			since = time.Time{}
		default:
			wanted = wanted || !it.time.After(s.latest)
		}
		if old, ok := want[it.id]; wanted && (!ok || since.Before(old)) {
			want[it.id] = since
		}
	}
	return known, p.find(s, want, known)
}

// items returns the items of the subscription document, the newest of each id
// first. An entry without a time counts as updated when the document was.
func (s *state) items() []item {
	items := slices.Clone(s.log)
	slices.Reverse(items)
	for _, e := range s.recent {
		items = append(items, entryItem(e))
	}
	for i := range items {
		if items[i].time.IsZero() {
			items[i].time = s.doc.Updated
		}
	}
	return items
}

// find looks up ids in the archives, newest first. It looks for each id back to the
// first archive with nothing newer than the time given with the id. The first version
// found is the newest, because versions are published in the order of their times. The
// chain ends at a removed archive (5005#18).
func (p *session) find(s *state, want map[string]time.Time, found map[string]item) error {
	for name := s.prev; name != "" && len(want) > 0; {
		a, err := p.archive(name)
		if isNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, it := range a.items() {
			if _, ok := want[it.id]; ok {
				found[it.id] = it
				delete(want, it.id)
			}
		}
		for id, since := range want {
			if a.doc.Updated.Before(since) {
				delete(want, id)
			}
		}
		name = a.prev
	}
	return nil
}

// items returns the items of an archive. An entry without a time counts as
// updated when the archive was.
func (a *archive) items() []item {
	var items []item
	for _, e := range a.doc.Entries {
		it := entryItem(e)
		if it.time.IsZero() {
			it.time = a.doc.Updated
		}
		items = append(items, it)
	}
	for _, t := range a.doc.Deleted {
		items = append(items, item{id: t.Ref, time: t.When})
	}
	return items
}
