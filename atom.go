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
	r.xml.SetNative(r.xml.Space())
	r.xml.NoteName()
	if !feedxml.IsAtom(r.xml.Native()) {
		r.note("namespace-unknown", "the feed element is read as Atom's, whose namespace is "+feedxml.Atom, r.xml.Offset())
	}
	r.doc.version, r.doc.Language = map[string]string{feedxml.Atom: "1.0", feedxml.Atom03: "0.3"}[r.xml.Native()], r.xml.Language()
	if r.xml.Prefix() != "" && feedxml.IsAtom(r.xml.Native()) {
		r.xml.SetNative("") // children without the root's prefix and namespace are Atom's, too
	} else {
		r.unnamed = r.xml.Native() == ""
	}
	r.children(depth, "entry")
}

// isUnnamed reports whether the current child of feed or entry is in no namespace, and Atom's. Others
// are foreign markup, which Atom allows.
func (r *xmlReading) isUnnamed(row *feedxml.Row) bool {
	return row.AtomRank > 0 && r.xml.Format == feedxml.FormatAtom && r.xml.Cursor.Space() == ""
}

// noteUnnamed notes the first element in no namespace that counts as Atom's.
func (r *xmlReading) noteUnnamed() {
	r.note("namespace-unknown", "elements without a namespace are read as Atom's", r.xml.Offset())
	r.unnamed = true
}

// settle decides, at a child of an entry in Atom's namespace below a root that has none or a prefix,
// whether the children in no namespace are Atom's: if the feed's are, or if one of them comes before all
// those in the entry's namespace. It reports whether a later child must decide.
func (r *entryReader) settle(space string) (undecided bool) {
	switch row := r.xml.Row(); {
	case r.unnamed:
	case row.AtomRank == 0 || !r.xml.IsAtom():
		return true
	case r.isUnnamed(row):
		r.noteUnnamed()
	default:
		r.xml.SetNative(space)
	}
	return false
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
	if r.doc.Format == FormatRSS { // which may have the same person as managingEditor, with less
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
