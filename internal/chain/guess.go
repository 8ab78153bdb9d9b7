package chain

import "github.com/feedhistory/feedhistory/internal/iri"

// Publishers name their archives so one can tell the next: archive-41, archive-40;
// ?start=20, ?start=30; /2019/05/, /2019/04/. Requesting these before a link names them
// saves a chain from taking a round trip per document. Only links count: a document
// without a link is discarded.

// MostWasted is the number of guessed requests of a walk that may turn out to be wrong.
const MostWasted = 4

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
	g.over = g.over || !g.step.Month || g.wasted >= MostWasted
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
