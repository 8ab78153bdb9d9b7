package feedhistory

import (
	"context"
	"errors"
	"slices"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The walk's part in prefetching: which documents may be requested early.

// errUnended is the error if a transport ends its goroutine, as a failed test's handler
// in it does.
var errUnended = errors.New("the request did not end")

// source returns the documents of the walk.
func (w *walk) source() chain.Source[*fetchResult, *Document] {
	return chain.Source[*fetchResult, *Document]{
		Request: func(url string) func(context.Context, func(*Document)) *fetchResult {
			known := w.known(url)
			return func(ctx context.Context, arrived func(*Document)) *fetchResult {
				return w.c.load(ctx, url, known, arrived)
			}
		},
		Named:    w.named,
		Expected: func(url string) string { return iri.WithoutFragment(w.known(url).Older) },
		May:      w.mayGuess,
		Confirms: func(url string, l *fetchResult) bool {
			return l != nil && (l.err == nil || l.unchanged() != nil) && (l.doc == nil || l.doc.URL == url)
		},
	}
}

// named returns the next document named by the given head, and whether to load it
// early. It is not if a later link could still lead elsewhere, because a wasted request
// counts against the host's rate limit; nor if the document is known, because earlier
// documents may decide whether the walk needs it.
func (w *walk) named(head *Document) (url string, early bool) {
	kind := w.kind
	if w.start == "" {
		if kind = Archived; head.Kind() != Archived || !head.isSubscription() || head.beginsElsewhere() {
			return "", false
		}
	}
	link, ok := head.Links.Rel(kind.Older())
	url = iri.WithoutFragment(link.Href)
	return url, ok && link.distance() == 0 && !(kind == Archived && w.start != "" && w.knows(head)) && w.known(url) == (Known{}) && w.may(url)
}

// may reports whether a document may be requested before the walk needs it.
func (w *walk) may(url string) bool {
	return !w.loops.HasSeen(url) && !w.foreign(url) && !w.ahead.Has(url) && !w.spent(w.ahead.Len()-1) && !w.processed(url) &&
		(w.kind != Paged || w.opt.Last == nil)
}

// mayGuess reports whether a document not named by a link yet may be requested. Pages need
// times, see watchPages. Where documents may be Processed, what an earlier one brings
// decides whether the walk needs a known one.
func (w *walk) mayGuess(url string) bool {
	switch {
	case w.start == "", w.c.Policy.NoGuess, w.c.Pace > 0, w.kind != Archived && w.kind != Paged, w.kind == Paged && w.newest.IsZero(),
		(w.kind == Paged || w.opt.Processed != nil) && w.known(url) != (Known{}):
		return false
	}
	return iri.AreSameOrigin(w.start, url) && w.c.requester().IsPatient(url) && w.may(url)
}

// watchPages looks for entries that have moved from one page to the next. A page requested
// before the newer one was answered may lack such an entry, and the newer one too. But the
// first of them is then on two pages, so the pages after these are requested again.
func (w *walk) watchPages(l *fetchResult) {
	if w.kind != Paged {
		return
	}
	isNewer := func(e *Entry) bool { return e.Time().After(w.newest) } // more posts have come than had been read
	if l.doc == nil || w.loops.Shares(l.doc.facts()) || slices.ContainsFunc(l.doc.Entries, isNewer) {
		w.ahead.Distrust()
		return
	}
	last, _ := l.doc.Links.Rel(RelLast)
	w.ahead.EndAt(iri.WithoutFragment(last.Href))
}
