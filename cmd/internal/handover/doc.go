// Package handover gives the history of a mirrored feed to a feed reader, which
// by itself has only what the feed has shown it.
//
// A [Handover] puts entries into Miniflux through its API, one by one: those
// that the feed no longer shows and that the reader does not have. An [Export]
// writes entries into files that other readers import: FreshRSS and Nextcloud
// News.
package handover
