package feedhistory

import "hash/maphash"

// A visited is what a walk remembers of the documents it has read, so that it
// notices when a chain leads back into itself (5005#28). What it costs does not
// grow with the documents' size.
type visited struct {
	seen   map[string]bool     // URLs requested, and those they redirected to
	selves map[string]bool     // what documents call themselves
	bodies map[uint64]bool     // digests of whole documents
	met    map[uint64]struct{} // digests of (ID, update time) of entries
	seed   maphash.Seed
}

func newVisited() visited {
	return visited{
		seen: map[string]bool{}, selves: map[string]bool{},
		bodies: map[uint64]bool{}, met: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}
}

// repeats says why a document is one that has been read before, if it is.
func (v *visited) repeats(l *loaded) string {
	if l.doc == nil {
		return ""
	}
	if final := l.doc.URL; final != l.url && v.seen[final] {
		return "it redirects to " + final + ", which has been read already"
	}
	if v.bodies[maphash.String(v.seed, l.text)] {
		return "its content is that of a document read already"
	}
	self, ok := l.doc.Links.Rel(RelSelf)
	if ok && sameOrigin(self.Href, l.doc.URL) && (v.seen[self.Href] || v.selves[self.Href]) &&
		self.Href != l.url && self.Href != l.doc.URL && !v.brings(l.doc) {
		return "it calls itself " + self.Href + ", which has been read already, and brings nothing new"
	}
	return ""
}

// record remembers a document that is part of the walk, and reports whether it
// brings anything new.
func (v *visited) record(l *loaded) (fresh bool) {
	fresh = v.brings(l.doc)
	v.seen[l.url], v.seen[l.doc.URL] = true, true
	v.bodies[maphash.String(v.seed, l.text)] = true
	if self, ok := l.doc.Links.Rel(RelSelf); ok {
		v.selves[self.Href] = true
	}
	for _, e := range l.doc.Entries {
		v.met[v.key(e)] = struct{}{}
	}
	return fresh
}

// again forgets what documents look like, but not where they were.
func (v *visited) again() {
	clear(v.bodies)
	clear(v.selves)
}

// brings reports whether a document has an entry that is new, or newer.
func (v *visited) brings(doc *Document) bool {
	for _, e := range doc.Entries {
		if _, ok := v.met[v.key(e)]; !ok {
			return true
		}
	}
	return len(doc.Deleted) > 0
}

func (v *visited) key(e *Entry) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	maphash.WriteComparable(&h, e.Updated.UnixNano())
	_, _ = h.WriteString(e.ID)
	return h.Sum64()
}
