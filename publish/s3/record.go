package s3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A record is the content of the lock's object. Every decision is a change of the
// record, which is replaced by compare-and-swap, so a writer without the lock can
// decide nothing.
type record struct {
	holder   string // unique for each holder
	sequence int64  // increases with each change, so no two records are equal
	lease    time.Duration
	free     bool // whether the holder has unlocked it

	// notes are the documents whose names are hidden, the note of a Publisher
	// included.
	notes map[string][]byte

	// writes are changes recorded but perhaps not done: a writer that takes the lock from
	// a crashed holder does them first. A finished write is removed with the next change.
	writes map[string]write
}

// A write is the replacement of a document.
type write struct {
	was  string // the ETag of the document it replaces; "" if there was none
	data []byte
	done bool
}

func (r record) clone() record {
	r.notes, r.writes = maps.Clone(r.notes), maps.Clone(r.writes)
	if r.notes == nil {
		r.notes = map[string][]byte{}
	}
	if r.writes == nil {
		r.writes = map[string]write{}
	}
	maps.DeleteFunc(r.writes, func(_ string, w write) bool { return w.done })
	return r
}

// A header is the first part of the encoding, a line of JSON. The data of all
// notes and writes follows.
type header struct {
	Format   string `json:"format"`
	Holder   string `json:"holder"`
	Sequence int64  `json:"sequence"`
	Lease    int64  `json:"lease_ms"`
	Free     bool   `json:"free"`
	Notes    []part `json:"notes,omitempty"`
	Writes   []part `json:"writes,omitempty"`
}

type part struct {
	Name string `json:"name"`
	Was  string `json:"was,omitempty"`
	Size int    `json:"size"`
}

const format = "feedhistory-lock-1"

// errRecord says the lock's object was not written by this package.
var errRecord = errors.New("not a lock that feedhistory wrote")

func (r record) encode() []byte {
	h := header{Format: format, Holder: r.holder, Sequence: r.sequence, Lease: r.lease.Milliseconds(), Free: r.free}
	var rest []byte
	for _, name := range slices.Sorted(maps.Keys(r.notes)) {
		h.Notes = append(h.Notes, part{Name: name, Size: len(r.notes[name])})
		rest = append(rest, r.notes[name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.writes)) {
		w := r.writes[name]
		h.Writes = append(h.Writes, part{Name: name, Was: w.was, Size: len(w.data)})
		rest = append(rest, w.data...)
	}
	line, _ := json.Marshal(h) // cannot fail for strings and numbers
	return append(append(line, '\n'), rest...)
}

func decode(data []byte) (record, error) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); !ok || err != nil || h.Format != format {
		return record{}, errors.Join(errRecord, err)
	}
	r := record{holder: h.Holder, sequence: h.Sequence, lease: time.Duration(h.Lease) * time.Millisecond, free: h.Free}.clone()
	take := func(p part) ([]byte, error) {
		if p.Size < 0 || p.Size > len(rest) {
			return nil, fmt.Errorf("%w: it is cut short", errRecord)
		}
		data := rest[:p.Size:p.Size]
		rest = rest[p.Size:]
		return data, nil
	}
	for _, p := range h.Notes {
		data, err := take(p)
		if err != nil {
			return record{}, err
		}
		r.notes[p.Name] = data
	}
	for _, p := range h.Writes {
		data, err := take(p)
		if err != nil {
			return record{}, err
		}
		r.writes[p.Name] = write{was: p.Was, data: data}
	}
	return r, nil
}
