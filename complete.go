package feedhistory

// Complete feeds, RFC 5005 §2: one document has all entries; an entry missing from it
// is no longer part of the feed (5005#1).

// isComplete reports whether the head section has fh:complete (5005#2). The content of
// the element has no meaning.
func (d *Document) isComplete() bool { return d.Complete }
