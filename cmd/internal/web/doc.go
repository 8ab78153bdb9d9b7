// Package web is the history server. It shows the feeds of a mirror as pages
// that are pleasant to look at, and publishes each of them again with its whole
// history, so that any feed reader can subscribe to entries that the publisher
// no longer shows.
//
//	s := &web.Server{Store: store}
//	go s.Run(ctx) // polls feeds as they fall due
//	http.ListenAndServe("127.0.0.1:8005", s)
//
// # What is published again
//
// For each feed, the server publishes these below /feeds/ and its short name:
//
//	index.atom          an archived feed (RFC 5005 §4), by package publish
//	index.rss           the same as RSS
//	complete.atom       everything in one document
//	slice.atom          the entries of a period; also slice.rss
//	replay.atom         the entries again, at the reader's pace; also replay.rss
//
// The server updates them when somebody requests them. An archive keeps its URI
// and its content for good, whatever happens to the feed: new entries, new
// versions and deletions come after it. Entries are as they were published,
// with an atom:source that says where they come from. The head says how much of
// the feed the mirror has: for people in its subtitle, for programs in an
// element of the Namespace. An entry also reports each gap (5005#23).
//
// # Safety
//
// The server treats everything that comes from a feed as hostile: it sanitises
// markup, and the Content-Security-Policy allows no script, style or image
// except the server's own. The server answers only requests to its own names,
// so that no other website can read through a browser what is meant for its
// user. A Token guards changes, and on a Private server reading, too; any other
// server leaves out the feeds that need credentials. When the server fetches an
// address that somebody has typed, the rules of the Mirror's Client apply.
package web
