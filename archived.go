package feedhistory

// Archived feeds, RFC 5005 §4: a subscription document with the latest
// entries, and archive documents that do not change, each linked from the
// next newer one by prev-archive.

// isArchived reports whether the document is a subscription document or an archive,
// by its links (5005#11) or by fh:archive (5005#14).
func (d *Document) isArchived() bool {
	return d.Archive || d.says(relPrevArchive, relNextArchive)
}
