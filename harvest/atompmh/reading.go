package atompmh

import (
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
	from     Mark
	thorough bool // read the whole chain
	chain    chainReader

	first     *feedhistory.Document // the newest copy of the subscription document
	unchanged bool                  // whether it is the one in the mark
	documents int
	complete  bool // whether a document is complete, together with newer ones
	scope     scope

	latest  map[string]heldEntry   // the latest entry of each record
	earlier map[string][]heldEntry // earlier entries, in any order; nil if unwanted
	others  []otherEntry
	texts   shelf
	times   []time.Time // when the documents were updated
	now     time.Time   // when the subscription document came, by the server's clock
	newest  time.Time   // the newest time of all entries, except those from the future
	gaps    []*feedhistory.Gap
}

// A scope says how much of the feed to read, and to report.
type scope uint8

const (
	sinceMark  scope = iota
	toEnd            // read all, ignoring the stop rule
	everything       // and report all, because the mark cannot be used
)

// A version is the time and the kind of an entry of a record.
type version struct {
	at   time.Time
	kind ChangeKind
}

// A heldEntry is an entry a reading has seen. Its text is on the shelf: a chain has more
// entries than memory has room for.
type heldEntry struct {
	version
	in     int32 // the number of its document
	digest digest
	text   spot
}

// An otherEntry is an entry of kind Other.
type otherEntry struct {
	id string
	heldEntry
}

func (v heldEntry) seen() SeenRecord { return seenAs(v.version, v.digest) }

// newReading returns a Harvester's reading from a mark.
func (h *Harvester) newReading(from Mark, history bool) *reading {
	r := &reading{from: from, thorough: h.WholeChain, latest: map[string]heldEntry{}}
	if history {
		r.earlier = map[string][]heldEntry{}
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
		if u == subscription && !r.thorough {
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
		r.again(doc)
	}
	known := r.isKnown(doc)
	if known || len(doc.Entries) > 0 && updatedOf(doc).Before(r.from.Time) && r.scope == sinceMark {
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
	if r.thorough && r.scope == sinceMark {
		r.scope = toEnd
	}
	r.chain = chainReader{from: r.from.Chain, mark: r.from.Time}
	if r.scope != sinceMark {
		r.chain.from.Documents = nil
	}
}

// again takes the subscription document read again, because an archive was missing.
func (r *reading) again(doc *feedhistory.Document) {
	r.first, r.chain = doc, chainReader{unfit: true}
}

// isKnown reports whether a document is an archive known from the last harvest, at which
// this one may end.
func (r *reading) isKnown(doc *feedhistory.Document) bool {
	return r.chain.read(doc, olderThan(doc)) && len(r.gaps) == 0
}

// olderThan returns the address of the next older document; "" if there is none.
func olderThan(doc *feedhistory.Document) string {
	link, ok := doc.Older()
	if !ok {
		return ""
	}
	return withoutFragment(link.Href)
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
	in := int32(len(r.times))
	r.times = append(r.times, updatedOf(doc))
	for _, e := range doc.Entries {
		v := heldEntry{version{e.Updated, kindOf(e)}, in, digestOf(e), r.texts.put(string(e.XML()))}
		if v.kind == Other {
			r.others = append(r.others, otherEntry{strings.Clone(e.ID), v})
			continue
		}
		if e.Updated.After(r.newest) && !e.Updated.After(r.now) {
			r.newest = e.Updated.UTC()
		}
		old, ok := r.latest[e.ID]
		id := e.ID
		if !ok {
			id = strings.Clone(id) // not a part of the document's text, which would stay in memory
		}
		if !ok || v.supersedes(old.version) {
			r.latest[id], v = v, old
		}
		if ok && r.earlier != nil && v.kind == Record {
			r.earlier[id] = append(r.earlier[id], v)
		}
	}
}

// supersedes reports whether a version takes precedence over one read before it, in the
// same or in a newer document: the later one does, and of equally late ones the
// deletion (atom-pmh consumer#4).
func (v version) supersedes(old version) bool {
	if v.at.Equal(old.at) {
		return v.kind == Deleted && old.kind != Deleted
	}
	return v.at.After(old.at)
}

// follows reports whether a version is news to those who have seen another one.
// An older version is not: it is left when the later one was not read, because
// it was removed from the feed, or its document is cut short. Only a complete
// feed may go back. Of two copies with the same time, it is known only after
// everything has been read which one counts.
func (r *reading) follows(v heldEntry, seen SeenRecord) bool {
	now := v.seen()
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
		Time: back, Subscription: r.subscription(), Chain: r.chain.next(), Complete: r.complete,
		Seen: make(map[string]SeenRecord, len(r.latest)),
	}
	for id, v := range r.latest {
		if !r.complete && r.times[v.in].Before(back) {
			continue // it will not be read again
		}
		seen, ok := r.from.Seen[id]
		if !ok || r.scope == everything || r.follows(v, seen) {
			seen = v.seen()
		}
		o.next.Seen[id] = seen
	}
	if r.chain.known != "" { // what was not read again is still there
		for id, seen := range r.from.Seen {
			if _, read := r.latest[id]; !read {
				o.next.Seen[id] = seen
			}
		}
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
