// Package atompmh harvests metadata records, and publishes them to be
// harvested. It implements both roles of the Atom Feed Protocol for Metadata
// Harvesting, Atom-PMH 1.0.
//
// A producer has a pool of records. Its feed has an entry for each record, with links
// to the record's representations. When a record is modified, there is a new entry;
// when it is deleted, a deletion entry. The feed is archived (RFC 5005 §4) in the
// order of time, so a returning consumer reads back only to where it was:
//
//	h := atompmh.Harvester{URL: "https://example.org/records/feed.atom"}
//	harvest := h.Harvest(ctx, mark)
//	for change, err := range harvest.Changes() {
//		…
//	}
//	if next, whole := harvest.Mark(); whole {
//		mark = next // to be stored together with the changes
//	}
//
// A small pool can be published in one complete document instead (RFC 5005 §2); a
// record absent from it is deleted.
//
// A Producer is the other side: it makes the feed from a pool, in any
// publish.Output.
//
// Comments cite the duties of the specification as atom-pmh#7, and the answers to
// questions left to consumers as atom-pmh consumer#2. The README lists the latter.
package atompmh
