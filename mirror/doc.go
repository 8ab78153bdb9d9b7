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
// Each document is committed as it comes, entries and links together: at any
// time, every archive document that a link was ever seen to is either processed
// or pending (5005#19). So a poll may be cut short anywhere, by an error, a
// budget or a kill, and a later one finishes it, even if newer archives have
// come in between.
//
// # When it is due
//
// The state that is committed in the middle of a walk says that it is
// Unfinished: whatever ends it there, the feed is Due at once, whatever its own
// freshness, but for a Retry-After. What a Budget has left unread is Due as well,
// though Next is some minutes away for those who keep polling.
//
// # What a poll means
//
// It depends on the kind of feed that the subscription document says it is:
//
//   - Complete: the document replaces what is there. Entries that it does not
//     have are no longer part of the feed (5005#1).
//   - Archived: the walk goes to the first processed archive, then on to the
//     pending ones. Where an entry that was in the subscription document stands
//     in none that was read, archives that are known already are asked for once
//     more, until it is found (5005#9).
//   - Paged: until a page has nothing new. It stays lossy (5005#4).
//   - Plain: the document is a window. Where it no longer reaches back to what
//     is known, there is a gap.
//
// Of duplicates, the same is kept in whatever order and over however many polls
// the documents came (5005#20, 5005#21), and a tombstone (RFC 6721) counts, too,
// if it came before what it deletes.
package mirror
