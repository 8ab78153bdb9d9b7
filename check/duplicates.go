package check

import (
	"hash/maphash"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// An entryCopy remembers an entry, to recognise its copies.
type entryCopy struct {
	updated  int64 // in nanoseconds; noTime if it has none
	document int64 // when its document was updated, in the same form
	content  uint64
	links    uint64 // a digest of the targets of its alternate links
	number   int32  // the number of the document
	deletion bool   // for Atom-PMH
	first    bool   // the entry, or a copy of it, is in the first document
}

const noTime = -1 << 63

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano()
}

// entries compares the document's entries with those of earlier documents.
func (c *Chain) entries(r *report) {
	if c.kind == feedhistory.Plain && c.Profile != AtomPMH {
		return // the only document has been checked already
	}
	at := r.doc.Updated
	if at.IsZero() {
		at = r.doc.LastModified
	}
	for i, e := range r.doc.Entries {
		if e.WeakID {
			continue
		}
		now := entryCopy{
			updated: nanoseconds(e.Updated), document: nanoseconds(at), number: int32(c.documents),
			content: c.content(r.entryText(i)), links: c.alternates(e),
		}
		now.deletion = r.entry(i).content == emptyContent
		key := maphash.String(c.seed, e.ID)
		old, known := c.copies[key]
		if known && (old.number != now.number || c.Profile == AtomPMH) {
			c.compare(r, i, old, now)
		}
		now.first = c.documents == 1 || old.first
		if !known || c.Profile != AtomPMH && old.number != now.number || now.updated > old.updated {
			c.copies[key] = now
		}
	}
}

// inFirst reports whether the first document has a record's entry.
func (c *Chain) inFirst(e *feedhistory.Entry) bool {
	old, ok := c.copies[maphash.String(c.seed, e.ID)]
	return ok && old.first
}

// entryText returns the text of an entry in the document.
func (r *report) entryText(i int) string {
	place, text := r.entry(i), r.doc.Text()
	if place.at < 0 || place.end > len(text) || place.at > place.end {
		return ""
	}
	return text[place.at:place.end]
}

// content returns a digest of an entry. Indentation does not count.
func (c *Chain) content(text string) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for word := range strings.FieldsSeq(text) {
		_, _ = h.WriteString(word)
		_ = h.WriteByte(' ')
	}
	return h.Sum64()
}

// alternates returns a digest of the targets of an entry's alternate links, in
// any order.
func (c *Chain) alternates(e *feedhistory.Entry) (sum uint64) {
	for _, link := range e.Links {
		if link.Rel == feedhistory.RelAlternate {
			sum += maphash.String(c.seed, link.Href)
		}
	}
	return sum
}

// compare compares two copies of an entry; the second one is in the older
// document.
func (c *Chain) compare(r *report, i int, old, now entryCopy) {
	e, at := r.doc.Entries[i], r.entry(i).id
	switch {
	case c.Profile == AtomPMH:
		c.pmh.compare(r, i, old, now)
	case c.kind == feedhistory.Paged && old.updated == now.updated:
		r.add("page-overlap", at, "entry %s was on an earlier page too", clip(e.ID))
	case c.kind == feedhistory.Archived && old.updated == now.updated && old.document == now.document && old.content != now.content:
		r.add("ambiguous-duplicate", at,
			"entry %s differs from a newer document's, but it and the documents have the same times, %s and %s",
			clip(e.ID), stamp(e.Updated), stamp(r.doc.Updated))
	}
}
