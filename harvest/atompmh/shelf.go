package atompmh

import (
	"bytes"
	"compress/flate"
	"io"
)

// A shelf keeps the texts of entries, compressed, until a harvest has read all
// documents. The zero value is empty.
type shelf struct {
	open   []byte   // the texts of the last block, not compressed yet
	blocks [][]byte // the blocks before, compressed

	out    *flate.Writer
	in     io.ReadCloser
	read   []byte // the block read last
	number int    // its number, from one; zero means none was read
}

// A spot is the place of a text on a shelf.
type spot struct{ block, start, end int32 }

// shelfBlock is the usual size of a block: reading a text decompresses as much.
const shelfBlock = 64 << 10

// put adds a text.
func (s *shelf) put(text string) spot {
	if len(s.open)+len(text) > shelfBlock && len(s.open) > 0 {
		s.pack()
	}
	start := len(s.open)
	s.open = append(s.open, text...)
	return spot{int32(len(s.blocks)), int32(start), int32(len(s.open))}
}

// pack compresses the last block.
func (s *shelf) pack() {
	var packed bytes.Buffer
	if s.out == nil {
		s.out, _ = flate.NewWriter(nil, flate.BestSpeed) // only a wrong level is an error
	}
	s.out.Reset(&packed)
	_, _ = s.out.Write(s.open) // a buffer takes everything
	_ = s.out.Close()
	s.blocks, s.open = append(s.blocks, bytes.Clone(packed.Bytes())), s.open[:0]
}

// get returns a text.
func (s *shelf) get(at spot) (string, error) {
	if int(at.block) == len(s.blocks) {
		return string(s.open[at.start:at.end]), nil
	}
	if s.number != int(at.block)+1 {
		if err := s.unpack(s.blocks[at.block]); err != nil {
			return "", err
		}
		s.number = int(at.block) + 1
	}
	return string(s.read[at.start:at.end]), nil
}

// unpack decompresses a block.
func (s *shelf) unpack(packed []byte) error {
	s.number = 0
	if s.in == nil {
		s.in = flate.NewReader(nil)
	}
	if err := s.in.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return err
	}
	read := bytes.NewBuffer(s.read[:0])
	_, err := read.ReadFrom(s.in)
	s.read = read.Bytes()
	return err
}
