package atompmh

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A reading is the part of a feed read so far, as it matters to a harvest from a mark.
type reading struct {
	h     *Harvester
	from  mark
	chain chainReader

	at        *feedhistory.Reading  // the latest of the walk
	first     *feedhistory.Document // the newest copy of the subscription document
	known     feedhistory.Known     // what to remember of it
	unchanged bool                  // whether it is the one in the mark
	documents int
	requests  int
	complete  bool // whether a document is complete, together with newer ones
	pool      bool // whether the feed is or was complete: only a comparison shows its deletions
	doubt     doubt
	scope     scope

	held    entrySorter // the entries read
	number  int64       // how many there are
	history bool        // keep earlier entries
	now     time.Time   // when the subscription document came, by the server's clock
	newest  time.Time   // the newest time of all entries, except those from the future
	gaps    []*feedhistory.Gap

	seen map[string]seenRecord // of the next mark
}

// A doubt is about complete documents with links to older ones. A producer without records may
// have several complete documents (§ Complete feeds), so they contradict each other only if an
// older one has a record that the newest does not cover.
type doubt struct {
	urls   []string // the complete documents with such a link
	covers int64    // the number of entries in the newest of them, and in newer documents
	first  feedhistory.Link
}

// A scope says how much of the feed to read, and to report.
type scope uint8

const (
	sinceMark  scope = iota
	toEnd            // read all, ignoring the stop rule
	everything       // and report all, because the mark cannot be used
)

// newReading returns a Harvester's reading from a mark. Close it after use.
func (h *Harvester) newReading(ctx context.Context, from mark, history bool) *reading {
	r := &reading{h: h, from: from, pool: from.Complete, history: history, seen: map[string]seenRecord{}}
	r.held = r.sorter(ctx, byRecord)
	return r
}

// sorter returns an empty sorter.
func (r *reading) sorter(ctx context.Context, compare func(a, b *heldEntry) int) entrySorter {
	return entrySorter{Context: ctx, Compare: compare, Size: (*heldEntry).size, Most: r.h.memory, Create: r.h.createTemp}
}

func (r *reading) close() { r.held.Close() }

// hasBegun reports whether the subscription document has been read.
func (r *reading) hasBegun() bool { return !r.now.IsZero() }

// A walker takes what a walk brings: a Harvest, or a keeper.
type walker struct {
	document func(doc *feedhistory.Document, damaged bool) (more bool, err error)
	miss     func(*feedhistory.Gap) error

	// Only a keeper goes on after a document that has not changed, or is not Atom: from the
	// pending addresses to those that are ended, which it does not need.
	unchanged func(older string)
	pending   []string
	ended     func(url string) bool
}

// walk reads the documents that a harvest needs: the subscription document and, unless
// it is complete, the chain of prev-archive links down to the first document older than
// the mark (atom-pmh consumer#1, consumer#2). The error is the first document's, or the
// context's.
func (r *reading) walk(ctx context.Context, client *feedhistory.Client, w walker) error {
	subscription := iri.WithoutFragment(r.h.URL)
	past := &chain.Memory[feedhistory.Known, *feedhistory.Document]{Processed: w.ended, Pending: w.pending, Known: func(url string) feedhistory.Known {
		if url == subscription && !r.h.WholeChain {
			return r.from.Subscription
		}
		return feedhistory.Known{}
	}}
	for at, err := range client.Walk(door.WithPast(r.h.with(ctx), past), r.h.URL) {
		more := true
		if err == nil {
			more, err = r.take(at, w)
		} else {
			r.requests++
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// take processes a Reading of the walk, and reports whether more are wanted.
func (r *reading) take(at *feedhistory.Reading, w walker) (more bool, err error) {
	gaps := slices.DeleteFunc(slices.Clone(at.Gaps), r.isNoted)
	if at.Document != nil || at.Unchanged || len(gaps) > 0 {
		r.requests++
	}
	for _, gap := range gaps {
		if err := w.miss(gap); err != nil {
			return false, err
		}
	}
	switch doc := at.Document; {
	case at.Unchanged:
		r.unchanged, r.now = true, time.Now()
		if w.unchanged == nil { // nothing it leads to has changed either
			return false, nil
		}
		w.unchanged(at.Known.Older)
		return true, nil
	case doc == nil:
		return true, nil
	case doc.Format != feedhistory.FormatAtom && !r.hasBegun():
		return false, notAtom(doc)
	case doc.Format != feedhistory.FormatAtom:
		r.gaps = append(append(r.gaps, doc.Missing(feedhistory.KindPlain)...), harvest.NewGap(doc.URL, notAtom(doc)))
		return w.unchanged != nil, nil
	default:
		damage := doc.Missing(feedhistory.KindPlain) // anything missing outside its entries may only be lost
		if gap := torn(doc); gap != nil && len(damage) == 0 {
			damage = []*feedhistory.Gap{gap}
		}
		r.gaps = append(r.gaps, damage...)
		r.at = at
		return w.document(doc, len(damage) > 0)
	}
}

// torn returns the gap of a document with an element that has lost its end, or its beginning,
// and an entry that says nothing of a record: both may be what is left of records.
func torn(doc *feedhistory.Document) *feedhistory.Gap {
	lost := slices.IndexFunc(doc.Notes, func(n feedhistory.Note) bool { return n.Code == "unclosed-element" || n.Code == "stray-end-tag" })
	entry := slices.IndexFunc(doc.Entries, func(e *feedhistory.Entry) bool { return kindOf(e) == Other })
	if lost < 0 || entry < 0 {
		return nil
	}
	gap := feedhistory.NewGap(doc.URL, fmt.Errorf("%s, and the entry %q has lost a part: records may be missing (atom-pmh#3)",
		doc.Notes[lost].Message, xmlscan.Clip(doc.Entries[entry].ID, 200)))
	gap.Reason = feedhistory.ReasonMalformed
	return gap
}

// miss processes the readable part of a damaged document.
func (r *reading) miss(gap *feedhistory.Gap) error {
	r.gaps = append(r.gaps, gap)
	if doc := gap.Document; doc != nil && doc.Format == feedhistory.FormatAtom {
		r.pool = r.pool || doc.Complete
		return r.entries(doc)
	}
	return nil
}

// add processes a document, and reports whether older ones are wanted.
func (r *reading) add(doc *feedhistory.Document, _ bool) (more bool, err error) {
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
	r.suspect(doc)
	doubted := len(r.doubt.urls) > 0
	if doc.Complete && !doubted {
		r.completed()
		return false, nil
	}
	return doubted || doc.Kind() == feedhistory.KindArchived, nil
}

// completed notes that the documents read are the whole pool.
func (r *reading) completed() {
	if r.complete = true; !r.from.Complete {
		r.scope = everything
	}
}

// suspect notes a complete document with a link to an older one. Then all are read.
func (r *reading) suspect(doc *feedhistory.Document) {
	r.pool = r.pool || doc.Complete
	link, ok := contradiction(doc)
	if !ok {
		return
	}
	if d := &r.doubt; len(d.urls) == 0 {
		d.first, d.covers = link, r.number
	}
	if r.doubt.urls = append(r.doubt.urls, doc.URL); r.scope == sinceMark {
		r.scope = toEnd
	}
}

// settle decides whether complete documents contradict each other (5005#26). If they do, it is
// unknown which of the records were deleted, so none counts as deleted.
func (r *reading) settle() error {
	if len(r.doubt.urls) == 0 {
		return nil
	}
	var latest *heldEntry // of the record under way
	covered, uncovered := false, ""
	end := func() {
		if latest != nil && latest.Kind == Record && !covered && uncovered == "" {
			uncovered = latest.ID
		}
	}
	for v, err := range r.held.Sorted() {
		switch {
		case err != nil:
			return err
		case v.Kind == Other:
			continue
		case latest == nil || latest.ID != v.ID:
			end()
			latest, covered = v, false
		case v.version().supersedes(latest.version()):
			latest = v
		}
		covered = covered || v.Number <= r.doubt.covers
	}
	if end(); uncovered == "" {
		if r.whole() {
			r.completed()
		}
		return nil
	}
	gap := feedhistory.NewGap(r.doubt.urls[0], fmt.Errorf("it has fh:complete, and a link %s that leads elsewhere, to %s, and an older document has the record %q (5005#26)",
		r.doubt.first.Rel, iri.Redact(r.doubt.first.Href), xmlscan.Clip(uncovered, 200)))
	gap.Reason = feedhistory.ReasonContradiction
	r.gaps = append(r.gaps, gap)
	return nil
}

// contradiction returns the link of a complete document to an older one.
func contradiction(doc *feedhistory.Document) (older feedhistory.Link, ok bool) {
	if !doc.Complete {
		return older, false
	}
	for _, link := range doc.Further(feedhistory.KindComplete) {
		switch link.Rel {
		case "prev-archive", "next", "previous", "last":
			return link, true
		}
	}
	return older, false
}

// isNoted reports whether a gap of the walk is noted with its document: damage, or a
// contradiction.
func (r *reading) isNoted(gap *feedhistory.Gap) bool {
	return gap.Reason == feedhistory.ReasonMalformed && gap.From == gap.URL ||
		gap.Reason == feedhistory.ReasonContradiction && slices.Contains(r.doubt.urls, gap.URL)
}

// begin processes the subscription document's description of the feed. If it is older
// than the mark, the feed or its clock was set back; then changes older than the mark
// may be unknown.
//
// A complete feed shows deletions by leaving records out. If the feed is no longer
// complete, one harvest must make up for it: records nowhere in the whole feed were
// deleted before.
func (r *reading) begin(doc *feedhistory.Document) {
	r.first, r.known, r.now = doc, r.at.Known, dateOf(doc)
	switch {
	case r.from.isZero() || updatedOf(doc).Before(r.from.Time) && !r.from.Complete:
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
	r.first, r.known, r.chain = doc, r.at.Known, chainReader{unfit: true}
}

// isKnown reports whether a document is an archive known from the last harvest, at which
// this one may end.
func (r *reading) isKnown(doc *feedhistory.Document) bool {
	return r.chain.read(doc, olderThan(doc)) && len(r.gaps) == 0
}

// olderThan returns the address of the next older document; "" if there is none.
func olderThan(doc *feedhistory.Document) string {
	link, ok := doc.Links.Rel(doc.Kind().Older())
	if !ok {
		link, _ = contradiction(doc)
	}
	return iri.Address(link.Href)
}

// dateOf returns when a document came, by the server's clock, which should also stamp
// the producer's changes; by our own clock if the server does not tell the time.
func dateOf(doc *feedhistory.Document) time.Time {
	date, _ := http.ParseTime(doc.Response.Header.Get("Date"))
	return feedtime.First(date.UTC(), doc.Response.Received, time.Now())
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
// everything has been read which one counts; so a record has come back within the second
// of its deletion only if the deletion is no longer there.
func (r *reading) follows(v *heldEntry, seen seenRecord) bool {
	now := v.seen()
	switch {
	case now.is(seen):
		return false
	case r.complete && r.whole():
		return true
	case now.Time.Equal(seen.Time):
		return now.Deleted || r.whole()
	}
	return now.Time.After(seen.Time)
}

// whole reports whether nothing is missing.
func (r *reading) whole() bool { return len(r.gaps) == 0 }

// subscription returns the Mark's memory of the subscription document. While it has
// entries from the future, it says nothing about those before them, so it must be read
// again even if it has not changed.
func (r *reading) subscription() feedhistory.Known {
	known := r.known
	if slices.ContainsFunc(r.first.Entries, func(e *feedhistory.Entry) bool { return e.Updated.After(r.now) }) {
		known.ETag, known.LastModified, known.Digest = "", "", ""
	}
	return known
}

// note notes a record for the next mark, unless its entry will not be read again. Seen is
// its memory there, for which the changes so far count. A complete feed may lack the record
// from now on, so even a harvest that is not whole notes it.
func (r *reading) note(v *heldEntry, seen seenRecord) {
	if r.complete || r.pool && !r.whole() || r.whole() && !v.Document.Before(back(r.newest, r.h.Overlap)) {
		r.seen[v.ID] = seen
	}
}

// outcome returns the result of the harvest, after its changes.
func (r *reading) outcome() outcome {
	o := outcome{head: r.first, whole: r.whole(), documents: r.documents, requests: r.requests, gaps: r.gaps, next: r.from}
	switch {
	case r.unchanged:
		return o
	case !o.whole && r.pool: // it begins where this one did, and knows the records reported
		o.next.Seen, o.next.Subscription = r.seen, feedhistory.Known{}
		return o
	case !o.whole:
		return o
	}
	o.all = r.scope == everything
	o.next = mark{
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

// entries holds a document's entries.
func (r *reading) entries(doc *feedhistory.Document) error {
	updated := updatedOf(doc)
	for _, e := range doc.Entries {
		r.number++
		v := &heldEntry{
			ID: strings.Clone(e.ID), At: e.Updated.UTC(), Number: r.number, Document: updated.UTC(), Digest: digestOf(e), Text: string(e.XML()),
		}
		if v.Kind = kindIn(e, v.Text); v.Kind != Other && v.At.After(r.newest) && !v.At.After(r.now) {
			r.newest = v.At
		}
		if err := r.held.Add(v); err != nil {
			return err
		}
	}
	return nil
}

// changes yields the changes since the mark, oldest first, and notes the records for the
// next mark. An error ends them.
func (r *reading) changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		news := r.sorter(r.held.Context, byTime)
		defer news.Close()
		if err := r.news(&news); err != nil {
			yield(Change{}, err)
			return
		}
		for v, err := range news.Sorted() {
			var c Change
			if err == nil {
				c, err = v.change()
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// news adds the changes since the mark to a sorter, each with the earlier entries of its
// record, and notes the records for the next mark.
func (r *reading) news(news *entrySorter) error {
	if err := r.settle(); err != nil {
		return err
	}
	unread := maps.Clone(r.from.Seen)
	var latest *heldEntry // the latest entry so far of the record under way
	end := func() error {
		if latest == nil {
			return nil
		}
		delete(unread, latest.ID)
		seen, known := r.from.Seen[latest.ID]
		isNews := r.scope == everything || !known || r.follows(latest, seen)
		if isNews {
			seen = latest.seen()
		}
		if r.note(latest, seen); !isNews {
			return nil
		}
		return news.Add(latest)
	}
	for v, err := range r.held.Sorted() {
		switch {
		case err != nil:
		case v.Kind == Other:
			err = news.Add(v)
		case latest == nil || latest.ID != v.ID:
			err, latest = end(), v
		default:
			if v.version().supersedes(latest.version()) {
				v.Earlier, latest.Earlier = latest.Earlier, nil
				latest, v = v, latest
			}
			if r.history && v.Kind == Record {
				latest.Earlier = append(latest.Earlier, earlierEntry{v.At, v.Text})
			}
		}
		if err != nil {
			return err
		}
	}
	if err := end(); err != nil {
		return err
	}
	return r.missing(news, unread)
}

// missing processes the records of the mark that were not read. They are absent from a feed
// that is or was complete; otherwise they may be in the archives left out.
func (r *reading) missing(news *entrySorter, unread map[string]seenRecord) error {
	if r.chain.known != "" || r.pool && !r.whole() {
		maps.Copy(r.seen, unread)
	}
	if r.scope != everything && !r.from.Complete || !r.whole() || r.unchanged {
		return nil
	}
	for id, seen := range unread {
		if seen.Deleted {
			continue
		}
		if err := news.Add(&heldEntry{ID: id, At: seen.Time.UTC(), Kind: Deleted}); err != nil {
			return err
		}
	}
	return nil
}

// change returns the change the entry makes.
func (v *heldEntry) change() (Change, error) {
	if v.Text == "" {
		return Change{Kind: Deleted, ID: v.ID, Time: v.At}, nil
	}
	e, err := feedhistory.ReadEntry(feedhistory.FormatAtom, v.Text, "")
	if err != nil {
		return Change{}, err
	}
	c := change(e, v.Kind)
	slices.SortStableFunc(v.Earlier, func(a, b earlierEntry) int { return a.At.Compare(b.At) })
	for i, old := range v.Earlier { // each state once
		if !old.At.Before(v.At) || i > 0 && old.At.Equal(v.Earlier[i-1].At) {
			continue
		}
		e, err := feedhistory.ReadEntry(feedhistory.FormatAtom, old.Text, "")
		if err != nil {
			return Change{}, err
		}
		c.Historical = append(c.Historical, e)
	}
	return c, nil
}

// change returns the change an entry reports.
func change(e *feedhistory.Entry, kind ChangeKind) Change {
	return Change{Kind: kind, ID: e.ID, Time: e.Updated, Entry: e, Representations: representations(e)}
}

// Some producers date each document of the chain with the feed's last change, although
// none may be later than the entries of a newer document (atom-pmh#7). No document is ever
// older than the mark then, and each harvest would read the whole chain. A chainReader
// finds the archive at which it may end: one the last harvest has read too, with the same entries
// and the same older archive.

// A knownChain is a mark's memory of such a chain. With the zero value, a harvest reads the
// chain to its end.
type knownChain struct {
	Documents []string `json:"documents,omitempty"` // digests of the newest archives, newest first
	Passes    int      `json:"passes,omitempty"`    // how often in a row the whole chain was read, and in order
	Skips     int      `json:"skips,omitempty"`     // the number of harvests since that left out archives
}

// Such a chain is trusted after two passes, because the first cannot show how the producer
// publishes a change. It is read again after twenty harvests.
const (
	chainPasses    = 2
	chainSkips     = 20
	chainDocuments = 16
)

// A chainReader compares the chain of one harvest with a knownChain.
type chainReader struct {
	from knownChain
	mark time.Time

	begun          bool
	feed           time.Time // the time of the subscription document
	oldest, newest time.Time // the times of the entries read so far
	digests        []string
	unfit          bool   // a document has its own time, or the entries are not in order
	known          string // the archive where the harvest ends; "" if it reads on
}

// read takes the next document of the chain, and reports whether the harvest may end there
// without it. By the order of time (atom-pmh#5, atom-pmh#7), a change is in a document
// before those unchanged. A producer out of order is found out by three signs: an archive
// has an entry later than a newer document's; the feed's time is no entry's, so the latest
// change has not come yet; and, at the latest, the next pass.
func (c *chainReader) read(doc *feedhistory.Document, older string) bool {
	first, last := span(doc)
	if !c.begun {
		c.begun, c.feed, c.oldest, c.newest = true, doc.Updated, first, last
		return false
	}
	ordered := c.oldest.IsZero() || !last.After(c.oldest)
	if c.unfit = c.unfit || !ordered || !doc.Updated.Equal(c.feed); c.unfit {
		return false
	}
	d := digestOfDocument(doc, older)
	at := slices.Index(c.from.Documents, d)
	mayEnd := c.from.Passes >= chainPasses && c.from.Skips < chainSkips && c.newest.Equal(c.feed)
	if at >= 0 && mayEnd && !last.IsZero() && last.Before(c.mark) {
		c.digests, c.known = append(c.digests, c.from.Documents[at:]...), doc.URL
		return true
	}
	c.digests = append(c.digests, d)
	if c.oldest.IsZero() || !first.IsZero() && first.Before(c.oldest) {
		c.oldest = first
	}
	if last.After(c.newest) {
		c.newest = last
	}
	return false
}

// next returns the memory for the next harvest, after a whole one.
func (c *chainReader) next() knownChain {
	next := knownChain{Documents: slices.Clip(c.digests[:min(len(c.digests), chainDocuments)]), Passes: c.from.Passes, Skips: c.from.Skips + 1}
	switch {
	case c.unfit || len(c.digests) == 0 || !c.newest.Equal(c.feed):
		return knownChain{}
	case c.known == "":
		next.Passes, next.Skips = min(next.Passes+1, chainPasses), 0
	}
	return next
}

// span returns the first and the last time of a document's entries; zero if there are none.
func span(doc *feedhistory.Document) (first, last time.Time) {
	for _, e := range doc.Entries {
		if !isTime(e.Updated) {
			continue
		}
		if first.IsZero() || e.Updated.Before(first) {
			first = e.Updated
		}
		if e.Updated.After(last) {
			last = e.Updated
		}
	}
	return first, last
}

// digestOfDocument returns a digest of the entries, and of the link to the older archive.
// The other parts of a head may change with each answer.
func digestOfDocument(doc *feedhistory.Document, older string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", older)
	for _, e := range doc.Entries {
		xml := e.XML()
		fmt.Fprintf(h, "%d\n%s\n", len(xml), xml)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
