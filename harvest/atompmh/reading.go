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
	h     *Harvester
	from  Mark
	chain chainReader

	first     *feedhistory.Document // the newest copy of the subscription document
	unchanged bool                  // whether it is the one in the mark
	documents int
	complete  bool // whether a document is complete, together with newer ones
	scope     scope

	shelf   Shelf
	texts   textWriter
	history bool      // keep earlier entries
	others  int64     // the number of entries of kind Other
	now     time.Time // when the subscription document came, by the server's clock
	newest  time.Time // the newest time of all entries, except those from the future
	gaps    []*feedhistory.Gap

	seen map[string]SeenRecord // of the next mark
}

// A scope says how much of the feed to read, and to report.
type scope uint8

const (
	sinceMark  scope = iota
	toEnd            // read all, ignoring the stop rule
	everything       // and report all, because the mark cannot be used
)

// newReading returns a Harvester's reading from a mark, with an empty shelf.
func (h *Harvester) newReading(from Mark, history bool) (*reading, error) {
	shelf := h.Shelf
	if shelf == nil {
		shelf = new(memoryShelf)
	}
	r := &reading{
		h: h, from: from, history: history,
		shelf: shelf, texts: textWriter{shelf: shelf}, seen: map[string]SeenRecord{},
	}
	return r, shelf.Clear()
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
		if u == subscription && !r.h.WholeChain {
			return r.from.Subscription
		}
		return feedhistory.Known{}
	}
	for doc, err := range http.Walk(ctx, url, &feedhistory.WalkOptions{Known: known}) {
		if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
			if gap.From != gap.URL || gap.Reason != feedhistory.ReasonMalformed { // otherwise it is damage, as below
				if err := r.miss(gap); err != nil {
					return err
				}
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
		}
		if more, err := r.add(doc); err != nil || !more {
			return err
		}
	}
	return nil
}

// miss processes the readable part of a damaged document.
func (r *reading) miss(gap *feedhistory.Gap) error {
	r.gaps = append(r.gaps, gap)
	if doc := gap.Document; doc != nil && doc.Format == feedhistory.Atom {
		return r.entries(doc)
	}
	return nil
}

// add processes a document, and reports whether older ones are wanted.
func (r *reading) add(doc *feedhistory.Document) (more bool, err error) {
	if r.documents++; r.first == nil {
		r.begin(doc)
	} else if doc.URL == r.first.URL {
		r.again(doc)
	}
	known := r.isKnown(doc)
	if known || len(doc.Entries) > 0 && updatedOf(doc).Before(r.from.Time) && r.scope == sinceMark {
		return false, nil // everything in it is known
	}
	if err := r.entries(doc); err != nil {
		return false, err
	}
	if doc.Complete {
		if r.complete = true; !r.from.Complete {
			r.scope = everything
		}
	}
	return !doc.Complete && doc.Kind() == feedhistory.Archived, nil
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
	if r.h.WholeChain && r.scope == sinceMark {
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

// note notes a record for the next mark, unless its entry will not be read again. Seen is
// its memory there, for which the changes so far count.
func (r *reading) note(id string, v heldEntry, seen SeenRecord) {
	if r.whole() && (r.complete || !v.document.Before(back(r.newest, r.h.Overlap))) {
		r.seen[id] = seen
	}
}

// noteUnread notes the records of the archives left out, which are still there.
func (r *reading) noteUnread() error {
	if r.chain.known == "" {
		return nil
	}
	for id, seen := range r.from.Seen {
		if _, read, err := r.latest(id); err != nil {
			return err
		} else if !read {
			r.seen[id] = seen
		}
	}
	return nil
}

// outcome returns the result of the harvest, after its changes.
func (r *reading) outcome() outcome {
	o := outcome{head: r.first, whole: r.whole(), documents: r.documents, next: r.from}
	if r.unchanged || !o.whole {
		return o
	}
	o.all = r.scope == everything
	o.next = Mark{
		Time: back(r.newest, r.h.Overlap), Subscription: r.subscription(), Chain: r.chain.next(), Complete: r.complete, Seen: r.seen,
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
