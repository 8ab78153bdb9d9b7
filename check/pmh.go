package check

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// This file checks Atom-PMH 1.0 in one document. An entry with an alternate
// link and no content is active, or historical if its record has a later entry.
// An entry with empty content and no alternate link is a deletion.

// pmh checks the producer's duties within one document.
func (r *report) pmh() {
	d := r.doc
	if d.Format != feedhistory.FormatAtom || r.out.version == atom03 {
		r.absent("pmh-not-atom", "the document is %v, not Atom 1.0", d.Format)
		return
	}
	if d.Kind() == feedhistory.KindPaged {
		r.add("pmh-not-archived", r.historyAt(), "the feed is paged: pages shift, so that a harvest can miss records")
	}
	if d.Updated.IsZero() {
		r.absent("pmh-time-missing", "the feed has no updated")
	}
	latest := make(map[string]time.Time, len(d.Entries))
	for _, e := range d.Entries {
		if t, ok := latest[e.ID]; !ok || e.Updated.After(t) {
			latest[e.ID] = e.Updated
		}
	}
	for i, e := range d.Entries {
		place := r.entry(i)
		if e.Updated.IsZero() {
			r.add("pmh-time-missing", place.at, "entry %s has no updated", clip(e.ID))
		} else if !d.Updated.IsZero() && e.Updated.After(d.Updated) {
			r.add("pmh-feed-older-than-entry", place.at, "entry %s was updated %s, the feed %s",
				clip(e.ID), stamp(e.Updated), stamp(d.Updated))
		}
		if place.at != nowhere { // the model does not say whether there is content
			r.pmhEntry(e, place, latest[e.ID].After(e.Updated))
		}
	}
}

// pmhEntry checks the kind of an entry.
func (r *report) pmhEntry(e *feedhistory.Entry, place elementPlace, historical bool) {
	alternate, typed, kind := false, false, "active"
	for _, link := range e.Links {
		if link.Rel == "alternate" {
			alternate, typed = true, typed || link.Type != ""
		}
	}
	if historical {
		kind = "historical"
	}
	if alternate && !typed && !historical && place.content == noContent {
		r.add("pmh-alternate-without-type", place.at, "entry %s: no link to the record has a type", clip(e.ID))
	}
	switch {
	case alternate && place.content == emptyContent:
		r.add("pmh-deletion-with-alternate", place.at, "entry %s is a deletion by its empty content, but has an alternate link", clip(e.ID))
	case alternate && place.content == someContent:
		r.add("pmh-"+kind+"-content", place.at, "the %s entry %s has content", kind, clip(e.ID))
	case !alternate && place.content == someContent:
		r.add("pmh-deletion-content", place.at, "entry %s has content and no alternate link: it is of no known kind", clip(e.ID))
	case !alternate && place.content == noContent && historical:
		r.add("pmh-historical-alternate-missing", place.at, "the historical entry %s has no alternate link", clip(e.ID))
	case !alternate && place.content == noContent:
		r.add("pmh-alternate-missing", place.at, "entry %s has neither an alternate link nor the empty content of a deletion", clip(e.ID))
	}
}

// A pmhChain checks the requirements of Atom-PMH for a whole chain.
type pmhChain struct {
	complete  bool   // whether the subscription document says so
	completed string // the URL of a document with fh:complete
	deletions bool
	empty     bool // whether the documents so far have no entries
}

// document compares a document with the one linking to it.
func (p *pmhChain) document(c *Chain, r *report, n *neighbour) {
	d := r.doc
	if d.Complete {
		p.completed = d.URL
	}
	for i := range d.Entries {
		p.deletions = p.deletions || r.entry(i).content == emptyContent
	}
	wasEmpty := c.documents == 1 || p.empty
	p.empty = wasEmpty && len(d.Entries) == 0
	if c.documents == 1 {
		p.complete = d.Complete
		return
	}
	if d.Complete && !p.complete && !wasEmpty { // the text allows it after an empty subscription document
		r.add("pmh-complete-in-archive", r.flagAt("complete"), "this archive has fh:complete, but the subscription document does not")
	}
	if p.complete {
		p.whole(c, r)
	}
	from := c.newer
	if n.is(from.older.href) && !from.oldest.IsZero() && d.Updated.After(from.oldest) {
		r.add("pmh-archive-newer-than-entry", r.out.head.updated, "this document was updated %s, after %s (%s) of the one that links here",
			stamp(d.Updated), clip(from.entry), stamp(from.oldest))
	}
}

// whole checks whether a complete subscription document has the records of an archive.
func (p *pmhChain) whole(c *Chain, r *report) {
	for i, e := range r.doc.Entries {
		if !c.inFirst(e) {
			r.add("pmh-complete-not-whole", r.entry(i).id, "record %s is not in the complete document", clip(e.ID))
		}
	}
}

// compare compares two entries of a record.
func (p *pmhChain) compare(r *report, i int, old, now entryCopy) {
	e, at := r.doc.Entries[i], r.entry(i).id
	switch {
	case now.updated == old.updated && now.content == old.content: // the same entry in two documents
	case now.updated == old.updated && now.deletion != old.deletion:
		r.add("pmh-deletion-same-time", at, "record %s has a deletion and another entry, both of %s", clip(e.ID), stamp(e.Updated))
	case now.updated == old.updated && now.links != old.links:
		r.add("pmh-active-ambiguous", at, "record %s has two entries of %s with different links", clip(e.ID), stamp(e.Updated))
	case now.updated == old.updated:
		r.add("pmh-active-same-time", at, "record %s has two entries of %s", clip(e.ID), stamp(e.Updated))
	case now.updated > old.updated && now.number > old.number && old.deletion:
		r.add("pmh-deletion-older", at, "record %s has a later entry here than the deletion in a newer document", clip(e.ID))
	case now.updated > old.updated && now.number > old.number:
		r.add("pmh-active-older", at, "record %s has a later entry here than in a newer document", clip(e.ID))
	}
}

// finish returns the findings about the whole chain.
func (p *pmhChain) finish(c *Chain, l *findingList) {
	switch {
	case p.completed != "" && p.deletions:
		l.raise("pmh-deletion-in-complete", p.completed, "there are deletion entries, but also fh:complete")
	case p.completed == "" && !p.deletions && c.first.older.href == "" && c.documents == 1 && c.kind == feedhistory.KindPlain:
		l.raise("pmh-complete-missing", c.first.url, "this document has everything, but no fh:complete")
	}
}

// A Sample has some of the representations of metadata records, and requests them: that
// alternate links lead to them, and say their types, no document shows (atom-pmh#15,
// atom-pmh#16, atom-pmh#34). The zero value is ready to use, for one feed.
type Sample struct {
	Size int // Size is the maximum number of records to take representations of; zero means 20.

	seed    maphash.Seed
	records []sampledRecord // by their order
}

// A sampledRecord is a record, in its latest state so far. The records whose identifiers
// have the lowest digests are a random choice.
type sampledRecord struct {
	order     uint64
	id        string
	updated   time.Time
	url       string           // of the document
	alternate feedhistory.Link // zero for a deletion
}

// mostSampledBytes is how much of a representation is read.
const mostSampledBytes = 16 << 20

// Add adds the records of a document to choose from. An older entry of a record does not
// count.
//
// A nil document, or entry, is passed over.
func (s *Sample) Add(doc *feedhistory.Document) {
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	size := s.Size
	if size <= 0 {
		size = 20
	}
	if doc == nil {
		return
	}
	for _, e := range doc.Entries {
		if e == nil {
			continue
		}
		r := sampledRecord{order: maphash.String(s.seed, e.ID), id: e.ID, updated: e.Updated, url: doc.URL}
		alternates := 0
		for _, l := range e.Links {
			if l.Rel == "alternate" {
				if alternates++; alternates == 1 || (r.order>>8)%uint64(alternates) == 0 { // any one of them
					r.alternate = l
				}
			}
		}
		i, known := slices.BinarySearchFunc(s.records, r.order, func(r sampledRecord, order uint64) int { return cmp.Compare(r.order, order) })
		switch {
		case known && !r.updated.After(s.records[i].updated):
		case known:
			s.records[i] = r
		case i < size:
			s.records = slices.Insert(s.records, i, r)
			s.records = s.records[:min(len(s.records), size)]
		}
	}
}

// Check requests the representations, and yields the findings. The error is the
// context's, or names a negative Size.
func (s *Sample) Check(ctx context.Context, client *feedhistory.Client) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		if err := settings.Check("check", settings.Number{Name: "Sample.Size", Value: int64(s.Size)}); err != nil {
			yield(Finding{}, err)
			return
		}
		for _, r := range s.records {
			if r.alternate.Href == "" {
				continue
			}
			code, message := r.check(ctx, client)
			if err := ctx.Err(); err != nil {
				yield(Finding{}, err)
				return
			}
			if code == "" {
				continue
			}
			if !yield(newFinding(code, r.url, "the representation "+clip(r.alternate.Href)+" of record "+clip(r.id)+" "+message), nil) {
				return
			}
		}
	}
}

// check requests the representation. It returns the code of a finding, with the rest of its
// message, or "".
func (r *sampledRecord) check(ctx context.Context, client *feedhistory.Client) (code, message string) {
	resp, err := settings.Get(ctx, client, http.MethodGet, r.alternate.Href, nil)
	if err != nil {
		if errors.Is(err, &feedhistory.FetchError{Status: http.StatusForbidden}) || errors.Is(err, fs.ErrNotExist) {
			return "pmh-representation-missing", "is not there: " + reasonText(err)
		}
		return "pmh-representation-unavailable", "cannot be retrieved: " + reasonText(err)
	}
	defer resp.Body.Close()
	given, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	said, _, badLink := mime.ParseMediaType(r.alternate.Type)
	if badLink == nil && err == nil && given != said {
		return "pmh-representation-type", "has the type " + clip(given) + ", but the link says " + clip(said)
	}
	if !strings.EqualFold(strings.TrimSpace(r.alternate.Type), "application/atom+xml") {
		return "", "" // not Atom-RDC
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostSampledBytes))
	if err != nil {
		return "pmh-representation-unavailable", "cannot be read: " + reasonText(err)
	}
	entry, err := feedhistory.ReadEntry(feedhistory.FormatAtom, string(body), resp.Request.URL.String())
	if err != nil {
		return "", ""
	}
	if self, ok := entry.Links.Rel("self"); ok && self.Href != r.alternate.Href {
		return "pmh-self-differs", "names itself " + clip(self.Href)
	}
	return "", ""
}
