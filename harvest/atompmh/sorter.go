package atompmh

import (
	"bufio"
	"cmp"
	"compress/flate"
	"context"
	"encoding/gob"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// A version is the time and the kind of an entry of a record.
type version struct {
	at   time.Time
	kind ChangeKind
}

// supersedes reports whether a version takes precedence over one read before it, in the
// same or in a newer document: the later one does, and of equally late ones the
// deletion (atom-pmh consumer#4).
func (v version) supersedes(old version) bool {
	if v.at.Equal(old.at) {
		return v.kind == Deleted && old.kind != Deleted
	}
	return v.at.After(old.at)
}

// A heldEntry is an entry a reading has seen, or the deletion of a record absent from a
// complete feed. Its fields are exported for gob.
type heldEntry struct {
	ID       string
	At       time.Time // in UTC
	Kind     ChangeKind
	Number   int64     // its place in the order of reading
	Document time.Time // when its document was updated
	Digest   digest
	Text     string         // its XML; "" for an absent record
	Earlier  []earlierEntry // the earlier entries of its record
}

// An earlierEntry is an entry of an earlier state of a record.
type earlierEntry struct {
	At   time.Time
	Text string
}

func (v *heldEntry) version() version { return version{v.At, v.Kind} }

// seen returns the seenRecord of an entry of a record.
func (v *heldEntry) seen() seenRecord {
	s := seenRecord{Time: v.At, Deleted: v.Kind == Deleted}
	if v.Kind == Record {
		s.Digest = hex.EncodeToString(v.Digest[:])
	}
	return s
}

// size returns the approximate number of bytes the entry takes in memory.
func (v *heldEntry) size() int {
	n := 300 + len(v.ID) + len(v.Text)
	for _, e := range v.Earlier {
		n += 50 + len(e.Text)
	}
	return n
}

// byRecord orders entries by record, each record's as they were read.
func byRecord(a, b *heldEntry) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Number, b.Number))
}

// byTime orders changes by time, and by record. Of a record, those of kind Other come first.
func byTime(a, b *heldEntry) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Number, b.Number))
}

// sorterBytes is the usual size of the entries a sorter has in memory.
const sorterBytes = 16 << 20

// A sorter sorts any number of entries. Those it has no room for in memory are in a temporary
// file, as sorted runs. Close it after use.
type sorter struct {
	ctx     context.Context
	compare func(a, b *heldEntry) int
	most    int // maximum bytes in memory; zero means sorterBytes
	create  func() (*os.File, error)

	memory []*heldEntry
	bytes  int
	file   *os.File
	packed *flate.Writer
	runs   []int64 // where each run ends in the file
}

// add adds an entry.
func (s *sorter) add(v *heldEntry) error {
	s.memory, s.bytes = append(s.memory, v), s.bytes+v.size()
	if s.bytes <= cmp.Or(s.most, sorterBytes) {
		return nil
	}
	return s.spill()
}

// createTemp creates a temporary file without a name where the system can, so it vanishes with
// the process, however that ends.
func createTemp() (*os.File, error) {
	f, err := os.CreateTemp("", "feedhistory")
	if err == nil {
		_ = os.Remove(f.Name()) // where that fails, close removes it
	}
	return f, err
}

// spill writes the entries in memory to the file, as a run.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		if s.create == nil {
			s.create = createTemp
		}
		if s.file, err = s.create(); err != nil {
			return s.failure(err)
		}
	}
	slices.SortFunc(s.memory, s.compare)
	buffer := bufio.NewWriterSize(s.file, 64<<10)
	if s.packed == nil {
		s.packed, _ = flate.NewWriter(nil, flate.BestSpeed) // only a wrong level is an error
	}
	s.packed.Reset(buffer)
	text := gob.NewEncoder(s.packed)
	for _, v := range s.memory {
		if err := text.Encode(v); err != nil {
			return s.failure(err)
		}
	}
	if err := cmp.Or(s.packed.Close(), buffer.Flush()); err != nil {
		return s.failure(err)
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	s.runs = append(s.runs, end)
	clear(s.memory)
	s.memory, s.bytes = s.memory[:0], 0
	return s.failure(err)
}

// failure returns the error of an operation on the file: the context's, if it has ended.
func (s *sorter) failure(err error) error {
	if ended := s.ctx.Err(); ended != nil || err == nil {
		return ended
	}
	return fmt.Errorf("a temporary file (in the directory TMPDIR names): %w", err)
}

// sorted yields the entries in order. An error ends them.
func (s *sorter) sorted() iter.Seq2[*heldEntry, error] {
	return func(yield func(*heldEntry, error) bool) {
		runs, err := s.begin()
		for err == nil && len(runs) > 0 {
			first := runs[0]
			var next *heldEntry
			if next, err = first.next(); err == nil { // the run has a later place now
				at, _ := slices.BinarySearchFunc(runs[1:], next, func(r run, v *heldEntry) int { return s.compare(r.entry, v) })
				copy(runs[:at], runs[1:])
				runs[at] = run{next, first.next}
			} else if err == io.EOF {
				runs, err = runs[1:], nil
			}
			if err = s.failure(err); err == nil && !yield(first.entry, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// A run is a sorted sequence of entries, of which the first is read.
type run struct {
	entry *heldEntry
	next  func() (*heldEntry, error) // io.EOF at the end
}

// begin returns the runs in the order of their first entries.
func (s *sorter) begin() (runs []run, err error) {
	if len(s.runs) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.memory, s.compare)
	rest := s.memory
	nexts := []func() (*heldEntry, error){func() (v *heldEntry, err error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		v, rest = rest[0], rest[1:]
		return v, nil
	}}
	from := int64(0)
	for _, end := range s.runs {
		packed := bufio.NewReader(io.NewSectionReader(s.file, from, end-from))
		text := gob.NewDecoder(flate.NewReader(packed))
		nexts = append(nexts, func() (*heldEntry, error) {
			v := new(heldEntry)
			return v, text.Decode(v)
		})
		from = end
	}
	for _, next := range nexts {
		if first, err := next(); err == nil {
			runs = append(runs, run{first, next})
		} else if err != io.EOF {
			return nil, s.failure(err)
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return s.compare(a.entry, b.entry) })
	return runs, nil
}

// close removes the file.
func (s *sorter) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
