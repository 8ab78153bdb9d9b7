package feedhistory

// Archived feeds, RFC 5005 §4: a subscription document with the latest
// entries, and archive documents that do not change, each linked from the
// next newer one by prev-archive.

// isArchived recognises a subscription document or an archive by its links
// (5005#11) or by fh:archive (5005#14).
func (d *Document) isArchived() bool {
	return d.Archive || d.Links.has(RelPrevArchive, RelNextArchive)
}

// isSubscription reports whether nothing says that this is not the document
// where a feed begins: neither an archive, nor a page after others.
func (d *Document) isSubscription() bool {
	return d.Kind() == Archived && !d.Archive && !d.Links.has(RelNextArchive) ||
		d.Kind() == Paged && !d.Links.has(RelPrevious) ||
		d.Kind() == Complete || d.Kind() == Plain
}

// beginning returns the link to the document where a feed begins, for one that
// is not it: the subscription document that an archive names (5005#13), or the
// furthest preceding page.
func (d *Document) beginning() (Link, bool) {
	switch {
	case d.isSubscription():
		return Link{}, false
	case d.Kind() == Archived:
		return d.Links.Rel(RelCurrent)
	}
	return d.Links.Rel(RelFirst)
}
