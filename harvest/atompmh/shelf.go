package atompmh

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
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

// A version is the time and the kind of an entry of a record.
type version struct {
	at   time.Time
	kind ChangeKind
}

// A heldEntry is an entry a reading has seen, as it is on the shelf.
type heldEntry struct {
	version
	document time.Time // when its document was updated
	digest   digest
	text     spot
	earlier  int64 // the number of earlier entries of its record on the shelf
}

func (v heldEntry) seen() SeenRecord { return seenAs(v.version, v.digest) }

// held returns the entry for the shelf.
func (v heldEntry) held(key string) Held {
	data := append(make([]byte, 0, 40), byte(v.kind))
	data = append(data, v.digest[:]...)
	for _, n := range []int64{v.document.Unix(), int64(v.document.Nanosecond()), v.text.block, v.text.start, v.text.end, v.earlier} {
		data = binary.AppendVarint(data, n)
	}
	return Held{Key: key, Time: v.at.UTC(), Data: data}
}

// readHeld returns the entry from the shelf.
func readHeld(h Held) (v heldEntry, err error) {
	if len(h.Data) < 1+len(v.digest) {
		return v, errDamagedShelf
	}
	v.version = version{h.Time, ChangeKind(h.Data[0])}
	rest := h.Data[1+copy(v.digest[:], h.Data[1:]):]
	var sec, nsec int64
	for _, to := range []*int64{&sec, &nsec, &v.text.block, &v.text.start, &v.text.end, &v.earlier} {
		n := 0
		if *to, n = binary.Varint(rest); n <= 0 {
			return v, errDamagedShelf
		}
		rest = rest[n:]
	}
	v.document = time.Unix(sec, nsec).UTC()
	return v, nil
}

// The key of an entry on the shelf is the record's identifier with a suffix, because a
// record may have several: its latest entry, earlier ones, and those of kind Other. Of
// equally late ones, the latter come first.
const (
	otherKey   = "o"
	latestKey  = "r"
	earlierKey = "e"
)

func latestOf(id string) string { return id + "\x00" + latestKey }

func numbered(id, of string, n int64) string { return fmt.Sprintf("%s\x00%s%019d", id, of, n) }

// splitKey returns a record's identifier, and the first byte of the suffix.
func splitKey(key string) (id, of string, err error) {
	i := strings.LastIndexByte(key, 0)
	if i < 0 || i+1 == len(key) {
		return "", "", errDamagedShelf
	}
	return key[:i], key[i+1 : i+2], nil
}

// entries puts a document's entries on the shelf.
func (r *reading) entries(doc *feedhistory.Document) error {
	updated := updatedOf(doc)
	for _, e := range doc.Entries {
		xml := e.XML()
		text, err := r.texts.add(xml)
		if err != nil {
			return err
		}
		v := heldEntry{version: version{e.Updated, kindIn(e, string(xml))}, document: updated, digest: digestOf(e), text: text}
		if v.kind == Other {
			r.others++
			err = r.shelf.Put(v.held(numbered(e.ID, otherKey, r.others)))
		} else {
			if e.Updated.After(r.newest) && !e.Updated.After(r.now) {
				r.newest = e.Updated.UTC()
			}
			err = r.hold(e.ID, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hold puts an entry of a record on the shelf, if it is the latest one, or if earlier ones
// are wanted.
func (r *reading) hold(id string, v heldEntry) error {
	latest, known, err := r.latest(id)
	if err != nil {
		return err
	}
	if !known {
		return r.shelf.Put(v.held(latestOf(id)))
	}
	isLatest := v.supersedes(latest.version)
	if isLatest {
		v.earlier = latest.earlier
		latest, v = v, latest
	}
	if r.history && v.kind == Record {
		if err := r.shelf.Put(v.held(numbered(id, earlierKey, latest.earlier))); err != nil {
			return err
		}
		latest.earlier++
	} else if !isLatest {
		return nil
	}
	return r.shelf.Put(latest.held(latestOf(id)))
}

// latest returns the latest entry read of a record, and whether any was.
func (r *reading) latest(id string) (v heldEntry, known bool, err error) {
	h, known, err := r.shelf.Get(latestOf(id))
	if known && err == nil {
		v, err = readHeld(h)
	}
	return v, known, err
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

// add adds a text.
func (t *textWriter) add(text []byte) (at spot, err error) {
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
