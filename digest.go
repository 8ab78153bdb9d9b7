package feedhistory

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Digest returns a digest of the entry's bytes as published. The same bytes in another
// document have the same digest. XML adds inherited attributes, such as namespaces, so
// ReadEntry(e.XML()) may have another one: store the digest with the XML. If the entry's
// fields were set since it was read, Digest is that of its XML.
func (e *Entry) Digest() string {
	raw := e.raw
	if e.isAltered() {
		raw = string(e.XML())
	}
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:16])
}

// Digest returns a digest of the set of the document's entries, which should not change
// in an archive (5005#9). Its links may change.
func (d *Document) Digest() string {
	ids := make([]string, len(d.Entries))
	for i, e := range d.Entries {
		ids[i] = e.Digest() + " " + e.ID
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\n")))
	return hex.EncodeToString(sum[:16])
}
