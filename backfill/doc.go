// Package backfill recovers histories that feeds have but do not declare.
//
// Few feeds say by RFC 5005 where their older entries are. But many can still
// be recovered, in a way that depends on the publishing software: WordPress
// answers ?paged=2, Blogger answers ranges of times, others number pages in
// their own ways, and a web archive may have entries that the publisher no
// longer has.
//
//	b := backfill.Backfill{}
//	r, err := b.Fetch(ctx, "https://example.org/feed/", backfill.Probe{})
//	…
//	fmt.Println(len(r.History.Entries), r.Verdict(), r.RecoveredBy)
//
// The feed's own links come first. If there are none, a Walk tries a [Method].
// Its result is at best lossy, unless the method proves that it has everything.
//
// A [Probe] is what a walk has learned. Store it with the feed, so that the
// next walk tries nothing again.
package backfill
