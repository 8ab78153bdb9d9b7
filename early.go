package feedhistory

import (
	"context"
	"errors"
	"io/fs"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The walk's part in prefetching: which documents may be requested early.

// errUnended is the error if a transport ends its goroutine, as a failed test's handler
// in it does.
var errUnended = errors.New("the request did not end")

// An early is the part of a walk requesting documents before their turn.
type early struct{ *session }

// source returns the documents of the walk.
func (e *early) source() chain.Source[*fetchResult, *Document] {
	return chain.Source[*fetchResult, *Document]{
		Request: func(r chain.Request) func(context.Context, func(*Document)) *fetchResult {
			known := e.known(r.URL)
			return func(ctx context.Context, arrived func(*Document)) *fetchResult {
				return e.c.load(ctx, r, known, arrived)
			}
		},
		Named:    e.named,
		Expected: func(url string) string { return iri.Address(e.known(url).Older) },
		May:      e.mayGuess,
		Confirms: func(url string, l *fetchResult) bool {
			return l != nil && l.err == nil && (l.doc == nil || l.doc.URL == url)
		},
		Fails: func(l *fetchResult, guess bool) bool {
			return l != nil && l.err != nil && (guess || !errors.Is(l.err, fs.ErrNotExist))
		},
	}
}

// named returns the next document named by the given head, and whether to load it
// early. It is not if a later link could still lead elsewhere, because a wasted request
// counts against the host's rate limit; nor if the document is known, because earlier
// documents may decide whether the walk needs it.
func (e *early) named(head *Document) (url string, early bool) {
	kind := e.kind
	if e.feed.start == "" {
		if kind = KindArchived; head.Kind() != KindArchived || !head.isSubscription() || head.beginsElsewhere() {
			return "", false
		}
	}
	if e.feed.start != "" && head.ID != "" && e.feed.id != "" && head.ID != e.feed.id { // it may be of another feed
		return "", false
	}
	link, ok := head.Links.Rel(kind.Older())
	url = iri.Address(link.Href)
	return url, ok && link.distance() == 0 && !(kind == KindArchived && e.feed.start != "" && e.processed(head.URL)) && e.known(url) == (Known{}) && e.may(url)
}

// may reports whether a document may be requested before the walk needs it.
func (e *early) may(url string) bool {
	return !e.loops.HasSeen(url) && !e.foreign(url) && !e.ahead.Has(url) && !e.meter.spent(e.ahead.Len()-1) && !e.processed(url) &&
		(e.kind != KindPaged || e.past.Last == nil)
}

// mayGuess reports whether a document not named by a link yet may be requested. Pages need
// times, see watchPages. Where documents may be Processed, what an earlier one brings
// decides whether the walk needs a known one.
func (e *early) mayGuess(url string) bool {
	switch {
	case e.feed.start == "", e.c.NoGuess, e.c.Pace > 0, e.kind != KindArchived && e.kind != KindPaged, e.kind == KindPaged && e.feed.newest.IsZero(),
		(e.kind == KindPaged || e.past.Processed != nil) && e.known(url) != (Known{}):
		return false
	}
	return iri.AreSameOrigin(e.feed.start, url) && e.c.requester().IsPatient(url) && e.may(url)
}
