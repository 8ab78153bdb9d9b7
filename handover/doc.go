// Package handover gives the history of a mirrored feed to a feed reader, which
// by itself has only what it has seen the feed show.
//
// A [Handover] puts the entries into Miniflux, through its API, one by one: those
// that the feed no longer shows and that the reader does not have. An [Export]
// writes them into files that other readers import: FreshRSS and Nextcloud News.
package handover
