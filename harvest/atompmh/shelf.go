package atompmh

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Shelf holds the entries of a harvest until all its documents have been read. A Harvest
// uses it in one goroutine; do not share it with another harvest meanwhile. An error ends
// the harvest, which yields it as it is.
type Shelf interface {
	// Clear removes everything. A harvest begins with it, and leaves its own entries on the
	// shelf when it ends.
	Clear() error

	// Put adds a Held. It replaces the one with the same Key.
	Put(Held) error

	// Get returns the Held with a Key, and whether there is one.
	Get(key string) (Held, bool, error)

	// All yields each Held, in the order of Time, then of Key as bytes. Get and Block may be
	// called meanwhile.
	All() iter.Seq2[Held, error]

	// PutBlock adds a block of compressed texts, of some 10 KB. The numbers begin at zero and
	// ascend.
	PutBlock(number int, data []byte) error

	// Block returns a block; an error if there is none.
	Block(number int) ([]byte, error)
}

// A Held is an entry on a Shelf. Its text is in a block, with others.
type Held struct {
	Key  string    // a unique key, which may have any bytes
	Time time.Time // the entry's time, in UTC, with nanoseconds; it may be zero
	Data []byte    // some 30 bytes, which mean nothing to the Shelf; it may keep them
}

// A memoryShelf is a Shelf in memory.
type memoryShelf struct {
	held   map[string]*Held
	blocks [][]byte
}

func (s *memoryShelf) Clear() error {
	*s = memoryShelf{held: map[string]*Held{}}
	return nil
}

func (s *memoryShelf) Put(h Held) error {
	s.held[h.Key] = &h
	return nil
}

func (s *memoryShelf) Get(key string) (Held, bool, error) {
	if h, ok := s.held[key]; ok {
		return *h, true, nil
	}
	return Held{}, false, nil
}

func (s *memoryShelf) All() iter.Seq2[Held, error] {
	return func(yield func(Held, error) bool) {
		all := slices.AppendSeq(make([]*Held, 0, len(s.held)), maps.Values(s.held))
		slices.SortFunc(all, func(a, b *Held) int {
			return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Key, b.Key))
		})
		for _, h := range all {
			if !yield(*h, nil) {
				return
			}
		}
	}
}

func (s *memoryShelf) PutBlock(_ int, data []byte) error {
	s.blocks = append(s.blocks, data)
	return nil
}

func (s *memoryShelf) Block(number int) ([]byte, error) {
	if number < 0 || number >= len(s.blocks) {
		return nil, errDamagedShelf
	}
	return s.blocks[number], nil
}

// errDamagedShelf reports a Shelf that returns something else than was put there.
var errDamagedShelf = errors.New("atompmh: the Shelf does not return what was put there")
