package chain

import "slices"

// A digestSet is a set of digests. Beyond the first few thousand, they take eight bytes
// each. The zero value is empty.
type digestSet struct {
	size   int
	recent map[uint64]struct{}
	runs   [][]uint64 // the others, sorted; each run is at least twice as long as the next
}

// digestRun is the number of digests in the shortest run.
const digestRun = 4096

// has reports whether a digest is in the set.
func (s *digestSet) has(key uint64) bool {
	if _, ok := s.recent[key]; ok {
		return true
	}
	for _, run := range s.runs {
		if _, ok := slices.BinarySearch(run, key); ok {
			return true
		}
	}
	return false
}

// add adds a digest that is not in the set.
func (s *digestSet) add(key uint64) {
	if s.recent == nil {
		s.recent = map[uint64]struct{}{}
	}
	s.recent[key] = struct{}{}
	if s.size++; len(s.recent) < digestRun {
		return
	}
	run := make([]uint64, 0, len(s.recent))
	for key := range s.recent {
		run = append(run, key)
	}
	slices.Sort(run)
	clear(s.recent)
	for last := len(s.runs) - 1; last >= 0 && len(s.runs[last]) < 2*len(run); last-- {
		run, s.runs = merged(s.runs[last], run), s.runs[:last]
	}
	s.runs = append(s.runs, run)
}

// merged merges two sorted runs.
func merged(a, b []uint64) []uint64 {
	run := make([]uint64, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] > b[0] {
			a, b = b, a
		}
		run, a = append(run, a[0]), a[1:]
	}
	return append(append(run, a...), b...)
}
