package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// A loopDetector records the documents a walk has read, to notice when a chain leads
// back into itself (5005#28). It holds digests with a random seed: their size does not
// depend on the documents'.
type loopDetector struct {
	seed  maphash.Seed
	chain int            // the number of the current chain; a walk may follow several
	urls  map[uint64]int // the URLs requested or redirected to, each with its chain

	selves set // the self links of the current chain's documents

	// Each with its last chain:
	bodies map[uint64]int // the documents
	facts  map[uint64]int // the IDs and times of entries and tombstones

	// shown has the facts of the subscription document that no archive has had.
	// Archives repeat them, so they count as new there.
	shown set
}

type set map[uint64]struct{}

func newLoopDetector() loopDetector {
	return loopDetector{seed: maphash.MakeSeed(), urls: map[uint64]int{}, selves: set{}, bodies: map[uint64]int{}, facts: map[uint64]int{}}
}

func (d *loopDetector) key(text string) uint64 { return maphash.String(d.seed, text) }

func (d *loopDetector) add(s set, text string) { s[d.key(text)] = struct{}{} }

func (d *loopDetector) has(s set, text string) bool {
	_, ok := s[d.key(text)]
	return ok
}

// see remembers a URL as requested, or redirected to.
func (d *loopDetector) see(url string) {
	if key := d.key(url); d.urls[key] == 0 {
		d.urls[key] = d.chain
	}
}

// forget forgets a URL without a document.
func (d *loopDetector) forget(url string) { delete(d.urls, d.key(url)) }

// seen reports whether a URL was requested, or redirected to.
func (d *loopDetector) seen(url string) bool { return d.urls[d.key(url)] > 0 }

// joins reports whether a URL was requested, or redirected to, in an earlier chain:
// the two chains meet there, which is no loop.
func (d *loopDetector) joins(url string) bool {
	chain := d.urls[d.key(url)]
	return 0 < chain && chain < d.chain
}

// begin begins a chain. It may have documents of another chain under other URLs,
// but none of its own twice.
func (d *loopDetector) begin() {
	d.chain++
	d.shown = nil
	clear(d.selves)
}

// repeats describes how a document equals one read before; "" if it is a new one.
func (d *loopDetector) repeats(l *fetchResult) string {
	if l.doc == nil {
		return ""
	}
	if final := l.doc.URL; final != l.url && d.seen(final) {
		return "it redirects to " + final + ", which has already been read"
	}
	if d.bodies[d.key(l.text)] == d.chain {
		return "its content is the same as that of an earlier document"
	}
	self, ok := l.doc.Links.Rel(RelSelf)
	known := ok && iri.AreSameOrigin(self.Href, l.doc.URL) && self.Href != l.url && self.Href != l.doc.URL &&
		(d.seen(self.Href) || d.has(d.selves, self.Href))
	if known && len(l.doc.Entries) > 0 && d.digest(l.doc, false) == 0 {
		return "its self link is " + self.Href + ", which has already been read, and it brings nothing new"
	}
	return ""
}

// record remembers a document of the walk, and reports whether it brings anything
// new. The document belongs to the current chain, even if it was read for an
// earlier one.
func (d *loopDetector) record(l *fetchResult) (fresh bool) {
	for _, url := range []string{l.url, l.doc.URL} {
		d.urls[d.key(url)] = d.chain
	}
	d.bodies[d.key(l.text)] = d.chain
	if self, ok := l.doc.Links.Rel(RelSelf); ok {
		d.add(d.selves, self.Href)
	}
	return d.digest(l.doc, true) > 0
}

// repeatsShown reports whether an archive repeats entries which the first document of
// its chain shows, and no archive before had.
func (d *loopDetector) repeatsShown(doc *Document) bool {
	before, isFirst := len(d.shown), d.shown == nil
	if isFirst {
		d.shown = set{}
	}
	for f := range doc.facts() {
		if key := maphash.Comparable(d.seed, f); isFirst {
			d.shown[key] = struct{}{}
		} else {
			delete(d.shown, key)
		}
	}
	return len(d.shown) < before
}

// digest counts the entries and tombstones of a document new to the chain, or newer,
// and remembers them if told to.
func (d *loopDetector) digest(doc *Document, remember bool) (fresh int) {
	for f := range doc.facts() {
		key := maphash.Comparable(d.seed, f)
		if d.facts[key] != d.chain {
			fresh++
		}
		if remember {
			d.facts[key] = d.chain
		}
	}
	return fresh
}

// sharesFacts reports whether a document has an entry or a tombstone of the current chain.
func (d *loopDetector) sharesFacts(doc *Document) bool {
	for f := range doc.facts() {
		if d.facts[maphash.Comparable(d.seed, f)] == d.chain {
			return true
		}
	}
	return false
}

// isNew reports whether a document brings anything new to all chains.
func (d *loopDetector) isNew(doc *Document) bool {
	for f := range doc.facts() {
		if d.facts[maphash.Comparable(d.seed, f)] == 0 {
			return true
		}
	}
	return false
}

type fact struct {
	id      string
	at      int64
	deleted bool
}

// The documents the caller of a walk has stored, perhaps during the walk.

// processed reports whether the caller had processed a document before this walk. The
// caller's answer no longer counts for a URL the walk has read, or the self link of a
// document it has read.
func (w *walk) processed(url string) bool {
	url = iri.WithoutFragment(url)
	return w.opt.Processed != nil && !w.seen(url) && !w.has(w.claimed, url) && w.opt.Processed(url)
}

// wasProcessed reports whether an archive about to be yielded had been processed,
// perhaps under a URL different from the link to it.
func (w *walk) wasProcessed(l *fetchResult) bool {
	if w.opt.Processed == nil || l.doc == nil {
		return false
	}
	processed := w.opt.Processed(l.url) || w.knows(l.doc)
	if self, ok := l.doc.Links.Rel(RelSelf); ok && !w.opt.Processed(iri.WithoutFragment(self.Href)) {
		w.add(w.claimed, iri.WithoutFragment(self.Href))
	}
	return processed && l.url != w.start
}

// knows reports whether a document had been processed under the URL where it was found.
// Its self link proves nothing: moved archives may still name the old address, and link
// to others than before.
func (w *walk) knows(doc *Document) bool { return w.processed(doc.URL) }

// A Budget bounds the cost of one walk (5005#28).
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request; zero means 10,000.
	Bytes     int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.
	Barren    int   // Barren is the maximum number of consecutive documents without anything new; zero means 20.
	Empty     int   // Empty is the maximum number of archive documents in a row without any entry, which Barren does not count; zero means 1,000.

	// More, if not nil, is called when one of these is spent, with the walk's use so far.
	// It returns the new budget for the whole walk. If it returns false, or a budget spent
	// as well, the chain ends in a gap.
	More func(used Budget) (Budget, bool)
}

func (b Budget) withDefaults() Budget {
	b.Documents, b.Bytes = cmp.Or(b.Documents, 10_000), cmp.Or(b.Bytes, 1<<30)
	b.Barren, b.Empty = cmp.Or(b.Barren, 20), cmp.Or(b.Empty, 1000)
	return b
}

// affordable reports whether the budget allows one more document.
func (w *walk) affordable() bool {
	if w.spent(0) && w.budget.More != nil {
		if larger, ok := w.budget.More(w.used); ok {
			larger.More = w.budget.More
			w.budget = larger.withDefaults()
		}
	}
	return !w.spent(0)
}

// spent reports whether the budget is spent after the given number of further
// documents.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents || w.used.Bytes >= w.budget.Bytes || w.barren()
}

// barren reports whether too many documents in a row have brought nothing new.
func (w *walk) barren() bool {
	return w.used.Barren >= w.budget.Barren || w.used.Empty >= w.budget.Empty
}

// count counts a document of the walk against the budget. An archive without any entry
// may cover a day on which nothing happened; one whose entries are all known comes from
// a server that ignores the query.
func (w *walk) count(l *fetchResult, fresh bool) {
	if w.kind == Archived && w.repeatsShown(l.doc) {
		fresh = true
	}
	switch {
	case fresh:
		w.used.Barren, w.used.Empty = 0, 0
	case w.kind == Archived && l.err == nil && len(l.doc.Entries)+len(l.doc.Deleted) == 0:
		w.used.Empty++
	default:
		w.used.Barren++
	}
}

// forbids returns a gap if a document must not be requested.
func (w *walk) forbids(url string) *Gap {
	switch {
	case w.seen(url):
		return &Gap{URL: url, Reason: ReasonLoop, Err: errors.New("this document has already been read")}
	case w.foreign(url):
		return &Gap{URL: url, Reason: ReasonRefused, Err: &RefusedError{URL: url, Rule: RuleOrigin}}
	case w.affordable():
		return nil
	case w.barren():
		return &Gap{URL: url, Reason: ReasonBarren,
			Err: fmt.Errorf("%d documents in a row brought nothing new; %d of them had no entry", w.used.Barren+w.used.Empty, w.used.Empty)}
	}
	return &Gap{URL: url, Reason: ReasonBudget,
		Err: fmt.Errorf("spent: %d of %d documents, %d of %d bytes",
			w.used.Documents, w.budget.Documents, w.used.Bytes, w.budget.Bytes)}
}

func (w *walk) foreign(url string) bool {
	return w.c.Policy.SameOrigin &&
		!slices.ContainsFunc(w.origins, func(own string) bool { return iri.AreSameOrigin(own, url) })
}

// strayed returns a gap if a document was redirected to a forbidden origin.
func (w *walk) strayed(l *fetchResult, from string) *Gap {
	if !w.foreign(l.finalURL()) {
		return nil
	}
	return &Gap{URL: l.url, From: from, Reason: ReasonRefused, Err: &RefusedError{URL: l.finalURL(), Rule: RuleOrigin}}
}
