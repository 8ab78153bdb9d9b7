package feedhistory

import (
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Publishers name their archives so one can tell the next: archive-41, archive-40;
// ?start=20, ?start=30; /2019/05/, /2019/04/. Requesting these before a link names them
// saves a chain from taking a round trip per document. Only links count: a document
// without a link is discarded.

// mostWasted is the number of guessed requests of a walk that may turn out to be wrong.
const mostWasted = 4

// A guesser expects the URLs of a chain's documents from those before.
type guesser struct {
	last   string   // the last URL named by a link
	step   iri.Step // from the URL before it to the last
	fits   int      // how many steps in a row were the same
	needed int      // how many must be; zero means 1 or 2, see learn
	wasted int      // the number of requests in vain
	over   bool     // no more guesses
}

// learn takes note of the next URL named by a link.
func (g *guesser) learn(url string) {
	if url == g.last {
		return
	}
	s, ok := iri.StepBetween(g.last, url)
	switch g.last = url; {
	case !ok:
		g.step, g.fits = iri.Step{}, 0
	case s == g.step:
		g.fits++
	default:
		g.step, g.fits = s, 1
	}
}

// miss takes note of wasted requests: links named other URLs. Months may have holes.
func (g *guesser) miss(requests int) {
	if requests == 0 {
		return
	}
	g.wasted += requests
	g.over = g.over || !g.step.Month || g.wasted >= mostWasted
	g.fits, g.needed = 0, 2
}

// after returns the URL expected after another one of the chain.
func (g *guesser) after(url string) (string, bool) {
	needed := max(g.needed, 1)
	if g.step.By != 1 && g.step.By != -1 { // as two random numbers have some distance
		needed = 2
	}
	if g.over || g.fits < needed {
		return "", false
	}
	return g.step.From(url)
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
	return !w.seen(url) && !w.foreign(url) && !w.ahead.on(url) && !w.spent(len(w.ahead.flights)-1) && !w.processed(url) &&
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
// first of them is then on two pages, so the pages after these are requested anew.
func (w *walk) watchPages(l *fetchResult) {
	if w.kind != Paged {
		return
	}
	isNewer := func(e *Entry) bool { return e.Time().After(w.newest) } // more posts have come than had been read
	if l.doc == nil || w.sharesFacts(l.doc) || slices.ContainsFunc(l.doc.Entries, isNewer) {
		w.ahead.distrust()
		return
	}
	last, _ := l.doc.Links.Rel(RelLast)
	w.ahead.end = iri.WithoutFragment(last.Href)
}
