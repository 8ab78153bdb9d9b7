// Package backfill recovers histories that feeds have but do not declare.
//
// Few feeds say by RFC 5005 where their older entries are; many can be recovered all
// the same, in the way of the software that publishes them: WordPress answers
// ?paged=2, Blogger asks for ranges of times, others count pages each in their
// own way, and a web archive may remember what the publisher no longer has.
//
//	b := backfill.Backfill{}
//	r, err := b.Fetch(ctx, "https://example.org/feed/", backfill.Probe{})
//	…
//	fmt.Println(len(r.History.Entries), r.Verdict(), r.RecoveredBy)
//
// The feed's own links go first. A Method is tried where they say nothing.
// What comes of it is no better than lossy, unless the method proves that it
// has everything.
//
// What trying brought to light is a Probe: a value to be stored beside the
// feed, so that nothing has to be tried again.
package backfill
