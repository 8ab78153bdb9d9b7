// Package handover gives the history of a mirrored feed to a feed reader, which
// by itself has only the entries the feed has shown it.
//
// A [Handover] puts entries into Miniflux through its API, one by one: those
// the feed no longer shows and the reader does not have. An [Export]
// writes entries into files for other readers: FreshRSS and Nextcloud
// News.
package handover
