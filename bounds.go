package feedhistory

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A visited is what a walk remembers of the documents it has read, so that it
// notices when a chain leads back into itself (5005#28). These are digests, of
// a seed that nobody can know: what they cost does not grow with the documents.
type visited struct {
	seed  maphash.Seed
	chain int            // the one that is followed now; there may be several to follow
	urls  map[uint64]int // requested, or redirected to, and in which chain

	// Of this chain:
	selves set // what documents call themselves
	bodies set // whole documents
	facts  set // an entry's ID and update time, or a tombstone's
}

type set map[uint64]struct{}

func newVisited() visited {
	return visited{seed: maphash.MakeSeed(), urls: map[uint64]int{}, selves: set{}, bodies: set{}, facts: set{}}
}

func (v *visited) add(s set, text string) { s[maphash.String(v.seed, text)] = struct{}{} }

func (v *visited) has(s set, text string) bool {
	_, ok := s[maphash.String(v.seed, text)]
	return ok
}

// see remembers that a URL was requested, or redirected to.
func (v *visited) see(url string) {
	if key := maphash.String(v.seed, url); v.urls[key] == 0 {
		v.urls[key] = v.chain
	}
}

// forget forgets a URL at which there was no document.
func (v *visited) forget(url string) { delete(v.urls, maphash.String(v.seed, url)) }

// seen reports whether it was.
func (v *visited) seen(url string) bool { return v.urls[maphash.String(v.seed, url)] > 0 }

// joins reports whether it was in an earlier chain: that is no loop, but where
// the two come together.
func (v *visited) joins(url string) bool {
	chain := v.urls[maphash.String(v.seed, url)]
	return 0 < chain && chain < v.chain
}

// begin begins a chain. It may have documents that another has, under other
// URLs, but not the same twice.
func (v *visited) begin() {
	v.chain++
	clear(v.selves)
	clear(v.bodies)
	clear(v.facts)
}

// repeats says why a document is one that has been read before, if it is.
func (v *visited) repeats(l *loaded) string {
	if l.doc == nil {
		return ""
	}
	if final := l.doc.URL; final != l.url && v.seen(final) {
		return "it redirects to " + final + ", which has been read already"
	}
	if v.has(v.bodies, l.text) {
		return "its content is that of a document read already"
	}
	self, ok := l.doc.Links.Rel(RelSelf)
	known := ok && fetch.AreSameOrigin(self.Href, l.doc.URL) && self.Href != l.url && self.Href != l.doc.URL &&
		(v.seen(self.Href) || v.has(v.selves, self.Href))
	if known && len(l.doc.Entries) > 0 && v.digest(l.doc, false) == 0 {
		return "it calls itself " + self.Href + ", which has been read already, and brings nothing new"
	}
	return ""
}

// record remembers a document that is part of the walk, and reports whether it
// brings anything new. It is part of this chain, even if it was held since an
// earlier one.
func (v *visited) record(l *loaded) (fresh bool) {
	for _, url := range []string{l.url, l.doc.URL} {
		v.urls[maphash.String(v.seed, url)] = v.chain
	}
	v.add(v.bodies, l.text)
	if self, ok := l.doc.Links.Rel(RelSelf); ok {
		v.add(v.selves, self.Href)
	}
	return v.digest(l.doc, true) > 0
}

// digest counts the entries and tombstones of a document that are new, or
// newer, and remembers them if it is to.
func (v *visited) digest(doc *Document, remember bool) (fresh int) {
	note := func(id string, at time.Time, deleted bool) {
		key := maphash.Comparable(v.seed, fact{id, at.UnixNano(), deleted})
		if _, ok := v.facts[key]; !ok {
			fresh++
		}
		if remember {
			v.facts[key] = struct{}{}
		}
	}
	for _, e := range doc.Entries {
		note(e.ID, e.Updated, false)
	}
	for _, t := range doc.Deleted {
		note(t.Ref, t.When, true)
	}
	return fresh
}

type fact struct {
	id      string
	at      int64
	deleted bool
}

// What the caller of a walk has stored, perhaps while the walk goes on.

// processed reports whether the caller had processed a document before this walk:
// of one that the walk has read, or that one it has read calls itself, the answer
// means nothing any more.
func (w *walk) processed(url string) bool {
	url = iri.WithoutFragment(url)
	return w.opt.Processed != nil && !w.seen(url) && !w.has(w.claimed, url) && w.opt.Processed(url)
}

// wasProcessed reports whether an archive that is to be yielded has been
// processed, perhaps under another name than that of the link to it.
func (w *walk) wasProcessed(l *loaded) bool {
	if w.opt.Processed == nil || l.doc == nil {
		return false
	}
	processed := w.opt.Processed(l.url) || w.knows(l.doc)
	if self, ok := l.doc.Links.Rel(RelSelf); ok && !w.opt.Processed(iri.WithoutFragment(self.Href)) {
		w.add(w.claimed, iri.WithoutFragment(self.Href))
	}
	return processed && l.url != w.start
}

// knows reports whether a document has been processed by one of its names: where
// it was found, or its self.
func (w *walk) knows(doc *Document) bool {
	self, ok := doc.Links.Rel(RelSelf)
	return w.processed(doc.URL) || ok && fetch.AreSameOrigin(self.Href, doc.URL) && w.processed(self.Href)
}

// A Budget bounds what one walk may cost (5005#28).
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request; zero means 10,000.
	Bytes     int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.
	Barren    int   // Barren is the maximum number of documents in a row that bring nothing new; zero means 20.
	Empty     int   // Empty is the maximum number of archive documents in a row without any entry, which Barren does not count; zero means 1,000.

	// More, if not nil, is called when one of these is spent, with what the walk
	// has used so far. It may return a larger budget; otherwise the chain ends in
	// a gap.
	More func(used Budget) Budget
}

func (b Budget) withDefaults() Budget {
	if b.Documents == 0 {
		b.Documents = 10_000
	}
	if b.Bytes == 0 {
		b.Bytes = 1 << 30
	}
	if b.Barren == 0 {
		b.Barren = 20
	}
	if b.Empty == 0 {
		b.Empty = 1000
	}
	return b
}

// affordable reports whether the budget allows for one more document.
func (w *walk) affordable() bool {
	if w.spent(0) && w.budget.More != nil {
		more := w.budget.More
		w.budget = more(w.used).withDefaults()
		w.budget.More = more
	}
	return !w.spent(0)
}

// spent reports whether the budget is, once the given number of documents more
// will have been read.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents || w.used.Bytes >= w.budget.Bytes || w.barren()
}

// barren reports whether too many documents in a row have brought nothing new.
func (w *walk) barren() bool {
	return w.used.Barren >= w.budget.Barren || w.used.Empty >= w.budget.Empty
}

// count counts a document that is part of the walk. An archive without any entry
// may be that of a day on which nothing happened; one whose entries are all known
// is what a server sends that does not see what it is asked for.
func (w *walk) count(l *loaded, fresh bool) {
	switch {
	case fresh:
		w.used.Barren, w.used.Empty = 0, 0
	case w.kind == Archived && l.err == nil && len(l.doc.Entries)+len(l.doc.Deleted) == 0:
		w.used.Empty++
	default:
		w.used.Barren++
	}
}

// forbids says why a document is not requested, if it is not.
func (w *walk) forbids(url string) *Gap {
	switch {
	case w.seen(url):
		return &Gap{URL: url, Reason: ReasonLoop, Err: errors.New("this document has been read already")}
	case w.foreign(url):
		return &Gap{URL: url, Reason: ReasonRefused, Err: errors.New("another origin than the feed's")}
	case w.affordable():
		return nil
	case w.barren():
		return &Gap{URL: url, Reason: ReasonBarren,
			Err: fmt.Errorf("%d documents in a row brought nothing new, %d had no entry", w.used.Barren+w.used.Empty, w.used.Empty)}
	}
	return &Gap{URL: url, Reason: ReasonBudget,
		Err: fmt.Errorf("spent: documents %d of %d, bytes %d of %d",
			w.used.Documents, w.budget.Documents, w.used.Bytes, w.budget.Bytes)}
}

func (w *walk) foreign(url string) bool {
	return w.c.Policy.SameOrigin &&
		!slices.ContainsFunc(w.origins, func(own string) bool { return fetch.AreSameOrigin(own, url) })
}

// strayed says that a document was redirected to a forbidden origin.
func (w *walk) strayed(l *loaded, from string) *Gap {
	if !w.foreign(l.finalURL()) {
		return nil
	}
	return &Gap{URL: l.url, From: from, Reason: ReasonRefused,
		Err: errors.New("it redirects to another origin than the feed's")}
}
