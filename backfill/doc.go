// Package backfill recovers histories that feeds have but do not declare.
//
// Few feeds say by RFC 5005 where their older entries are, but many can be
// recovered all the same, in a way that depends on the publishing software:
// WordPress answers ?paged=2, Blogger answers ranges of times, others count pages
// in their own ways, and a web archive may have what the publisher no longer has.
//
//	b := backfill.Backfill{}
//	r, err := b.Fetch(ctx, "https://example.org/feed/", backfill.Probe{})
//	…
//	fmt.Println(len(r.History.Entries), r.Verdict(), r.RecoveredBy)
//
// The feed's own links go first. If they say nothing, a Walk tries a [Method]. Its
// result is no better than lossy, unless the method proves that it has everything.
//
// A [Probe] holds what a walk found out. Store it with the feed, and the next walk
// tries nothing again.
package backfill
