// Package web is the history server: it shows the feeds of a mirror as pages that
// are pleasant to look at, and publishes each of them again with its whole
// history, so that any feed reader can subscribe to what its publisher no longer
// shows.
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
//	slice.atom          the entries of a period; slice.rss likewise
//	replay.atom         the entries again, at the reader's pace; replay.rss likewise
//
// The server updates them when somebody requests them. An archive keeps its URI
// and its content for good, whatever happens to the feed: new entries, new
// versions and deletions come after it. Entries are as they were published, with
// an atom:source that says where they come from. The head says how much of the
// feed the mirror has, for people in its subtitle and for programs in an element
// of the Namespace; an entry tells of each gap, too (5005#23).
//
// # Safety
//
// Everything that comes from a feed is hostile until proven otherwise: markup is
// sanitised, and the Content-Security-Policy allows no script, style or image
// but the server's own. The server answers only requests to its own names, so that
// no other website can reach through a browser what is meant for its user. A Token
// guards changes, and on a Private server reading, too. The server fetches the addresses that people
// type by the rules of the Mirror's Client.
package web
