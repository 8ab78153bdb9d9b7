// Package atompmh harvests metadata records, and publishes them to be harvested:
// both roles of the Atom Feed Protocol for Metadata Harvesting, Atom-PMH 1.0.
//
// A producer has a pool of records. Its feed has an entry for each of them, with
// links to the record's representations; when a record is modified there is a
// new entry, and when it is deleted a deletion entry. The feed is archived
// (RFC 5005 §4) in the order of time, so a consumer who comes again reads no
// further back than to where it was:
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
// A small pool may stand in one complete document instead (RFC 5005 §2), and
// what is absent from that is deleted.
//
// A Producer is the other side: it makes the feed from a pool, into any
// publish.Output.
//
// The duties of the specification are cited in comments as atom-pmh#7, and what
// it leaves to consumers, and was settled, as atom-pmh consumer#2. The README
// lists both.
package atompmh
