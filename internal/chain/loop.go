package chain

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// A LoopDetector records the documents a walk has read, to notice when a chain leads
// back into itself (5005#28). A walk may follow several chains. It holds digests with a
// random seed: their size does not depend on the documents'.
type LoopDetector struct {
	seed  maphash.Seed
	chain int            // the number of the current chain
	urls  map[uint64]int // the URLs requested or redirected to, each with its chain

	selves map[uint64]bool // the self links of the current chain's documents, as far as urls lacks them

	bodies map[uint64]int // the documents, each with its last chain

	limits factLimits // of each set of facts
	facts  []*factSet // the IDs and times of entries and tombstones, by chain

	// shown has the facts of the chain's first document that no later one has had.
	shown map[uint64]bool
}

// A Document is a document of a chain.
type Document struct {
	Asked string // the URL requested
	URL   string // where it was found, after redirects
	Self  string // the URL it gives itself; "" if none
	Text  string // its bytes
	Facts iter.Seq[Fact]
}

// A Fact is an entry, or the deletion of one, at a time.
type Fact struct {
	ID      string
	Time    int64
	Deleted bool
}

// NewLoopDetector returns a LoopDetector for one walk. Call Begin before its first chain.
func NewLoopDetector() *LoopDetector {
	return &LoopDetector{
		seed: maphash.MakeSeed(), urls: map[uint64]int{}, selves: map[uint64]bool{},
		bodies: map[uint64]int{}, limits: usualFacts(), facts: []*factSet{newFactSet(usualFacts())},
	}
}

func (d *LoopDetector) key(text string) uint64 { return maphash.String(d.seed, text) }

// keys yields a digest of each fact.
func (d *LoopDetector) keys(facts iter.Seq[Fact]) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for f := range facts {
			if !yield(maphash.Comparable(d.seed, f)) {
				return
			}
		}
	}
}

// Begin begins a chain. It may have documents of another chain under other URLs,
// but none of its own twice.
func (d *LoopDetector) Begin() {
	d.chain++
	d.shown = nil
	d.facts = append(d.facts, newFactSet(d.limits))
	clear(d.selves)
}

// See remembers a URL as requested, or redirected to.
func (d *LoopDetector) See(url string) {
	if key := d.key(url); d.urls[key] == 0 {
		d.urls[key] = d.chain
	}
}

// Forget forgets a URL without a document.
func (d *LoopDetector) Forget(url string) { delete(d.urls, d.key(url)) }

// HasSeen reports whether a URL was requested, or redirected to.
func (d *LoopDetector) HasSeen(url string) bool { return d.urls[d.key(url)] > 0 }

// HasRead reports whether a document with these bytes has been read.
func (d *LoopDetector) HasRead(text string) bool { return d.bodies[d.key(text)] > 0 }

// Joins reports whether a URL was requested, or redirected to, in an earlier chain:
// the two chains meet there, which is no loop.
func (d *LoopDetector) Joins(url string) bool {
	chain := d.urls[d.key(url)]
	return 0 < chain && chain < d.chain
}

// Repeats describes how a document equals one read before; "" if it is a new one.
func (d *LoopDetector) Repeats(doc Document) string {
	if doc.URL != doc.Asked && d.HasSeen(doc.URL) {
		return "it redirects to " + doc.URL + ", which has already been read"
	}
	if d.bodies[d.key(doc.Text)] == d.chain {
		return "its content is the same as that of an earlier document"
	}
	known := iri.AreSameOrigin(doc.Self, doc.URL) && doc.Self != doc.Asked && doc.Self != doc.URL &&
		(d.HasSeen(doc.Self) || d.selves[d.key(doc.Self)])
	if known && hasEntries(doc.Facts) && d.count(doc.Facts, false) == 0 {
		return "its self link is " + doc.Self + ", which has already been read, and it brings nothing new"
	}
	return ""
}

// Record remembers a document of the walk, and reports whether it brings anything
// new. The document belongs to the current chain, even if it was read for an
// earlier one.
func (d *LoopDetector) Record(doc Document) (fresh bool) {
	for _, url := range []string{doc.Asked, doc.URL} {
		d.urls[d.key(url)] = d.chain
	}
	d.bodies[d.key(doc.Text)] = d.chain
	if doc.Self != doc.Asked && doc.Self != doc.URL {
		d.selves[d.key(doc.Self)] = true
	}
	return d.count(doc.Facts, true) > 0
}

// RepeatsFirst reports whether a document repeats facts which the first document of
// its chain shows, and none before had.
func (d *LoopDetector) RepeatsFirst(facts iter.Seq[Fact]) bool {
	before, isFirst := len(d.shown), d.shown == nil
	if isFirst {
		d.shown = map[uint64]bool{}
	}
	for key := range d.keys(facts) {
		if isFirst {
			d.shown[key] = true
		} else {
			delete(d.shown, key)
		}
	}
	return len(d.shown) < before
}

// count counts the facts new to the chain, and remembers them if told to.
func (d *LoopDetector) count(facts iter.Seq[Fact], remember bool) (fresh int) {
	known, sum := d.facts[d.chain], uint64(0)
	for key := range d.keys(facts) {
		if sum += key; known.has(key) {
			continue
		}
		if fresh++; remember {
			known.add(key)
		}
	}
	if known.hasDocument(sum) {
		return 0
	}
	if remember {
		known.documents[sum] = struct{}{}
	}
	return fresh
}

// Shares reports whether one of the facts is in the current chain.
func (d *LoopDetector) Shares(facts iter.Seq[Fact]) bool {
	for key := range d.keys(facts) {
		if d.facts[d.chain].has(key) {
			return true
		}
	}
	return false
}

// IsNew reports whether one of the facts is in no chain.
func (d *LoopDetector) IsNew(facts iter.Seq[Fact]) (isNew bool) {
	var sum uint64
	for key := range d.keys(facts) {
		sum += key
		isNew = isNew || !slices.ContainsFunc(d.facts, func(chain *factSet) bool { return chain.has(key) })
	}
	return isNew && !slices.ContainsFunc(d.facts, func(chain *factSet) bool { return chain.hasDocument(sum) })
}

func hasEntries(facts iter.Seq[Fact]) bool {
	for f := range facts {
		if !f.Deleted {
			return true
		}
	}
	return false
}

// EqualFacts reports whether two documents have the same facts.
func EqualFacts(a, b iter.Seq[Fact]) bool {
	set := func(facts iter.Seq[Fact]) map[Fact]bool {
		all := map[Fact]bool{}
		for f := range facts {
			all[f] = true
		}
		return all
	}
	return maps.Equal(set(a), set(b))
}

// A Set is a set of texts, of which it holds digests only. Make one with NewSet.
type Set struct {
	seed maphash.Seed
	keys map[uint64]bool
}

// NewSet returns an empty set with room for some texts.
func NewSet(room int) *Set { return &Set{maphash.MakeSeed(), make(map[uint64]bool, room)} }

// Add adds a text.
func (s *Set) Add(text string) { s.keys[maphash.String(s.seed, text)] = true }

// Has reports whether the set has a text.
func (s *Set) Has(text string) bool { return s.keys[maphash.String(s.seed, text)] }
