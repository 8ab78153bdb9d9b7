package check

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// ids checks the ids of the feed and its entries (5005#22).
func (r *report) ids() {
	d := r.doc
	if d.Format == feedhistory.Atom {
		switch {
		case d.ID == "" && r.count["id-too-long"] > 0: // it has an id
		case d.ID == "":
			r.absent("id-missing", "the feed has no id")
		case !isIRI(d.ID):
			r.add("not-absolute-iri", r.out.id, "the feed's id, %q, is not an absolute IRI", clip(d.ID))
		}
	}
	seen := make(map[string]int, len(d.Entries))
	for i, e := range d.Entries {
		place := r.entry(i)
		if e.WeakID {
			r.add("id-missing", place.at, "the entry has no id")
			continue
		}
		r.iri(e, place)
		if first, ok := seen[e.ID]; ok {
			r.duplicate(e, d.Entries[first], place)
		} else {
			seen[e.ID] = i
		}
	}
}

// entry returns the place of an entry.
func (r *report) entry(i int) entryPlace {
	if i < len(r.out.entries) {
		return r.out.entries[i]
	}
	return entryPlace{at: nowhere, end: nowhere, id: nowhere}
}

func (r *report) iri(e *feedhistory.Entry, place entryPlace) {
	switch {
	case r.doc.Format == feedhistory.Atom && !isIRI(e.ID):
		r.add("not-absolute-iri", place.id, "the id %q is not an absolute IRI", clip(e.ID))
	case r.doc.Format == feedhistory.RSS && place.permalink && !isIRI(e.ID):
		r.add("not-absolute-iri", place.id, "the guid %q is not a URL, although isPermaLink is not false", clip(e.ID))
	}
}

// duplicate compares two entries with the same id. Atom-PMH has different
// rules, because it keeps history in this way.
func (r *report) duplicate(e, first *feedhistory.Entry, place entryPlace) {
	switch {
	case r.profile == AtomPMH:
	case slices.ContainsFunc(r.doc.Notes, func(n feedhistory.Note) bool { return n.Code == "id-shared" }): // which says more
	case e.Updated.Equal(first.Updated):
		when := "no update time"
		if !e.Updated.IsZero() {
			when = "the update time " + stamp(e.Updated)
		}
		r.add("duplicate-id-same-time", place.id, "the id %s is in the document twice, both with %s", clip(e.ID), when)
	default:
		r.add("duplicate-id", place.id, "the id %s is in the document twice, updated %s and %s",
			clip(e.ID), stamp(first.Updated), stamp(e.Updated))
	}
}

// isIRI recognises an absolute IRI: a scheme, followed by something, without the
// characters an IRI cannot have (RFC 3987 §2.2).
func isIRI(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" || strings.Trim(rest, "/") == "" || !isLetter(scheme[0]) {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isLetter(c) && !strings.ContainsRune("0123456789+-.", rune(c)) {
			return false
		}
	}
	return !strings.ContainsFunc(rest, func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("<>\"{}|\\^`", r)
	})
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
