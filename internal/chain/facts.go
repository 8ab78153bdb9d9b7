package chain

import (
	"hash/maphash"
	"iter"
)

// A factSet is the set of a chain's facts, as digests. A chain may have more facts than
// memory has room for, so the set forgets those in the middle: it holds the first
// mostFacts, and at least as many of the latest. It also holds a digest of each document,
// so a document that repeats forgotten facts is still known if it repeats all of another
// document's.
type factSet struct {
	first, old, young map[uint64]struct{}
	documents         map[uint64]struct{}
}

const mostFacts = 1 << 16

func newFactSet() *factSet {
	return &factSet{first: map[uint64]struct{}{}, documents: map[uint64]struct{}{}}
}

// has reports whether a fact is in the set.
func (s *factSet) has(key uint64) bool {
	for _, part := range []map[uint64]struct{}{s.first, s.young, s.old} {
		if _, ok := part[key]; ok {
			return true
		}
	}
	return false
}

// add adds a fact that is not in the set.
func (s *factSet) add(key uint64) {
	if len(s.first) < mostFacts {
		s.first[key] = struct{}{}
		return
	}
	if s.young == nil || len(s.young) == mostFacts {
		s.old, s.young = s.young, s.old
		if clear(s.young); s.young == nil {
			s.young = map[uint64]struct{}{}
		}
	}
	s.young[key] = struct{}{}
}

// hasDocument reports whether the facts are all those of a document in the set.
func (s *factSet) hasDocument(sum uint64) bool {
	_, ok := s.documents[sum]
	return ok
}

// digests yields digests of facts. After the last one, sum is the digest of all, in any
// order.
func digests(seed maphash.Seed, facts iter.Seq[Fact], sum *uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for f := range facts {
			key := maphash.Comparable(seed, f)
			if *sum += key; !yield(key) {
				return
			}
		}
	}
}
