package mirror

import (
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// checkChain follows the chain of archives through the stored documents, from the
// subscription document to the end. If it gets there, nothing the feed still has is
// missing: checkChain then removes gaps in older chains, and vanished pending
// documents. A chain back into itself, which a single walk may not notice, is a gap.
func (p *poll) checkChain() error {
	f := p.feed
	chain, err := p.documents.steps()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var current []step
	from, lost := f.Known.URL, f.Known.Lost
	for url := f.Known.Older; url != ""; {
		d, ok := chain[url]
		switch {
		case !ok:
			return nil // it is pending
		case seen[d.url]:
			f.addGap(GapRecord{
				URL: url, From: from, Reason: feedhistory.ReasonLoop, Found: p.now,
				Message: "the chain of archives leads back to this document",
			})
			return nil
		}
		seen[d.url], current = true, append(current, d)
		from, url, lost = d.url, d.older, d.lost
	}
	if lost { // there is something older, and a gap says so
		return nil
	}
	p.chain.changed = false
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g GapRecord) bool {
		if f.isCut(g, p.request.url) {
			return false
		}
		if isWithin(g.gap()) && (g.URL == f.Known.URL || seen[chain[g.URL].url]) {
			return false
		}
		if isMissedWindow(g) {
			joined, _ := joins(g, current)
			return joined
		}
		if g.Reason == feedhistory.ReasonDetached && isWithin(g.gap()) && !seen[chain[g.URL].url] {
			return false // the chain does not lead to the document of the subscription
		}
		if g.Reason == feedhistory.ReasonLoop && g.From == f.URL && f.URL != f.Known.URL {
			return false // the document at the feed's URL is not in the chain, but belongs to the feed
		}
		return !g.Quota && (g.Poll < f.Polls || g.From != "" && g.From != f.Known.URL && !seen[g.From])
	})
	f.Pending = slices.DeleteFunc(f.Pending, isLeftover)
	return nil
}

// isLeftover reports whether a pending document is a remainder of an earlier
// chain: the last try has found none there, but the feed itself, a loop or
// another document.
func isLeftover(p PendingDocument) bool {
	switch p.Reason {
	case feedhistory.ReasonLoop, feedhistory.ReasonNotFeed, feedhistory.ReasonForeign:
		return p.Tries > 0
	}
	return p.Missing
}

// A step is a document in the chain.
type step struct {
	url, older string
	further    []string  // where it goes on beyond the chain
	lost       bool      // whether its link cannot be used
	first      int64     // the number of the first poll to read it
	read       time.Time // when it was last read
}

// chain returns the documents by all of their names, including those of the next
// commit.
func (ds *documents) steps() (map[string]step, error) {
	steps := map[string]step{}
	add := func(d *DocumentRecord) {
		for _, name := range d.Names {
			if _, ok := steps[name]; !ok || name == d.URL {
				steps[name] = step{d.URL, d.Known.Older, d.Further, d.Known.Lost, d.First, d.Read}
			}
		}
	}
	if ds.commits.waiting != nil {
		for _, d := range slices.Backward(ds.commits.waiting.change.Documents) {
			add(d)
		}
	}
	for d, err := range ds.store.Documents(ds.ctx, ds.feed.URL) {
		if err != nil {
			return nil, err
		}
		if steps[d.URL].url != d.URL {
			add(d)
		}
	}
	return steps, nil
}
