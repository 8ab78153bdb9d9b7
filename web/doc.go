// Package web is the history server: the feeds of a mirror as pages that a
// person likes to look at, and each of them published again with its whole
// history, so that any feed reader can subscribe to what its publisher no longer
// shows.
//
//	s := &web.Server{Store: store}
//	go s.Run(ctx) // polls feeds as they fall due
//	http.ListenAndServe("127.0.0.1:8005", s)
//
// # What is published again
//
// Of each feed there are, below /feeds/ and its short name:
//
//	index.atom          an archived feed (RFC 5005 §4), by package publish
//	index.rss           the same as RSS
//	complete.atom       everything in one document
//	slice.atom          the entries of a time; slice.rss likewise
//	replay.atom         the entries once more, at one's own pace; replay.rss likewise
//
// They are brought up to date when they are asked for. An archive keeps its URI
// and its content for good, whatever happens to the feed: new entries, new
// versions and deletions come after it. Entries are as they were published, with
// an atom:source that says where they come from. The head says how much of the
// feed the mirror has, for people in its subtitle and for programs in an element
// of the Namespace; each gap is told by an entry, too (5005#23).
//
// # Safety
//
// Everything that comes from a feed is hostile until proven otherwise: markup is
// sanitised, and the Content-Security-Policy allows no script, style or image
// but the server's own. Only requests that are addressed to a name of the server's
// own are answered, so that no other website can reach through a browser what is
// meant for its user. A Token guards what changes anything; reading needs none.
// What people type in is fetched by the rules of the Mirror's Client.
package web
