package chain

// MostBarren is the number of documents in a row without anything new that ends a walk.
const MostBarren = 20

// A factSet is the set of a chain's facts, as digests. A chain may have more facts than
// memory has room for, so the set forgets those in the middle: it holds the first ones,
// and at least as many of the latest. It also holds a digest of each document, so a
// document with forgotten facts is still known if they are all those of another one. Otherwise
// a forgotten fact counts as new, and the walk says less than it could, never more.
type factSet struct {
	limits            factLimits
	first, old, young digestSet
	documents         map[uint64]struct{}
}

// factLimits are the number of the first facts, and of the latest.
type factLimits struct{ first, latest int }

// usualFacts are the limits for walks: all of 500,000 facts are held, and they take 5 MB.
func usualFacts() factLimits { return factLimits{first: 1 << 19, latest: 1 << 16} }

func newFactSet(limits factLimits) *factSet {
	return &factSet{limits: limits, documents: map[uint64]struct{}{}}
}

// has reports whether a fact is in the set.
func (s *factSet) has(key uint64) bool {
	return s.first.has(key) || s.young.has(key) || s.old.has(key)
}

// add adds a fact that is not in the set.
func (s *factSet) add(key uint64) {
	switch {
	case s.first.size < s.limits.first:
		s.first.add(key)
		return
	case s.young.size == s.limits.latest:
		s.old, s.young = s.young, digestSet{}
	}
	s.young.add(key)
}

// hasDocument reports whether the set has a document whose facts have the given sum of digests:
// the order of facts does not count.
func (s *factSet) hasDocument(sum uint64) bool {
	_, ok := s.documents[sum]
	return ok
}
