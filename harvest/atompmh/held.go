package atompmh

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

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
		text, err := r.texts.put(xml)
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
