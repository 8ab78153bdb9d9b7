package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A Poll has no Store, but what its Ledger remembers: the entries its rules ask for by name. Of
// others it need only know whether they have come before, and a digest tells.

// A shelf is the Store of a Poll, and hands out a Reading for each commit.
type shelf struct {
	memory
	yield  func(*Reading, error) bool
	left   bool // the caller has left the loop
	memo   *memo
	others map[otherID]bool // the memo's without their last bits, and these
}

// A memo is what a Ledger remembers. No two Ledgers of a walk change each other's: later commits
// append to the lists.
type memo struct {
	state     *Feed
	rows      []*Record         // of an entry, the last counts
	documents []*DocumentRecord // likewise
	others    []otherID         // the newest first
	id        walkID
}

// errLeft ends a poll whose caller has left.
var errLeft = errors.New("the caller has left the walk")

// newShelf returns the shelf of a walk from a Ledger on; nil is the one of a feed never read.
func newShelf(k *memo, l ledger, yield func(*Reading, error) bool) *shelf {
	s := &shelf{yield: yield, memo: &memo{id: newWalk(k)}}
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
	s.memo.state, s.memo.rows, s.memo.others = f.state, k.rows, k.others
	s.fold(f)
	return s
}

// Records implements Store.
func (s *shelf) Records(ctx context.Context, feed string, ids []string) (map[string]*Record, error) {
	found, err := s.memory.Records(ctx, feed, ids)
	if len(s.others) == 0 {
		return found, err
	}
	for _, id := range ids {
		if found[id] != nil {
			continue
		}
		if wasShown, ok := s.others[otherOf(id, false)>>1]; ok {
			found[id] = presumed(feed, id, wasShown)
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
	k := *s.memo
	if k.state != nil && k.state.Ledger.l.Since != f.state.Ledger.l.Since { // another feed
		k.others, s.others = nil, nil
	}
	if c.Forget {
		k.documents = nil
	}
	k.state = f.state
	k.documents = append(k.documents, c.Documents...)
	for _, r := range slices.Concat(c.Put, c.Touch) {
		k.rows = append(k.rows, f.entries[r.ID].record) // a touched one with what is known of its content
	}
	k.id.Number++
	if s.memo = &k; len(k.rows) > 2*len(f.entries)+foldAt || len(k.documents) > 2*len(f.documents)+foldAt || len(f.entries) > 2*len(f.state.Ledger.l.Shown)+foldAt {
		s.fold(f)
	}
	s.left = !s.yield(&Reading{Changes: c.changes, Response: c.response, Ledger: s.memo.ledger()}, nil)
	if s.left {
		return errLeft
	}
	return nil
}

// foldAt is how many rows, beyond twice those needed, are kept until they are folded.
const foldAt = 1000

// forgets reports whether the Ledger may remember nothing of some entries.
func (s *shelf) forgets() bool { return s != nil && len(s.memo.others) >= otherLimit }

// oldest returns the earliest time of an entry in the subscription document, as it was last read;
// zero if there is none.
func (s *shelf) oldest(l *ledger) (at time.Time) {
	f := s.feeds[s.memo.state.URL]
	for _, id := range l.Shown {
		r := f.entries[id].record
		if r == nil {
			continue
		}
		if own := feedtime.First(r.Content.Published, r.Content.Updated); !own.IsZero() && (at.IsZero() || own.Before(at)) {
			at = own
		}
	}
	return at
}

// fold begins new lists, of what the rules need.
func (s *shelf) fold(f *memoryFeed) {
	k := *s.memo
	k.rows, k.others = k.needed()
	clear(f.entries)
	for _, r := range k.rows {
		f.entries[r.ID] = memoryEntry{record: r}
	}
	k.documents = slices.Clone(f.documents)
	s.memo, s.others = &k, make(map[otherID]bool, len(k.others))
	for _, o := range k.others {
		s.others[o>>1] = o&1 == 1
	}
}

// folded returns what is remembered, without what later commits replaced.
func (k *memo) folded() *memo {
	folded := &memo{state: k.state, id: k.id}
	folded.rows, folded.others = k.needed()
	seen := make(map[string]bool, len(k.documents))
	for _, d := range slices.Backward(k.documents) {
		if !seen[d.URL] {
			seen[d.URL] = true
			folded.documents = append(folded.documents, d)
		}
	}
	slices.SortFunc(folded.documents, (*DocumentRecord).compare) // the newest first
	return folded
}

// ledger returns the Ledger; the zero one of none.
func (k *memo) ledger() Ledger {
	if k == nil {
		return Ledger{}
	}
	return Ledger{l: k.state.Ledger.l, memo: k}
}

// otherLimit is the maximum number of entries to know of besides the needed ones.
const otherLimit = 128

// mostOthers returns how many entries to know of besides the needed ones: of a paged feed, those of
// some pages; of a document with more than shownLimit entries, some beyond these.
func (k *memo) mostOthers() int {
	switch l := &k.state.Ledger.l; {
	case len(l.Shown) >= shownLimit:
		return shownLimit
	case l.Kind == feedhistory.KindPaged:
		return max(4*otherLimit, 2*len(l.Shown))
	}
	return otherLimit
}

// needed divides the rows, in the order in which they came, into those the rules ask for by name,
// and others, the newest first.
func (k *memo) needed() (needed []*Record, others []otherID) {
	l, names := &k.state.Ledger.l, map[string]int{}
	l.name(names)
	needed = make([]*Record, len(names))
	var shown, archived []*Record
	for _, r := range k.rows {
		switch i, isNamed := names[r.ID]; {
		case isNamed:
			needed[i] = r // the last one
		case r.Copy.Digest == "" || r.Copy.Digest == presumedDigest: // a deletion, or known as another
		case r.isShown():
			shown = append(shown, r)
		default:
			archived = append(archived, r)
		}
	}
	needed = slices.DeleteFunc(needed, func(r *Record) bool { return r == nil })
	if len(l.Shown) == 0 { // what comes next is compared with the newest
		needed = append(needed, archived[:min(2, len(archived))]...)
	}
	slices.SortStableFunc(shown, func(a, b *Record) int { return b.Copy.compare(a.Copy) })
	most, seen := k.mostOthers(), map[otherID]bool{}
	add := func(o otherID) {
		if len(others) < most && !seen[o>>1] {
			seen[o>>1] = true
			others = append(others, o)
		}
	}
	for _, r := range shown { // the last to leave the document come first
		add(otherOf(r.ID, true))
	}
	for _, o := range k.others {
		add(o)
	}
	for _, r := range archived {
		if len(others) == most {
			break
		}
		add(otherOf(r.ID, false))
	}
	return needed, others
}

// name numbers the entries the rules ask for by their IDs: first those in the subscription
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
	if l.Copied != nil {
		add(l.Copied.Shown...)
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

// presumedDigest is the digest of an entry of which nothing more is known.
const presumedDigest = "presumed"

// presumedCommit is the number of its first commit: it is of the feed that answers now.
const presumedCommit = 1 << 62

// presumed returns the record of such an entry.
func presumed(feed, id string, wasShown bool) *Record {
	r := &Record{Feed: feed, ID: id, State: Live, Copy: Copy{Digest: presumedDigest}, FirstCommit: presumedCommit, LastCommit: 1}
	if !wasShown {
		r.Copy.Rank.Seq = 1
	}
	return r
}

// presume gives records to the entries the Ledger may have forgotten: those of an archive read
// again, and those of a subscription document older than all it showed before.
func (p *program) presume(m *mergeResult) {
	var oldest time.Time
	switch s := m.source; {
	case p == nil, !s.again && !(s.window && p.shelf.forgets()):
		return
	case !s.again:
		oldest = p.shelf.oldest(p.ledger)
	}
	for _, it := range m.entries {
		if at := it.entry.Time(); it.isNew() && (m.source.again || !at.IsZero() && at.Before(oldest)) {
			it.record = presumed(p.shelf.memo.state.URL, it.id, m.source.window)
		}
	}
}

// contentKeys are in place of a content: digests by which an entry is recognised under another ID.
type contentKeys struct{ twin, texts, post string }

func (k contentKeys) String() string {
	if k == (contentKeys{}) {
		return ""
	}
	return k.twin + " " + k.texts + " " + k.post
}

// keysOf returns those of a content on a shelf.
func keysOf(c Content) contentKeys {
	keys := append(strings.Split(c.Data, " "), "", "")
	return contentKeys{keys[0], keys[1], keys[2]}
}

// contentOf returns the content of an entry; of a Poll, what its Ledger remembers of it.
func (s source) contentOf(e *feedhistory.Entry, isKnown bool) Content {
	if !s.isBare {
		return contentOf(e)
	}
	c := Content{Format: feedhistory.FormatAtom, WeakID: e.WeakID, Updated: e.Updated, Published: e.Published}
	var keys contentKeys
	if isKnown || !s.archive { // otherwise it is forgotten
		keys.twin, keys.texts = twinKeys(e)
		keys.twin, keys.texts = shorter(keys.twin), shorter(keys.texts)
	}
	if post := s.digests.postOf(e); post != "" {
		keys.post = postKey(post)
	}
	c.Data = keys.String()
	return c
}

// The lengths of digests, in hexadecimal digits.
const (
	shortDigest = 16 // of an entry, or the entries of an archive
	shortKeys   = 6
)

func shorter(key string) string { return key[:min(len(key), shortKeys)] }

func postKey(post string) string { return shorter(shortKey(post)) }
