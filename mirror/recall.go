package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
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

	known     map[string]*knownEntries // by feed
	entries   int                      // the number of entries in known
	windows   map[string][]*window     // by feed
	rehearsed map[[2]uint64]bool       // entries that a dry run has counted
}

// A KeptEntry is an entry as a feed reader has kept it.
type KeptEntry struct {
	// Draft is the entry. Its ID is the publisher's; "" if the reader does not have it. Both
	// times may be zero.
	feedhistory.Draft

	Hash string // the reader's hash of the id, in hexadecimal; "" if there is none. See Miniflux's API
	Note string // a remark on the copy, such as "deleted there"; "" for none
}

// A RecallReport says how much of a memory was new. The numbers add up to the entries that were
// given.
type RecallReport struct {
	Added   int // entries that the feed did not have
	Changed int // entries of which there is an older copy or a new version
	Same    int // entries that were there, or deleted, or repeated
	Refused int // entries for which the Quota has no room
	Closed  int // missed windows that are closed; not part of the sum

	Damaged []*EntryError // entries that cannot be stored
}

// Add adds the numbers of other.
func (r *RecallReport) Add(other RecallReport) {
	r.Added, r.Changed, r.Same = r.Added+other.Added, r.Changed+other.Changed, r.Same+other.Same
	r.Refused, r.Closed = r.Refused+other.Refused, r.Closed+other.Closed
	r.Damaged = append(r.Damaged, other.Damaged...)
}

// Entries adds entries that a feed reader has kept. Title is the feed's, for a feed that
// has none. Entries that cannot be stored are left out: RecallReport.Damaged has an
// *EntryError for each. The error is the Store's or the context's.
func (r *Recall) Entries(ctx context.Context, url, title string, kept []KeptEntry) (RecallReport, error) {
	if r.Mirror == nil {
		return RecallReport{}, errors.New("mirror: Recall.Mirror must be set")
	}
	if err := r.Mirror.check(); err != nil {
		return RecallReport{}, err
	}
	doc, made, bad, err := r.document(ctx, iri.WithoutFragment(strings.TrimSpace(url)), kept)
	if err != nil {
		return RecallReport{}, err
	}
	doc.Title = title
	done, err := r.add(ctx, url, doc, made, Rank{Time: time.Now()})
	done.Damaged = bad
	return done, err
}

// Document adds a document of the feed itself that somebody has saved, such as a version in
// a repository. Older is the number of documents that the source has from before; at is
// when it was saved, in case it does not say when it was updated.
// The error may be the context's.
func (r *Recall) Document(ctx context.Context, url string, doc *feedhistory.Document, older int, at time.Time) (RecallReport, error) {
	if doc == nil {
		return RecallReport{}, errors.New("mirror: Recall.Document: the Document is nil")
	}
	rank := rankOf(doc, Rank{Time: at, Seq: int64(min(older, 1<<30)) + 1})
	return r.add(ctx, url, doc, nil, rank)
}

// An EntryError says why an entry cannot be stored.
type EntryError struct {
	ID  string // the publisher's or its link or title, shortened
	Err error
}

// Error names the entry.
func (e *EntryError) Error() string { return fmt.Sprintf("entry %q: %v", e.ID, e.Err) }

// Unwrap returns Err.
func (e *EntryError) Unwrap() error { return e.Err }

// triesToAdd is how often a Recall begins again if another mirror is at work on the feed.
const triesToAdd = 10

// add merges a document, and commits it. Made has the IDs that entries without one have got.
func (r *Recall) add(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (done RecallReport, err error) {
	if err := r.Mirror.check(); err != nil {
		return done, err
	}
	for try := time.Duration(1); ; try++ {
		done, err = r.merge(ctx, iri.WithoutFragment(strings.TrimSpace(url)), doc, made, rank)
		if !errors.Is(err, ErrConflict) || try == triesToAdd {
			return done, err
		}
		select {
		case <-time.After(try * 50 * time.Millisecond):
		case <-ctx.Done():
			return done, ctx.Err()
		}
	}
}

func (r *Recall) merge(ctx context.Context, url string, doc *feedhistory.Document, made map[string]bool, rank Rank) (done RecallReport, err error) {
	store := r.Mirror.Store
	f, err := store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		f, err = NewFeed(url), nil
	}
	if err != nil {
		return done, err
	}
	windows, err := r.windowsOf(ctx, f)
	if err != nil {
		return done, err
	}
	fresh := *doc
	fresh.Entries = r.unrehearsed(url, doc.Entries)
	from := source{doc: &fresh, rank: rank, recalled: true, name: r.Name}
	if f.Kind == feedhistory.Complete && f.Known.URL != "" {
		from.absence = max(f.Polls<<32, 1)
	}
	version, changes := f.Commits, &Report{}
	mg := merger{
		ctx: ctx, store: store, feed: f, from: version, now: time.Now(), changes: changes, allowance: newAllowance(ctx, r.Mirror, f),
	}
	m, err := mg.merge(from)
	if err != nil {
		return done, err
	}
	for _, e := range fresh.Entries {
		if got := m.records[e.ID]; made[e.ID] && got != nil && got.FirstCommit > version {
			f.Unnamed++
		}
	}
	done = RecallReport{Changed: changes.Changed + len(m.change.Versions), Refused: m.refused}
	for _, got := range m.records {
		if got.FirstCommit > version {
			done.Added++
		}
	}
	for _, w := range windows {
		w.meet(doc.Entries)
	}
	done.Closed = f.close(windows)
	done.Same = max(0, len(doc.Entries)-done.Added-done.Changed-done.Refused)
	return done, r.commit(ctx, f, doc, m)
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
