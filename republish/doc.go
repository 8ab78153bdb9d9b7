// Package republish serves the feeds of a mirror again, each with its whole
// history, so any feed reader can have the entries a publisher no longer
// shows. An aggregator mounts a Handler beside its own pages:
//
//	h := &republish.Handler{Store: store, Base: "https://reader.example/history/"}
//	mux.Handle("/history/", h)
//
// # Addresses
//
// The documents of a feed are below Base, feeds/ and the feed's Name:
//
//	index.atom, index.rss      an archived feed (RFC 5005 §4), by package publish
//	complete.atom              all entries in one document
//	slice.atom, slice.rss      the entries of a period: ?since=…&until=…
//	replay.atom, replay.rss    the entries again, at the reader's pace: ?start=…&every=…
//
// # Promises
//
// A Handler updates documents when somebody requests them. An archive keeps its URL and
// its content for good; later entries, new versions and deletions come after it.
// Entries are as published, with an atom:source naming their feed. The head says how
// much of the feed the mirror has: for people in its subtitle, for programs in a
// feedhistory.Coverage. An entry also reports each gap (5005#23). An entry the mirror
// cannot read is such a gap: no document without it claims to be complete.
package republish
