package feedhistory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// Atom 1.0 (RFC 4287) and its ancestor 0.3.

// atomFeed reads the children of the feed element. Atom allows any order, so a link or
// a flag counts even after the entries.
func (r *documentReader) atomFeed() {
	depth := r.xml.Depth()
	r.xml.Native = r.xml.Space()
	r.xml.NoteName()
	if !feedxml.IsAtom(r.xml.Native) {
		r.note("namespace-unknown", "the feed element is read as Atom's, whose namespace is "+feedxml.Atom, r.xml.Offset())
	}
	r.doc.version, r.doc.Language = map[string]string{feedxml.Atom: "1.0", feedxml.Atom03: "0.3"}[r.xml.Native], r.xml.Language()
	if r.xml.Prefix() != "" && feedxml.IsAtom(r.xml.Native) {
		r.xml.Native, r.bare = "", true // children without the root's prefix and namespace are Atom's, too
	}
	r.children(depth, "entry")
}

// documentID reads the feed's id as published. White space around it is not part of
// it, and xml:base does not apply (RFC 4287 §4.2.6).
func (r *documentReader) documentID() string {
	offset := r.xml.Offset()
	id := r.xml.PlainText()
	if len(id) > r.limits.id {
		r.note("id-too-long", "the feed's id is left out: it is longer than the limit", offset)
		return ""
	}
	return id
}

// author reads an author of the feed (RFC 4287 §4.2.1).
func (r *documentReader) author() {
	p := personOf(r.xml.Person())
	if r.doc.Format == RSS { // which may have the same person as managingEditor, with less
		same := func(other Person) bool { return cmp.Or(other.Name, other.Email) == cmp.Or(p.Name, p.Email) }
		if i := slices.IndexFunc(r.doc.Authors, same); i >= 0 {
			r.doc.Authors[i] = p
			return
		}
	}
	if len(r.doc.Authors) < maxExtra && r.head.fits(len(p.Name)+len(p.Email)+len(p.URI), r.xml.Offset()) {
		r.doc.Authors = append(r.doc.Authors, p)
	}
}

// tombstone reads at:deleted-entry (RFC 6721 §3).
func (r *documentReader) tombstone() {
	ref, _ := r.xml.Attr("", "ref")
	when, _ := r.xml.Attr("", "when")
	offset := r.xml.Offset()
	if ref = trim(ref); ref == "" || len(ref) > r.limits.id {
		r.note("deleted-entry-without-ref", "at:deleted-entry does not say which entry was deleted", offset)
		return
	}
	if len(r.doc.Deleted) >= r.limits.entries {
		r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d deleted entries", r.limits.entries))
		return
	}
	r.doc.Deleted = append(r.doc.Deleted, Tombstone{Ref: ref, When: r.parseTime(when, offset)})
}

// noteAtom notes an item's element of Atom without its namespace.
func (r *entryReader) noteAtom(row *feedxml.Row, offset int) {
	if row.Space == "" && row.Form == feedxml.Dropped {
		r.odd = true
		r.note("name-misspelt", "the element "+row.Name+", which is not in RSS, is read as Atom's", offset)
	}
}
