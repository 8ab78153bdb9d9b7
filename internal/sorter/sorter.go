// Package sorter sorts more values than memory has room for.
package sorter

import (
	"bufio"
	"cmp"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
)

// usual is the size of the values in memory if Sorter.Most is zero.
const usual = 16 << 20

// A Sorter sorts any number of values. Those it has no room for in memory
// are in a temporary file, as sorted runs. Close it after use.
type Sorter[T any] struct {
	Context context.Context
	Compare func(a, b *T) int
	Size    func(v *T) int           // the approximate number of bytes a value takes in memory
	Most    int                      // the maximum of these in memory; zero means 16 MiB
	Create  func() (*os.File, error) // creates the file; nil means CreateTemp
	Plain   bool                     // do not compress the file

	// Append appends a value to b, and Read reads it from all of text; text may be kept. Nil means gob's
	// form, which takes longer.
	Append func(b []byte, v *T) []byte
	Read   func(text string) (*T, error)

	memory []*T
	bytes  int
	file   *os.File
	packed *flate.Writer
	runs   []int64 // where each run ends in the file
	buffer []byte  // of the value being written or read
}

// Add adds a value.
func (s *Sorter[T]) Add(v *T) error {
	s.memory, s.bytes = append(s.memory, v), s.bytes+s.Size(v)
	if s.bytes <= cmp.Or(s.Most, usual) {
		return nil
	}
	return s.spill()
}

// CreateTemp creates a temporary file without a name where the system can, so it vanishes with
// the process, however that ends.
func CreateTemp() (*os.File, error) {
	f, err := os.CreateTemp("", "feedhistory")
	if err == nil {
		_ = os.Remove(f.Name()) // where that fails, Close removes it
	}
	return f, err
}

// spill writes the values in memory to the file, as a run.
func (s *Sorter[T]) spill() (err error) {
	if s.file == nil {
		if s.Create == nil {
			s.Create = CreateTemp
		}
		if s.file, err = s.Create(); err != nil {
			return s.failure(err)
		}
	}
	slices.SortFunc(s.memory, s.Compare)
	buffer := bufio.NewWriterSize(s.file, 64<<10)
	to, end := io.Writer(buffer), func() error { return nil }
	if !s.Plain {
		if s.packed == nil {
			s.packed, _ = flate.NewWriter(nil, flate.BestSpeed) // only a wrong level is an error
		}
		s.packed.Reset(buffer)
		to, end = s.packed, s.packed.Close
	}
	encode := s.encoder(to)
	for _, v := range s.memory {
		if err := encode(v); err != nil {
			return s.failure(err)
		}
	}
	if err := cmp.Or(end(), buffer.Flush()); err != nil {
		return s.failure(err)
	}
	at, err := s.file.Seek(0, io.SeekCurrent)
	s.runs = append(s.runs, at)
	clear(s.memory)
	s.memory, s.bytes = s.memory[:0], 0
	return s.failure(err)
}

// encoder returns a function to write a value.
func (s *Sorter[T]) encoder(to io.Writer) func(*T) error {
	if s.Append == nil {
		text := gob.NewEncoder(to)
		return func(v *T) error { return text.Encode(v) }
	}
	var size [binary.MaxVarintLen64]byte
	return func(v *T) error {
		s.buffer = s.Append(s.buffer[:0], v)
		if _, err := to.Write(binary.AppendUvarint(size[:0], uint64(len(s.buffer)))); err != nil {
			return err
		}
		_, err := to.Write(s.buffer)
		return err
	}
}

// decoder returns a function to read the next value; io.EOF at the end.
func (s *Sorter[T]) decoder(from *bufio.Reader) func() (*T, error) {
	if s.Read == nil {
		text := gob.NewDecoder(from)
		return func() (*T, error) {
			v := new(T)
			return v, text.Decode(v)
		}
	}
	return func() (*T, error) {
		size, err := binary.ReadUvarint(from)
		if err != nil {
			return nil, err
		}
		s.buffer = slices.Grow(s.buffer[:0], int(size))[:size]
		if _, err := io.ReadFull(from, s.buffer); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return s.Read(string(s.buffer))
	}
}

// failure returns the error of an operation on the file: the context's, if it has ended.
func (s *Sorter[T]) failure(err error) error {
	if ended := s.Context.Err(); ended != nil || err == nil {
		return ended
	}
	return fmt.Errorf("a temporary file (in the directory TMPDIR names): %w", err)
}

// Sorted yields the values in order. An error ends them.
func (s *Sorter[T]) Sorted() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		runs, err := s.begin()
		for err == nil && len(runs) > 0 {
			first := runs[0]
			var next *T
			if next, err = first.next(); err == nil { // the run has a later place now
				at, _ := slices.BinarySearchFunc(runs[1:], next, func(r run[T], v *T) int { return s.Compare(r.value, v) })
				copy(runs[:at], runs[1:])
				runs[at] = run[T]{next, first.next}
			} else if err == io.EOF {
				runs, err = runs[1:], nil
			}
			if err = s.failure(err); err == nil && !yield(first.value, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// A run is a sorted sequence of values, of which the first is read.
type run[T any] struct {
	value *T
	next  func() (*T, error) // io.EOF at the end
}

// begin returns the runs in the order of their first values.
func (s *Sorter[T]) begin() (runs []run[T], err error) {
	if len(s.runs) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.memory, s.Compare)
	rest := s.memory
	nexts := []func() (*T, error){func() (v *T, err error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		v, rest = rest[0], rest[1:]
		return v, nil
	}}
	from := int64(0)
	for _, end := range s.runs {
		var file io.Reader = io.NewSectionReader(s.file, from, end-from)
		if !s.Plain {
			file = flate.NewReader(bufio.NewReader(file))
		}
		nexts = append(nexts, s.decoder(bufio.NewReader(file)))
		from = end
	}
	for _, next := range nexts {
		if first, err := next(); err == nil {
			runs = append(runs, run[T]{first, next})
		} else if err != io.EOF {
			return nil, s.failure(err)
		}
	}
	slices.SortFunc(runs, func(a, b run[T]) int { return s.Compare(a.value, b.value) })
	return runs, nil
}

// Close removes the file.
func (s *Sorter[T]) Close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
