package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// The documents the caller of a walk has stored, perhaps during the walk.

// processed reports whether the caller had processed a document before this walk. The
// caller's answer no longer counts for a URL the walk has read, or the self link of a
// document it has read.
func (w *walk) processed(url string) bool {
	url = iri.WithoutFragment(url)
	return w.opt.Processed != nil && !w.loops.HasSeen(url) && !w.claimed.Has(url) && w.opt.Processed(url)
}

// wasProcessed reports whether an archive about to be yielded had been processed,
// perhaps under a URL different from the link to it.
func (w *walk) wasProcessed(l *fetchResult) bool {
	if w.opt.Processed == nil || l.doc == nil {
		return false
	}
	processed := w.opt.Processed(l.url) || w.knows(l.doc)
	if self, ok := l.doc.Links.Rel(RelSelf); ok && !w.opt.Processed(iri.WithoutFragment(self.Href)) {
		w.claimed.Add(iri.WithoutFragment(self.Href))
	}
	return processed && l.url != w.start
}

// knows reports whether a document had been processed under the URL where it was found.
// Its self link proves nothing: moved archives may still name the old address, and link
// to others than before.
func (w *walk) knows(doc *Document) bool { return w.processed(doc.URL) }

// A Budget bounds the cost of one walk (5005#28).
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request, not counting retries (see Retry.Tries), redirects, and requests in advance that turn out to be wasted; zero means 10,000.
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
	if w.kind == Archived && w.loops.RepeatsFirst(l.doc.facts()) {
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
	case w.loops.HasSeen(url):
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
