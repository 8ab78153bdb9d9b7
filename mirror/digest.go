package mirror

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A digest tells the versions of an entry apart.
type digest struct {
	published string // of the entry as published, without the signatures in its addresses
	stored    string // that of the stored copy used in its place; else the same
	text      string // the entry's text, if its addresses have signatures; else ""
	isPlain   bool   // they have none, for certain
	post      string // its Post; "" if it has none, or has not been asked for it
}

func newDigest(e *feedhistory.Entry, isShort bool) *digest {
	d := &digest{published: e.Digest()}
	if isShort {
		d.published = d.published[:shortDigest]
	}
	d.stored = d.published
	if element, err := door.Root.Element(e); err == nil {
		if d.isPlain = iri.Unsigned(element.Raw) == element.Raw; !d.isPlain {
			d.text = element.Raw
		}
	}
	return d
}

// version returns a digest of the entry with the signatures in its addresses: a download needs
// the newest.
func (d *digest) version() string {
	if d.text == "" {
		return d.stored
	}
	return shortKey(d.stored + d.text)
}

// digests keep the digests of the entries of a document, because several rules need them.
type digests struct {
	all     map[*feedhistory.Entry]*digest
	isShort bool
}

func newDigests(isShort bool) *digests {
	return &digests{map[*feedhistory.Entry]*digest{}, isShort}
}

func (ds *digests) of(e *feedhistory.Entry) *digest {
	d := ds.all[e]
	if d == nil {
		d = newDigest(e, ds.isShort)
		ds.all[e] = d
	}
	return d
}

// postOf returns the entry's Post.
func (ds *digests) postOf(e *feedhistory.Entry) string {
	d := ds.of(e)
	if d.post == "" && door.Root.PostID(e) != "" {
		d.post = e.Post()
	}
	return d.post
}

// ofAll returns a digest of the set of a document's entries, which should not change in
// an archive (5005#9). Its links may change.
func (ds *digests) ofAll(doc *feedhistory.Document) string {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = ds.of(e).published + " " + e.ID
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\n")))
	if ds.isShort { // a Ledger has one of each archive
		return hex.EncodeToString(sum[:8])
	}
	return hex.EncodeToString(sum[:16])
}

// keyOf returns a short key for texts. Two texts share one by chance only if somebody
// could break SHA-256.
func keyOf(texts ...string) [2]uint64 {
	all := make([]byte, 0, 256)
	for _, text := range texts {
		all = append(strconv.AppendInt(all, int64(len(text)), 10), ':')
		all = append(all, text...)
	}
	sum := sha256.Sum256(all)
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

func shortKey(text string) string { return fmt.Sprintf("%016x", keyOf(text)[0]) }

// versionOf returns four bytes of a digest, which tell a version of an entry from others.
func versionOf(digest string) uint32 { return uint32(keyOf(digest)[0]) }
