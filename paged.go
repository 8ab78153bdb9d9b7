package feedhistory

import (
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Paged feeds, RFC 5005 §3: a series of pages whose contents may change while they
// are read. A history of pages is never presented as whole (5005#4).

// isPaged reports whether the document is a page, by the links a page must have
// (5005#5).
func (d *Document) isPaged() bool {
	return d.Links.has(relFirst, relLast) || d.says(relPrevious, relNext)
}

// isLast reports whether the caller wants no page beyond this one.
func (a *along) isLast(l *fetchResult) bool {
	return a.kind == KindPaged && a.past.Last != nil && l.doc != nil && a.past.Last(l.doc)
}

// watchPages looks for entries that have moved from one page to the next. A page requested
// before the newer one was answered may lack such an entry, and the newer one too. But the
// first of them is then on two pages, so the pages after these are requested again.
func (a *along) watchPages(l *fetchResult) {
	if a.kind != KindPaged {
		return
	}
	isNewer := func(e *Entry) bool { return e.Time().After(a.feed.newest) } // more posts have come than had been read
	if l.doc == nil || a.loops.Shares(l.doc.facts()) || slices.ContainsFunc(l.doc.Entries, isNewer) {
		a.ahead.Distrust()
		return
	}
	last, _ := l.doc.Links.Rel(relLast)
	a.ahead.EndAt(iri.Address(last.Href))
}
