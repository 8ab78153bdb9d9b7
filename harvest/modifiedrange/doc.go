// Package modifiedrange synchronises collections of entries by ranges of modification
// times: a client asks a server for the changes since it last asked, and remembers only
// one timestamp.
//
// The protocol is the Modified-Range proposal of the Atom working group (2004). A
// request names a range of times. The answer has all items of the collection last
// modified within it or, with a status other than 200, the most recent of them. The
// client then asks for items older than the oldest it got, until an answer is complete.
//
//	h := modifiedrange.Harvester{URL: "https://example.org/collection"}
//	harvest := h.Harvest(ctx, mark)
//	history, err := feedhistory.Merge(harvest.Documents())
//	…
//	if next, whole := harvest.Mark(); whole {
//		mark = next // to be stored together with the history
//	}
//
// A Handler is the other side: an http.Handler with a query function.
//
// Both sides also support two equivalent ways to ask: the "Range: updated=" of
// draft-ietf-atompub-protocol-04 §5.2.4, and the query parameters updated-min
// and updated-max of GData. See Dialect.
//
// The proposal leaves many questions open. The README numbers the answers, and
// comments cite them as modified-range#5.
package modifiedrange
