// Package mirror keeps local copies of feeds, whole and current, poll after
// poll:
//
//	m := &mirror.Mirror{Store: store}
//	changes, err := m.Update(ctx, "https://example.org/feed.atom")
//
// The first Update walks the feed's whole history; later ones read what is new,
// and whatever an earlier one could not get. What a Mirror knows is in its
// Store: package sqlstore keeps it in SQLite or PostgreSQL, Memory in memory.
//
// # What is never lost
//
// A poll commits each document as it comes, entries and links together. So at any
// time, every archive document that the mirror ever saw a link to is either
// processed or pending (5005#19). An error, a budget or a kill may cut a poll
// short anywhere; a later one finishes it, even if newer archives have come in
// between.
//
// # When it is due
//
// A state that is committed in the middle of a walk is Unfinished. Whatever ends
// the walk there, the feed is Due at once, however fresh it is, unless its host has
// sent a Retry-After. A feed that a Budget has left unread is Due as well, though
// its Next is some minutes away, for programs that keep polling.
//
// # What a poll means
//
// That depends on the kind of feed, as the subscription document declares it:
//
//   - Complete: the document replaces what the mirror has. Entries that it lacks
//     are no longer part of the feed (5005#1).
//   - Archived: the walk reads up to the first processed archive, then the pending
//     ones. If an entry has left the subscription document and no archive that was
//     read has it, the walk requests known archives again, until it finds the entry
//     (5005#9).
//   - Paged: the walk reads until a page has nothing new. The feed stays lossy
//     (5005#4).
//   - Plain: the document is a window. If it no longer reaches back to what the
//     mirror has, there is a gap.
//
// Of duplicates the mirror keeps the same one, in whatever order and over however
// many polls the documents come (5005#20, 5005#21). A tombstone (RFC 6721) counts
// even if it comes before what it deletes.
package mirror
