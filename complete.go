package feedhistory

import "cmp"

// Complete feeds, RFC 5005 §2: one document has all entries; an entry missing from it
// is no longer part of the feed (5005#1).

// isComplete reports whether the head section has fh:complete (5005#2). The content of
// the element has no meaning.
func (d *Document) isComplete() bool { return d.Complete }

// NewComplete returns a complete feed of the given entries, newest first, at the URL
// self. It takes the description of the feed from head, which may be nil.
func NewComplete(head *Document, entries []*Entry, self string) *Document {
	d := newDocument(head, entries, self)
	d.Complete = true
	return d
}

// newDocument returns a document with the metadata of head, and with those of its links
// not about the history.
func newDocument(head *Document, entries []*Entry, self string) *Document {
	head = cmp.Or(head, new(Document))
	d := head.headOnly()
	d.URL, d.Complete, d.Archive, d.Notes, d.Response, d.lost = self, false, false, nil, Response{}, nil
	d.Links = Links{{Rel: RelSelf, Href: self}}
	for _, l := range head.Links {
		if l.Rel != RelSelf && !isHistory(l.Rel) {
			d.Links = append(d.Links, l)
		}
	}
	d.Entries, d.Updated = entries, head.Updated
	return &d
}

// link adds a link, unless href is empty.
func (d *Document) link(rel, href string) {
	if href != "" {
		d.Links = append(d.Links, Link{Rel: rel, Href: href})
	}
}
