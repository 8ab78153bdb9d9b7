// Package backfill recovers undeclared histories of feeds.
//
// Few feeds say by RFC 5005 where their older entries are. But many can still be
// recovered, in a way that depends on the publishing software: WordPress answers
// ?paged=2, Blogger answers ranges of times, others number pages in their own ways, and
// a web archive may have entries no longer on the publisher's server.
//
//	b := backfill.Backfill{}
//	r, err := b.Fetch(ctx, "https://example.org/feed/", backfill.Probe{})
//	…
//	fmt.Println(len(r.History.Entries), r.Verdict(), r.RecoveredBy)
//
// The feed's own links come first. If there are none, a Walk tries a [Method]. Its
// result is at best lossy, unless the method proves it has everything.
//
// A [Probe] has the findings of a walk. Store it with the feed, so the next walk tries
// nothing again.
package backfill
