package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Recall adds entries to feeds from the memory of others: feed readers, saved
// documents, or the repository of a website. Mirror and Name must be set. It adds feeds
// new to the Store; they are due at once.
//
// Its entries prove nothing about gaps: the verdict stays as it is, and a Recall is no
// poll. A missed window is closed only if the memory has entries from both sides of it:
// the newest from before and the oldest from after. An entry deleted by a feed's
// tombstone does not come back, and one missing from a complete feed is Absent.
//
// Use a Recall in one goroutine only, and the same one for everything from one source:
// it remembers the entries of a few feeds, to recognise those without an id.
type Recall struct {
	Mirror *Mirror
	Name   string // a word for the source, such as "newsboat"; it becomes the Source of each Copy
	DryRun bool   // count only, and store nothing

	known     map[string]*knownEntries   // by feed
	entries   int                        // the number of entries in known
	met       map[string]map[string]bool // by feed, the IDs of window sides that the memory has
	rehearsed map[[2]uint64]bool         // entries that a dry run has counted
}

// A KeptEntry is an entry as a feed reader has kept it.
type KeptEntry struct {
	// Draft is the entry. Its ID is the publisher's; "" if the reader does not have it. Both
	// times may be zero.
	compose.Draft

	Hash string // the reader's hash of the id, in hexadecimal; "" if there is none. See Miniflux's API
	Note string // a remark on the copy, such as "deleted there"; "" for none
}

// Entries adds entries that a feed reader has kept. Title is the feed's, for a feed that
// has none. The Report counts as Changed also an entry of which there is an older copy. An
// entry that cannot be stored is left out: Failure joins the errors of all (errors.Join).
// The error is the Store's or the context's.
func (r *Recall) Entries(ctx context.Context, url, title string, kept []KeptEntry) (*Report, error) {
	if r.Mirror == nil {
		return nil, errors.New("mirror: Recall.Mirror must be set")
	}
	if err := r.Mirror.check(); err != nil {
		return nil, err
	}
	doc, made, bad, err := r.document(ctx, iri.WithoutFragment(strings.TrimSpace(url)), kept)
	if err != nil {
		return nil, err
	}
	doc.Title = title
	done, err := r.add(ctx, url, doc, made, Rank{Time: r.Mirror.now()})
	if err != nil {
		return nil, err
	}
	done.Failure = errors.Join(bad...)
	return done, nil
}

// Document adds a document of the feed itself that somebody has saved, such as a version in
// a repository. Older is the number of documents that the source has from before; at is
// when it was saved, in case it does not say when it was updated.
func (r *Recall) Document(ctx context.Context, url string, doc *feedhistory.Document, older int, at time.Time) (*Report, error) {
	if doc == nil {
		return nil, errors.New("mirror: Recall.Document: the Document is nil")
	}
	rank := rankOf(doc, Rank{Time: at, Seq: int64(min(older, 1<<30)) + 1})
	return r.add(ctx, url, doc, nil, rank)
}

// triesToAdd is how often a Recall begins again if another mirror is at work on the feed.
const triesToAdd = 10

// add merges a document, and commits it. Made has the IDs that entries without one have got.
func (r *Recall) add(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (*Report, error) {
	if err := r.Mirror.check(); err != nil {
		return nil, err
	}
	for try := time.Duration(1); ; try++ {
		done, err := r.merge(ctx, iri.WithoutFragment(strings.TrimSpace(url)), doc, made, rank)
		if !errors.Is(err, ErrConflict) || try == triesToAdd {
			return done, err
		}
		select {
		case <-time.After(try * 50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *Recall) merge(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (*Report, error) {
	store := r.Mirror.Store
	f, err := store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		f, err = NewFeed(url), nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.fillSides(ctx, store); err != nil {
		return nil, err
	}
	fresh := *doc
	fresh.Entries = r.unrehearsed(url, doc.Entries)
	from := source{doc: &fresh, rank: rank, recalled: true, name: r.Name}
	if f.Kind == feedhistory.KindComplete && f.Ledger.l.Known.URL != "" {
		from.absence = max(f.Polls<<32, 1)
	}
	version, done := f.Commits, &Report{Feed: f}
	mg := merger{
		ctx: ctx, store: store, feed: f, from: version, now: r.Mirror.now(), changes: done, allowance: newAllowance(ctx, r.Mirror, f), digests: newDigests(false),
	}
	m, err := mg.merge(from)
	if err != nil {
		return nil, err
	}
	for _, e := range fresh.Entries {
		if got := m.record(e.ID); made[e.ID] && got != nil && got.FirstCommit > version {
			f.Ledger.l.Unnamed++
		}
	}
	done.Added, done.Changed, done.Refused = 0, done.Changed+len(m.change.Versions), m.refused
	for got := range m.records() {
		if got.FirstCommit > version {
			done.Added++
		}
	}
	done.Closed = r.close(f, doc.Entries)
	return done, r.commit(ctx, f, doc, m)
}

// close removes the missed windows of which the memory has entries from both sides, and
// returns their number.
func (r *Recall) close(f *Feed, entries []*feedhistory.Entry) (closed int) {
	if r.met == nil {
		r.met = map[string]map[string]bool{}
	}
	if r.met[f.URL] == nil {
		r.met[f.URL] = map[string]bool{}
	}
	met := r.met[f.URL]
	l := &f.Ledger.l
	for _, d := range l.Debts {
		for _, e := range entries {
			met[e.ID] = met[e.ID] || d.isMissed() && (slices.Contains(d.Before, e.ID) || slices.Contains(d.After, e.ID))
		}
	}
	n := len(l.Debts)
	l.crossOut(func(d debt) bool {
		return d.Kind == debtWindow && len(d.Before) > 0 && len(d.After) > 0 && met[d.Before[0]] && met[d.After[0]]
	})
	if closed = n - len(l.Debts); closed > 0 {
		l.Unsettled = l.Kind == feedhistory.KindArchived
		f.judge()
	}
	return closed
}

// commit stores a change, unless it changes nothing.
func (r *Recall) commit(ctx context.Context, f *Feed, doc *feedhistory.Document, m *mergeResult) error {
	c := &m.change
	titled := f.Title == "" && doc.Title != ""
	if titled {
		f.Title = doc.Title
	}
	if f.Head == "" && doc.URL != "" {
		f.Head = headOf(doc)
	}
	isChanged := titled || f.Commits == 0 || len(c.Put)+len(c.Touch)+len(c.Versions) > 0
	c.Feed = f
	if r.DryRun || !isChanged {
		return nil
	}
	return r.Mirror.Store.Commit(ctx, c)
}

// unrehearsed returns the entries that a dry run has not counted yet.
func (r *Recall) unrehearsed(feed string, entries []*feedhistory.Entry) []*feedhistory.Entry {
	if !r.DryRun {
		return entries
	}
	if r.rehearsed == nil {
		r.rehearsed = map[[2]uint64]bool{}
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *feedhistory.Entry) bool {
		key := keyOf(feed, e.ID)
		was := r.rehearsed[key]
		r.rehearsed[key] = true
		return was
	})
}

// hashesOf returns the hashes by which readers know an id: Miniflux keeps the SHA-256 of
// those it has found in feeds, and the FNV-128a of those it has imported.
func hashesOf(id string) []string {
	sum := sha256.Sum256([]byte(id))
	imported := fnv.New128a()
	imported.Write([]byte(id))
	return []string{hex.EncodeToString(sum[:]), hex.EncodeToString(imported.Sum(nil))}
}

// mostKnown is the number of entries that a Recall remembers, of all feeds. Of a larger
// feed it remembers the newest.
const mostKnown = 300_000

// knownEntries are the entries of a feed, by the parts of their identity readers keep.
type knownEntries struct {
	entries []knownEntry
	byID    map[[2]uint64]int
	byHash  map[[2]uint64]int
	byLink  map[[2]uint64][]int // those without a link by their titles
}

type knownEntry struct {
	id string
	likeness
}

// add adds an entry; of several with one ID only the first.
func (k *knownEntries) add(id string, l likeness) {
	if _, ok := k.byID[keyOf(id)]; ok {
		return
	}
	n, place := len(k.entries), l.place()
	k.entries = append(k.entries, knownEntry{id, l.short()})
	k.byID[keyOf(id)] = n
	for _, hash := range hashesOf(id) {
		k.byHash[keyOf(hash)] = n
	}
	k.byLink[place] = append(k.byLink[place], n)
}

// knownOf returns the entries of a feed. It reads them once.
func (r *Recall) knownOf(ctx context.Context, feed string) (*knownEntries, error) {
	if k := r.known[feed]; k != nil {
		return k, nil
	}
	if r.known == nil || r.entries >= mostKnown {
		r.known, r.entries = map[string]*knownEntries{}, 0
	}
	k := &knownEntries{byID: map[[2]uint64]int{}, byHash: map[[2]uint64]int{}, byLink: map[[2]uint64][]int{}}
	for _, q := range []Query{{Feed: feed, States: Current | Former, Limit: mostKnown}, {Feed: feed, States: Traces, Limit: mostKnown}} {
		for rec, err := range r.Mirror.Store.Entries(ctx, q) {
			if err != nil {
				return nil, err
			}
			c := &rec.Content
			l := likenessOf(c.Link, c.Title, c.Published, c.Updated)
			if rec.State == Absent && rec.Copy.Rank.isKept() && l.isNameOf(rec.ID) {
				k.byID[keyOf(rec.ID)] = -1 // it is there under the publisher's id
				continue
			}
			k.add(rec.ID, l)
		}
	}
	r.known[feed], r.entries = k, r.entries+len(k.entries)
	return k, nil
}

// find returns the entry in the feed that a reader's copy is of; nil if there is none. Only
// says whether no other copy at hand has its link.
func (k *knownEntries) find(hash string, l likeness, only bool) (best *knownEntry) {
	if n, ok := k.byHash[keyOf(hash)]; hash != "" && ok {
		return &k.entries[n]
	}
	same := k.byLink[l.place()]
	only, l = only && len(same) == 1, l.short()
	for _, n := range same {
		switch e := &k.entries[n]; {
		case !l.isSame(e.likeness, only):
		case l == e.likeness:
			return e
		case best == nil:
			best = e
		}
	}
	return best
}

// document returns the entries of a reader as a document, without bad ones that cannot be
// stored. Made has the new IDs that entries without one have got.
func (r *Recall) document(ctx context.Context, feed string, kept []KeptEntry) (doc *feedhistory.Document, made map[string]bool, bad []error, err error) {
	links := map[[2]uint64]int{}
	for i := range kept {
		links[kept[i].likeness().place()]++
	}
	doc, made = &feedhistory.Document{Format: feedhistory.FormatAtom}, map[string]bool{}
	for i := range kept {
		k := &kept[i]
		if k.ID == "" {
			isNew, err := r.name(ctx, feed, k, links[k.likeness().place()] == 1)
			if err != nil {
				return nil, nil, nil, err
			}
			made[k.ID] = isNew
		} else if known := r.known[feed]; known != nil {
			known.add(k.ID, k.likeness())
		}
		e, err := k.entry(r.Name)
		if err != nil {
			bad = append(bad, fmt.Errorf("entry %q: %w", cmp.Or(k.ID, k.link(), k.Title.Plain()), err))
			continue
		}
		doc.Entries = append(doc.Entries, e)
	}
	return doc, made, bad, nil
}

// name gives an entry without an id the ID of the same entry in the feed, or a new one: its
// link or, if another entry has that, one made of link, title and time. It reports whether
// the ID is new.
func (r *Recall) name(ctx context.Context, feed string, k *KeptEntry, only bool) (isNew bool, err error) {
	known, err := r.knownOf(ctx, feed)
	if err != nil {
		return false, err
	}
	l := k.likeness()
	if e := known.find(k.Hash, l, only); e != nil {
		k.ID = e.id
		return false, nil
	}
	k.ID = l.first(k.link())
	if _, taken := known.byID[keyOf(k.ID)]; taken || l.link == "" {
		k.ID = l.name()
	}
	known.add(k.ID, l)
	r.entries++
	return true, nil
}

func (k *KeptEntry) link() string {
	i := slices.IndexFunc(k.Links, func(l feedhistory.Link) bool { return l.Rel == "alternate" })
	if i < 0 {
		return ""
	}
	return k.Links[i].Href
}

func (k *KeptEntry) likeness() likeness {
	return likenessOf(k.link(), k.Title.Plain(), k.Published, k.Updated)
}

// entry returns the entry, which says which reader has kept it.
func (k *KeptEntry) entry(reader string) (*feedhistory.Entry, error) {
	d := k.Draft
	if k.Note != "" {
		reader += " (" + k.Note + ")"
	}
	d.Extensions = append(slices.Clone(d.Extensions), compose.KeptBy(reader))
	if d.Updated.IsZero() {
		d.Updated = d.Published
	}
	e, err := d.Undated()
	if err != nil {
		return nil, err
	}
	return compose.DraftOf(e).Undated() // which stays the same under another ID, too: see merger.rename
}
