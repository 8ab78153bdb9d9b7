// Package mirror keeps local copies of feeds, complete and up to date, poll
// after poll:
//
//	m := &mirror.Mirror{Store: store}
//	report, err := m.Update(ctx, "https://example.org/feed.atom")
//
// The first Update walks the feed's whole history. Later ones read new documents, and
// those an earlier one could not read. A Mirror keeps everything in its Store: package
// sqlstore uses SQLite or PostgreSQL, Memory keeps it in memory.
//
// # Guarantees
//
// A poll commits documents as they come, entries and links together. So at any time,
// every archive document the mirror ever saw a link to is either processed or pending
// (5005#19). An error, a budget or a kill may cut a poll short anywhere; a later poll
// finishes it, even if newer archives have come in between.
//
// # When a poll is due
//
// A state committed in the middle of a walk is Unfinished. Whatever ends the walk
// there, the feed is Due at once, however fresh it is, unless its host has sent a
// Retry-After. A feed left unread by a Budget is Due as well; its Next is some minutes
// away, for programs polling continually.
//
// # The steps of a poll
//
// They depend on the kind of feed, which the subscription document declares:
//
//   - Complete: the document replaces everything in the mirror. Entries missing from it
//     are no longer part of the feed (5005#1).
//   - Archived: the walk reads up to the first processed archive, then the pending
//     ones. If an entry has left the subscription document and is in no archive read,
//     the walk requests known archives again until it finds the entry (5005#9).
//   - Paged: the walk reads until a page has nothing new. The feed stays lossy
//     (5005#4).
//   - Plain: the document is a window. If it no longer reaches back to the mirror's
//     entries, there is a gap.
//
// Whatever the order of the documents, and over however many polls they come, the
// mirror keeps the same one of several duplicates (5005#20, 5005#21). A tombstone (RFC
// 6721) counts even if it comes before the entry it deletes.
package mirror
