// Package modifiedrange synchronises collections of entries by ranges of
// modification times: a client asks a server for what changed since it last
// asked, and neither has to remember anything but one timestamp.
//
// The protocol is the Modified-Range proposal of the Atom working group (2004).
// A request names a range of times; the answer has all items of the collection
// that were last modified within it, or, with another status than 200, the most
// recent of them. The client then asks for what is older than the oldest item
// it got, until an answer is whole.
//
//	c := modifiedrange.Client{URL: "https://example.org/collection"}
//	sync := c.Sync(ctx, state)
//	history, err := feedhistory.Merge(sync.Documents())
//	…
//	if next, whole := sync.State(); whole {
//		state = next // to be stored together with the history
//	}
//
// A Handler is the other side: an http.Handler over a query function.
//
// Two other ways to ask mean the same, and are understood on both sides: the
// "Range: updated=" of draft-ietf-atompub-protocol-04 §5.2.4, and the query
// parameters updated-min and updated-max of GData. See Dialect.
//
// The proposal leaves much open. What was settled is numbered in the README, and
// cited in comments as modified-range#5.
package modifiedrange
