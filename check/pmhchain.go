package check

import "github.com/feedhistory/feedhistory"

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
		r.add("pmh-archive-newer-than-entry", r.out.updated, "this document was updated %s, after %s (%s) of the one that links here",
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
func (p *pmhChain) finish(c *Chain) (out []Finding) {
	switch {
	case p.completed != "" && p.deletions:
		out = append(out, newFinding("pmh-deletion-in-complete", p.completed, "there are deletion entries, but also fh:complete"))
	case p.completed == "" && !p.deletions && c.first.older.href == "" && c.documents == 1 && c.kind == feedhistory.Plain:
		out = append(out, newFinding("pmh-complete-missing", c.first.url, "this document has everything, but no fh:complete"))
	}
	return out
}
