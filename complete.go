package feedhistory

// Complete feeds, RFC 5005 §2: one document has every entry, and what is not
// in it is no longer part of the feed (5005#1).

// isComplete recognises fh:complete in the head section (5005#2). Whatever the
// element contains has no meaning.
func (d *Document) isComplete() bool { return d.Complete }
