package mirror

import (
	"context"
	"errors"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Poll has no Store, but what its Ledger remembers: of entries, those that its rules ask for by
// name. That another was known is all that counts, and is told by a digest.

// A shelf is the Store of a Poll, and hands out a Reading for each commit.
type shelf struct {
	memory
	yield func(*Reading, error) bool
	left  bool // the caller has left the loop
	kept  *kept
}

// A kept is what a Ledger remembers. No two Ledgers of a walk change each other's: later commits
// append to the lists.
type kept struct {
	state     *Feed
	rows      []*Record         // of an entry, the last counts
	documents []*DocumentRecord // likewise
	others    []otherID         // the newest first
	id        walkID
}

// errLeft ends a poll whose caller has left.
var errLeft = errors.New("the caller has left the walk")

// newShelf returns the shelf of a walk that goes on with what a Ledger remembers; nil is the
// Ledger of a feed never read.
func newShelf(k *kept, l ledger, yield func(*Reading, error) bool) *shelf {
	s := &shelf{yield: yield, kept: &kept{id: newWalk(k)}}
	if k == nil {
		return s
	}
	f := newMemoryFeed(k.state.clone())
	f.state.Ledger.l = l.clone() // which Reset may have changed
	for _, r := range k.rows {
		f.entries[r.ID] = memoryEntry{record: r}
	}
	f.putDocuments(&Commit{Documents: k.documents})
	s.feeds = map[string]*memoryFeed{k.state.URL: f}
	s.kept.state, s.kept.others = f.state, k.others
	s.fold(f)
	return s
}

// Records implements Store.
func (s *shelf) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	found, err := s.memory.Records(ctx, feed, ids)
	for _, id := range ids {
		if found[id] != nil || len(s.kept.others) == 0 {
			continue
		}
		for _, other := range s.kept.others {
			if other.is(id) {
				found[id] = presumed(feed, id, other.wasShown())
				break
			}
		}
	}
	return found, err
}

// commit takes a commit, and hands out its Reading.
func (s *shelf) commit(ctx context.Context, c *Commit) error {
	if s.left {
		return errLeft
	}
	if err := s.Commit(ctx, c); err != nil {
		return err
	}
	f := s.feeds[c.Feed.URL]
	k := *s.kept
	if k.state != nil && k.state.Ledger.l.Since != f.state.Ledger.l.Since { // another feed
		k.others = nil
	}
	if c.Forget {
		k.documents = nil
	}
	k.state = f.state
	k.documents = append(k.documents, c.Documents...)
	k.rows = append(append(k.rows, c.Put...), c.Touch...)
	k.id.Number++
	if s.kept = &k; len(k.rows) > 2*len(f.entries)+foldAt || len(k.documents) > 2*len(f.documents)+foldAt || len(f.entries) > 2*len(f.state.Ledger.l.Shown)+foldAt {
		s.fold(f)
	}
	handed := *s.kept
	s.left = !s.yield(&Reading{Changes: c.changes, Response: c.response, Ledger: handed.ledger()}, nil)
	if s.left {
		return errLeft
	}
	return nil
}

// foldAt is how many rows, beyond twice those needed, are kept until they are folded.
const foldAt = 1000

// fold begins new lists, of what the rules need.
func (s *shelf) fold(f *memoryFeed) {
	k := *s.kept
	all := make([]*Record, 0, len(f.entries))
	for _, e := range f.entries {
		if e.record != nil {
			all = append(all, e.record)
		}
	}
	k.rows, k.others = k.state.Ledger.l.needed(all, k.others)
	f.entries = make(map[string]memoryEntry, len(k.rows))
	for _, r := range k.rows {
		f.entries[r.ID] = memoryEntry{record: r}
	}
	k.documents = slices.Clone(f.documents)
	s.kept = &k
}

// folded returns what is remembered, without what later commits replaced.
func (k *kept) folded() *kept {
	f := newMemoryFeed(k.state)
	for _, r := range k.rows {
		f.entries[r.ID] = memoryEntry{record: r}
	}
	all := make([]*Record, 0, len(f.entries))
	for _, e := range f.entries {
		if all = append(all, e.record); e.record.Content.keys == nil {
			r := clone(e.record)
			r.Content.keys, all[len(all)-1] = &contentKeys{}, r
		}
	}
	f.putDocuments(&Commit{Documents: k.documents})
	folded := &kept{state: k.state, documents: f.documents, id: k.id}
	folded.rows, folded.others = k.state.Ledger.l.needed(all, k.others)
	return folded
}

// ledger returns the Ledger; the zero one of none.
func (k *kept) ledger() Ledger {
	if k == nil {
		return Ledger{}
	}
	return Ledger{l: k.state.Ledger.l, kept: k}
}

// otherLimit is the maximum number of entries to know of besides those that the rules need; of a
// paged feed, twice as many as are in the subscription document, if these are more.
const otherLimit = 256

// needed divides rows into those that the rules ask for, and others, of which they ask no more than
// whether they were known.
func (l *ledger) needed(rows []*Record, others []otherID) ([]*Record, []otherID) {
	names := map[string]int{}
	l.name(names)
	limit := otherLimit
	if l.Kind == feedhistory.KindPaged {
		limit = max(limit, 2*len(l.Shown))
	}
	var needed, shown, archived []*Record
	for _, r := range rows {
		switch _, isNamed := names[r.ID]; {
		case isNamed:
			needed = append(needed, r)
		case r.Copy.Digest == "" || r.Copy.Digest == presumedDigest: // a deletion, or known as another
		case r.isShown():
			shown = append(shown, r)
		default:
			archived = append(archived, r)
		}
	}
	slices.SortFunc(needed, func(a, b *Record) int { return names[a.ID] - names[b.ID] })
	slices.SortFunc(shown, newer)
	slices.SortFunc(archived, newer)
	others = slices.Concat(otherIDs(shown), others, otherIDs(archived)) // those that have left the document last come first
	seen := map[otherID]bool{}
	others = slices.DeleteFunc(others, func(o otherID) bool {
		isThere := seen[o>>1]
		seen[o>>1] = true
		return isThere
	})
	return needed, others[:min(len(others), limit)]
}

// name numbers the entries that rules ask for by their IDs: first those in the subscription
// document, in its order.
func (l *ledger) name(names map[string]int) {
	add := func(ids ...string) {
		for _, id := range ids {
			if _, ok := names[id]; !ok && id != "" {
				names[id] = len(names)
			}
		}
	}
	add(l.Shown...)
	add(l.Newest)
	if l.Former != nil {
		add(l.Former.Shown...)
	}
	for _, d := range l.Debts {
		add(d.Entry)
		add(d.Before...)
		add(d.After...)
	}
	if l.Past != nil {
		l.Past.Ledger.name(names)
	}
}

// An otherID is a digest of the ID of an entry; its last bit says whether the subscription document
// has shown it.
type otherID uint64

func otherOf(id string, wasShown bool) otherID {
	o := otherID(keyOf(id)[0]) &^ 1
	if wasShown {
		o |= 1
	}
	return o
}

func (o otherID) is(id string) bool { return o&^1 == otherOf(id, false) }

func (o otherID) wasShown() bool { return o&1 == 1 }

func otherIDs(rows []*Record) []otherID {
	others := make([]otherID, len(rows))
	for i, r := range rows {
		others[i] = otherOf(r.ID, r.isShown())
	}
	return others
}

// presumedDigest is the digest of an entry that is known, and nothing more.
const presumedDigest = "presumed"

// presumed returns the record of such an entry.
func presumed(feed, id string, wasShown bool) *Record {
	r := &Record{Feed: feed, ID: id, State: Live, Copy: Copy{Digest: presumedDigest}, FirstCommit: 1 << 62, LastCommit: 1}
	if !wasShown {
		r.Copy.Rank.Seq = 1
	}
	return r
}

// presumeAll adds the entries of an archive that is read again to the records: it had most of them
// before.
func presumeAll(feed string, entries []*feedhistory.Entry, records map[string]*Record) {
	for _, e := range entries {
		if records[e.ID] == nil {
			records[e.ID] = presumed(feed, e.ID, false)
		}
	}
}

// contentKeys are in place of a content: digests by which an entry is recognised under another ID.
type contentKeys struct{ twin, texts, post string }

// contentOf returns the content of an entry; of a Poll, what its Ledger remembers of it.
func (s source) contentOf(e *feedhistory.Entry) Content {
	if !s.isBare {
		return contentOf(e)
	}
	c := Content{Format: feedhistory.FormatAtom, WeakID: e.WeakID, Updated: e.Updated, Published: e.Published, keys: &contentKeys{}}
	c.keys.twin, c.keys.texts = twinKeys(e)
	c.keys.twin, c.keys.texts = shorter(c.keys.twin), shorter(c.keys.texts)
	if iri.Post(e.ID) != "" && e.Post() != "" {
		c.keys.post = postKey(e)
	}
	return c
}

// The lengths of digests, in hexadecimal digits.
const (
	shortDigest = 16 // of an entry, or the entries of an archive
	shortKeys   = 8
)

func shorter(key string) string { return key[:min(len(key), shortKeys)] }

func postKey(e *feedhistory.Entry) string { return shorter(shortKey(e.Post())) }
