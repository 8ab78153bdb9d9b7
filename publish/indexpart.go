package publish

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
)

// The form of the index's files, each of which is a part: a head in JSON, records, and traces.

// indexSuffix is the suffix of the files of the index.
const indexSuffix = ".index"

// indexName returns the name of the part of the index whose newest archive has a name.
func indexName(archive string) string {
	dir, base := path.Split(archive)
	return dir + "." + base + indexSuffix
}

// archiveOf returns the name of an archive from its own name, or from that of a part of the index.
func archiveOf(name string) string {
	dir, base := path.Split(name)
	if archive, ok := strings.CutSuffix(base, indexSuffix); ok {
		return dir + strings.TrimPrefix(archive, ".")
	}
	return name
}

// A digest tells texts apart.
type digest [16]byte

// MarshalText returns the digest in hexadecimal digits.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText returns.
func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return hex.ErrLength
	}
	_, err := hex.Decode(d[:], text)
	return err
}

func digestOf(text string) digest {
	sum := sumOf(text)
	return digest(sum[:])
}

// A summer has what the sum of a text needs, so millions of them need no memory.
type summer struct {
	hash.Hash
	piece [4 << 10]byte
	sum   [sha256.Size]byte
}

var summers = sync.Pool{New: func() any { return &summer{Hash: sha256.New()} }}

// sumOf returns the SHA-256 of a text, without a copy of all of it.
func sumOf(text string) [sha256.Size]byte {
	s := summers.Get().(*summer)
	defer summers.Put(s)
	s.Reset()
	for len(text) > 0 {
		n := copy(s.piece[:], text)
		_, _ = s.Write(s.piece[:n])
		text = text[n:]
	}
	s.Sum(s.sum[:0])
	return s.sum
}

// An indexHead is the beginning of a part of the index, in JSON. The records follow, in the order
// of their ids, and then the traces.
type indexHead struct {
	Prev     string           `json:"prev,omitempty"` // the archive before the oldest one
	Archives []indexedArchive `json:"archives"`       // newest first
	Records  int              `json:"records"`
	Live     int              `json:"live"` // how many records are no deletions
	Traces   int              `json:"traces"`
}

// An indexedArchive is an archive with the digest of its text without next-archive.
type indexedArchive struct {
	Name   string `json:"name"`
	Digest digest `json:"digest"`
}

// An indexRecord is the newest version of an entry in the archives of a part, or its deletion.
type indexRecord struct {
	id      digest
	as      digest // of the entry
	time    time.Time
	deleted bool
	archive int       // its place in a part; in a draft its rank: newer archives have higher ones
	traces  [2]uint64 // the beginnings of their digests; zero for none
}

// The sizes of a record and a trace in a file, and the files' first line.
const (
	recordSize = 16 + 16 + 8 + 4 + 4
	traceSize  = 8 + 4
	indexMagic = "feedhistory index 1\n"
)

func appendRecord(b []byte, r *indexRecord) []byte {
	b = append(append(b, r.id[:]...), r.as[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.time.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(r.time.Nanosecond()))
	at := uint32(r.archive) << 1
	if r.deleted {
		at |= 1
	}
	return binary.BigEndian.AppendUint32(b, at)
}

func readRecord(b []byte) (r indexRecord) {
	r.id, r.as = digest(b), digest(b[16:])
	r.time = time.Unix(int64(binary.BigEndian.Uint64(b[32:])), int64(binary.BigEndian.Uint32(b[40:]))).UTC()
	at := binary.BigEndian.Uint32(b[44:])
	r.archive, r.deleted = int(at>>1), at&1 > 0
	return r
}

// An indexDraft is a part of the index in the making.
type indexDraft struct {
	newer   []indexedArchive // oldest first, of the ranks from 0 on
	older   []indexedArchive // newest first, of the ranks from -1 down
	prev    string
	records []indexRecord
	read    int // how many archives, from the newest on, were read for it
}

func (d *indexDraft) archives() int { return len(d.newer) + len(d.older) }

// newest returns the name of the newest archive.
func (d *indexDraft) newest() string {
	if n := len(d.newer); n > 0 {
		return d.newer[n-1].Name
	}
	return d.older[0].Name
}

// addNewer adds an archive newer than the others.
func (d *indexDraft) addNewer(a *archive) {
	if d.archives() == 0 {
		d.prev = a.prev
	}
	d.add(a, len(d.newer))
	d.newer = append(d.newer, a.indexed())
}

// addOlder adds an archive older than the others.
func (d *indexDraft) addOlder(a *archive) {
	if d.prev = a.prev; d.read == len(d.older) {
		d.read++
	}
	d.older = append(d.older, a.indexed())
	d.add(a, -len(d.older))
}

func (d *indexDraft) add(a *archive, rank int) {
	for _, it := range a.items() {
		r := indexRecord{id: digestOf(it.id), time: it.time, deleted: it.entry == nil, archive: rank}
		if it.entry != nil {
			r.as = digestOf(textOf(it.entry))
			for i, trace := range traces(it.entry) {
				r.traces[i] = traceKey(trace)
			}
		}
		d.records = append(d.records, r)
	}
}

// addPart adds a part older than the draft.
func (d *indexDraft) addPart(x *indexPart) error {
	data := make([]byte, x.Records*recordSize+x.Traces*traceSize)
	if err := x.read(data, 0); err != nil {
		return err
	}
	from := len(d.records)
	for i := range x.Records {
		r := readRecord(data[i*recordSize:])
		r.archive = -len(d.older) - 1 - r.archive
		d.records = append(d.records, r)
	}
	for traces := data[x.Records*recordSize:]; len(traces) > 0; traces = traces[traceSize:] {
		r := &d.records[from+int(binary.BigEndian.Uint32(traces[8:]))]
		at := 0
		if r.traces[0] != 0 {
			at = 1
		}
		r.traces[at] = binary.BigEndian.Uint64(traces)
	}
	d.older, d.prev = append(d.older, x.Archives...), x.Prev
	return nil
}

// traceKey returns a number for a trace of an entry, which is not zero.
func traceKey(trace string) uint64 {
	sum := digestOf(trace)
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}

// encode returns the file of the part.
func (d *indexDraft) encode() []byte {
	slices.SortStableFunc(d.records, func(a, b indexRecord) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(b.archive, a.archive))
	})
	d.records = slices.CompactFunc(d.records, func(a, b indexRecord) bool { return a.id == b.id })
	head := indexHead{Prev: d.prev, Records: len(d.records)}
	head.Archives = append(slices.Clone(d.newer), d.older...)
	slices.Reverse(head.Archives[:len(d.newer)])
	type trace struct {
		key    uint64
		record int
	}
	var found []trace
	for i := range d.records {
		r := &d.records[i]
		if !r.deleted {
			head.Live++
		}
		for _, key := range r.traces {
			if key != 0 {
				found = append(found, trace{key, i})
			}
		}
	}
	head.Traces = len(found)
	slices.SortFunc(found, func(a, b trace) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.record, b.record)) })
	first, _ := json.Marshal(head) // neither names nor numbers can fail
	data := make([]byte, len(indexMagic)+4, len(indexMagic)+4+len(first)+1+len(d.records)*recordSize+len(found)*traceSize)
	copy(data, indexMagic)
	data = append(append(data, first...), '\n')
	for i := range d.records {
		r := d.records[i]
		r.archive = len(d.newer) - 1 - r.archive
		data = appendRecord(data, &r)
	}
	for _, t := range found {
		data = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(data, t.key), uint32(t.record))
	}
	binary.BigEndian.PutUint32(data[len(indexMagic):], crc32.Checksum(data[len(indexMagic)+4:], castagnoli))
	return data
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An indexPart is an open part of the index.
type indexPart struct {
	indexHead
	isFile bool        // it is in the Output, too
	file   io.ReaderAt // has the records
	at     int64       // where they begin
	close  func() error
	keys   []byte // the first eight bytes of each id

	given   []uint64                  // a bit for each record whose id the source has
	checked []bool                    // the archives which are as their records say
	words   map[int]map[digest]digest // the words of the entries of an archive, by the digests of their ids
}

// newIndexPart returns the part in a file with the given data, or nil if the data are not a part.
func newIndexPart(data []byte, file io.ReaderAt) *indexPart {
	rest, ok := bytes.CutPrefix(data, []byte(indexMagic))
	if !ok || len(rest) < 4 || binary.BigEndian.Uint32(rest) != crc32.Checksum(rest[4:], castagnoli) {
		return nil
	}
	first, rest, _ := bytes.Cut(rest[4:], []byte("\n"))
	x := &indexPart{file: file, at: int64(len(data) - len(rest)), close: func() error { return nil }, words: map[int]map[digest]digest{}}
	if json.Unmarshal(first, &x.indexHead) != nil || len(rest) != x.Records*recordSize+x.Traces*traceSize || len(x.Archives) == 0 {
		return nil
	}
	x.keys = make([]byte, 0, 8*x.Records)
	for i := range x.Records {
		x.keys = append(x.keys, rest[i*recordSize:][:8]...)
	}
	x.given, x.checked = make([]uint64, x.Records/64+1), make([]bool, len(x.Archives))
	return x
}

// newest returns the name of the newest archive.
func (x *indexPart) newest() string { return x.Archives[0].Name }

// read reads data from a place after the beginning of the records.
func (x *indexPart) read(data []byte, from int64) error {
	n, err := x.file.ReadAt(data, x.at+from)
	if n == len(data) {
		return nil
	}
	return fmt.Errorf("%s: %w", indexName(x.newest()), cmp.Or(err, io.ErrUnexpectedEOF))
}

func (x *indexPart) record(i int) (indexRecord, error) {
	var data [recordSize]byte
	err := x.read(data[:], int64(i)*recordSize)
	return readRecord(data[:]), err
}

func (x *indexPart) key(i int) uint64 { return binary.BigEndian.Uint64(x.keys[8*i:]) }

// find returns the record of an id, and its number; -1 if there is none.
func (x *indexPart) find(id digest) (i int, r indexRecord, err error) {
	key := binary.BigEndian.Uint64(id[:])
	for i = sort.Search(x.Records, func(i int) bool { return x.key(i) >= key }); i < x.Records && x.key(i) == key; i++ {
		if r, err = x.record(i); err != nil || r.id == id {
			return i, r, err
		}
	}
	return -1, r, nil
}

func (x *indexPart) isGiven(i int) bool { return x.given[i/64]>>(i%64)&1 > 0 }
func (x *indexPart) give(i int)         { x.given[i/64] |= 1 << (i % 64) }

// indexed returns an archive as the index knows it.
func (a *archive) indexed() indexedArchive {
	text, err := setNext(a.text, "", feedhistory.Format(strings.TrimPrefix(path.Ext(a.name), ".")))
	if err != nil {
		text = a.text // which somebody has changed
	}
	return indexedArchive{a.name, digestOf(text)}
}
