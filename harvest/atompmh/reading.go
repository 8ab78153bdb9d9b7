package atompmh

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

// A reading is the part of a feed read so far, as it matters to a harvest from a mark.
type reading struct {
	from Mark

	first     *feedhistory.Document // the newest copy of the subscription document
	unchanged bool                  // whether it is the one in the mark
	documents int
	complete  bool // whether a document is complete, together with newer ones
	scope     scope

	latest  map[string]version              // the latest entry of each record
	earlier map[string][]*feedhistory.Entry // earlier entries, in any order; nil if unwanted
	others  []Change
	now     time.Time // when the subscription document came, by the server's clock
	newest  time.Time // the newest time of all entries, except those from the future
	gaps    []*feedhistory.Gap
}

// A scope says how much of the feed to read, and to report.
type scope uint8

const (
	sinceMark  scope = iota
	toEnd            // read all, ignoring the stop rule
	everything       // and report all, because the mark cannot be used
)

// A version is an entry of a record.
type version struct {
	entry *feedhistory.Entry
	kind  ChangeKind
	in    time.Time // when its document was updated
}

func newReading(from Mark, history bool) *reading {
	r := &reading{from: from, latest: map[string]version{}}
	if history {
		r.earlier = map[string][]*feedhistory.Entry{}
	}
	return r
}

// hasBegun reports whether the subscription document has been read.
func (r *reading) hasBegun() bool { return !r.now.IsZero() }

// read reads the documents that a harvest needs: the subscription document and, unless
// it is complete, the chain of prev-archive links down to the first document older than
// the mark (atom-pmh consumer#1, consumer#2). The error is the first document's, or the
// context's.
func (r *reading) read(ctx context.Context, http *feedhistory.Client, url string) error {
	subscription := withoutFragment(url)
	known := func(u string) feedhistory.Known {
		if u == subscription {
			return r.from.Subscription
		}
		return feedhistory.Known{}
	}
	for doc, err := range http.Walk(ctx, url, &feedhistory.WalkOptions{Known: known}) {
		if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
			if gap.From != gap.URL || gap.Reason != feedhistory.ReasonMalformed { // otherwise it is damage, as below
				r.miss(gap)
			}
			continue
		}
		if _, r.unchanged = errors.AsType[*feedhistory.Unchanged](err); r.unchanged {
			return nil // and neither has anything it leads to
		}
		if err == nil {
			r.gaps = append(r.gaps, doc.Missing(feedhistory.Plain)...) // anything missing outside its entries may only be lost
		}
		switch {
		case err != nil:
			return err
		case doc.Format != feedhistory.Atom && r.first == nil:
			return notAtom(doc)
		case doc.Format != feedhistory.Atom:
			gap := feedhistory.NewGap(doc.URL, notAtom(doc))
			gap.Reason = feedhistory.ReasonNotFeed
			r.gaps = append(r.gaps, gap)
			return nil
		case !r.add(doc):
			return nil
		}
	}
	return nil
}

// miss processes the readable part of a damaged document.
func (r *reading) miss(gap *feedhistory.Gap) {
	r.gaps = append(r.gaps, gap)
	if doc := gap.Document; doc != nil && doc.Format == feedhistory.Atom {
		r.entries(doc)
	}
}

// add processes a document, and reports whether older ones are wanted.
func (r *reading) add(doc *feedhistory.Document) bool {
	if r.documents++; r.first == nil {
		r.begin(doc)
	} else if doc.URL == r.first.URL {
		r.first = doc // read again, because an archive was missing
	}
	if len(doc.Entries) > 0 && updatedOf(doc).Before(r.from.Time) && r.scope == sinceMark {
		return false // everything in it is known
	}
	r.entries(doc)
	if doc.Complete {
		if r.complete = true; !r.from.Complete {
			r.scope = everything
		}
	}
	return !doc.Complete && doc.Kind() == feedhistory.Archived
}

// begin processes the subscription document's description of the feed. If it is older
// than the mark, the feed or its clock was set back; then changes older than the mark
// may be unknown.
//
// A complete feed shows deletions by leaving records out. If the feed is no longer
// complete, one harvest must make up for it: records nowhere in the whole feed were
// deleted before.
func (r *reading) begin(doc *feedhistory.Document) {
	r.first, r.now = doc, dateOf(doc)
	switch {
	case r.from.IsZero() || updatedOf(doc).Before(r.from.Time) && !r.from.Complete:
		r.scope = everything
	case r.from.Complete || r.from.Time.After(r.now.Add(24*time.Hour)): // no harvest can have read as far as a mark from the future claims
		r.scope = toEnd
	default:
		r.scope, r.newest = sinceMark, r.from.Time
	}
}

// dateOf returns when a document came, by the server's clock, which should also stamp
// the producer's changes; by our own clock if the server does not tell the time.
func dateOf(doc *feedhistory.Document) time.Time {
	return feedtime.First(doc.Response.Date, doc.Response.Received, time.Now())
}

// updatedOf returns when a document was updated. If an entry has a later time, which
// breaks a rule (atom-pmh#5), it returns the entry's.
func updatedOf(doc *feedhistory.Document) time.Time {
	t := doc.Updated
	for _, e := range doc.Entries {
		if e.Updated.After(t) {
			t = e.Updated
		}
	}
	return t
}

// entries processes a document's entries.
func (r *reading) entries(doc *feedhistory.Document) {
	updated := updatedOf(doc)
	for _, e := range doc.Entries {
		v := version{e, kindOf(e), updated}
		if v.kind == Other {
			r.others = append(r.others, change(v))
			continue
		}
		if e.Updated.After(r.newest) && !e.Updated.After(r.now) {
			r.newest = e.Updated.UTC()
		}
		old, ok := r.latest[e.ID]
		if !ok || v.supersedes(old) {
			r.latest[e.ID], v = v, old
		}
		if ok && r.earlier != nil && v.kind == Record {
			r.earlier[e.ID] = append(r.earlier[e.ID], v.entry)
		}
	}
}

// supersedes reports whether a version takes precedence over one read before it, in the
// same or in a newer document: the later one does, and of equally late ones the
// deletion (atom-pmh consumer#4).
func (v version) supersedes(old version) bool {
	if v.entry.Updated.Equal(old.entry.Updated) {
		return v.kind == Deleted && old.kind != Deleted
	}
	return v.entry.Updated.After(old.entry.Updated)
}

func change(v version) Change {
	return Change{
		Kind: v.kind, ID: v.entry.ID, Time: v.entry.Updated, Entry: v.entry,
		Representations: representations(v.entry),
	}
}

// changes returns the changes since the mark, oldest first.
func (r *reading) changes() []Change {
	changes := slices.Clone(r.others)
	for id, v := range r.latest {
		if seen, ok := r.from.Seen[id]; r.scope == everything || !ok || r.follows(v, seen) {
			c := change(v)
			c.Historical = r.historical(v.entry)
			changes = append(changes, c)
		}
	}
	if r.from.Complete && r.whole() && !r.unchanged {
		changes = append(changes, r.absent()...)
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
	})
	return changes
}

// follows reports whether a version is news to those who have seen another one.
// An older version is not: it is left when the later one was not read, because
// it was removed from the feed, or its document is cut short. Only a complete
// feed may go back. Of two copies with the same time, it is known only after
// everything has been read which one counts.
func (r *reading) follows(v version, seen SeenRecord) bool {
	now := seenOf(v.entry, v.kind)
	switch {
	case now.is(seen):
		return false
	case r.complete && r.whole():
		return true
	case now.Time.Equal(seen.Time):
		return !seen.Deleted && (now.Deleted || r.whole())
	}
	return now.Time.After(seen.Time)
}

// historical returns the earlier entries of a record, each once, oldest first.
func (r *reading) historical(latest *feedhistory.Entry) []*feedhistory.Entry {
	before := slices.DeleteFunc(r.earlier[latest.ID], func(e *feedhistory.Entry) bool {
		return !e.Updated.Before(latest.Updated)
	})
	slices.SortStableFunc(before, func(a, b *feedhistory.Entry) int { return a.Updated.Compare(b.Updated) })
	return slices.CompactFunc(before, func(a, b *feedhistory.Entry) bool { return a.Updated.Equal(b.Updated) })
}

// absent returns the records the feed once had and no longer has.
func (r *reading) absent() (gone []Change) {
	for id, seen := range r.from.Seen {
		if _, there := r.latest[id]; there || seen.Deleted {
			continue
		}
		gone = append(gone, Change{Kind: Deleted, ID: id, Time: seen.Time})
	}
	return gone
}

// whole reports whether nothing is missing.
func (r *reading) whole() bool { return len(r.gaps) == 0 }

// subscription returns the Mark's memory of the subscription document. While it has
// entries from the future, it says nothing about those before them, so it must be read
// again even if it has not changed.
func (r *reading) subscription() feedhistory.Known {
	known := r.first.Known()
	if slices.ContainsFunc(r.first.Entries, func(e *feedhistory.Entry) bool { return e.Updated.After(r.now) }) {
		known.ETag, known.LastModified, known.Digest = "", "", ""
	}
	return known
}

// outcome returns the result of the harvest.
func (r *reading) outcome(overlap time.Duration) outcome {
	o := outcome{head: r.first, whole: r.whole(), documents: r.documents, next: r.from}
	if r.unchanged || !o.whole {
		return o
	}
	o.all = r.scope == everything
	back := back(r.newest, overlap)
	o.next = Mark{
		Time: back, Subscription: r.subscription(), Complete: r.complete,
		Seen: make(map[string]SeenRecord, len(r.latest)),
	}
	for id, v := range r.latest {
		if !r.complete && v.in.Before(back) {
			continue // it will not be read again
		}
		seen, ok := r.from.Seen[id]
		if !ok || r.scope == everything || r.follows(v, seen) {
			seen = seenOf(v.entry, v.kind)
		}
		o.next.Seen[id] = seen
	}
	return o
}

// back returns the time of the next mark, given the newest time of an entry.
func back(newest time.Time, overlap time.Duration) time.Time {
	if t := newest.Add(-max(overlap, 0)); isTime(t) {
		return t
	}
	return time.Time{}
}

func withoutFragment(url string) string {
	url, _, _ = strings.Cut(url, "#")
	return url
}
