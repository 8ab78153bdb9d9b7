package atompmh

import (
	"bytes"
	"compress/flate"
	"io"
)

// A textWriter puts the texts of entries on a shelf, compressed, and reads them again.
type textWriter struct {
	shelf  Shelf
	open   []byte // the texts of the last block, not on the shelf yet
	blocks int    // the number of blocks on the shelf

	out    *flate.Writer
	in     io.ReadCloser
	read   []byte // the block read last
	number int    // its number, from one; zero means none was read
}

// A spot is the place of a text on a shelf: in a block, from start to end.
type spot struct{ block, start, end int64 }

// textBlock is the usual size of a block: reading a text decompresses as much.
const textBlock = 64 << 10

// put adds a text.
func (t *textWriter) put(text []byte) (at spot, err error) {
	if len(t.open)+len(text) > textBlock && len(t.open) > 0 {
		err = t.pack()
	}
	start := len(t.open)
	t.open = append(t.open, text...)
	return spot{int64(t.blocks), int64(start), int64(len(t.open))}, err
}

// pack puts the last block on the shelf.
func (t *textWriter) pack() error {
	var packed bytes.Buffer
	if t.out == nil {
		t.out, _ = flate.NewWriter(nil, flate.BestSpeed) // only a wrong level is an error
	}
	t.out.Reset(&packed)
	_, _ = t.out.Write(t.open) // a buffer takes everything
	_ = t.out.Close()
	t.blocks, t.open = t.blocks+1, t.open[:0]
	return t.shelf.PutBlock(t.blocks-1, bytes.Clone(packed.Bytes()))
}

// get returns a text.
func (t *textWriter) get(at spot) (string, error) {
	block := t.open
	if at.block != int64(t.blocks) {
		if err := t.unpack(int(at.block)); err != nil {
			return "", err
		}
		block = t.read
	}
	if at.start < 0 || at.end < at.start || at.end > int64(len(block)) {
		return "", errDamagedShelf
	}
	return string(block[at.start:at.end]), nil
}

// unpack decompresses a block, unless it was the last one read.
func (t *textWriter) unpack(number int) error {
	if t.number == number+1 {
		return nil
	}
	packed, err := t.shelf.Block(number)
	if err != nil {
		return err
	}
	t.number = 0
	if t.in == nil {
		t.in = flate.NewReader(nil)
	}
	if err := t.in.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return err
	}
	read := bytes.NewBuffer(t.read[:0])
	_, err = read.ReadFrom(t.in)
	if t.read = read.Bytes(); err == nil {
		t.number = number + 1
	}
	return err
}
