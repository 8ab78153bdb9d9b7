// Package web is the history server. It shows the feeds of a mirror as pages
// to read, and publishes each of them again with its whole history (package
// republish), for readers of entries the publisher no longer shows.
//
//	s := &web.Server{Store: store}
//	go s.Run(ctx) // polls feeds as they fall due
//	http.ListenAndServe("127.0.0.1:8005", s)
//
// # Safety
//
// The server treats everything from a feed as hostile: it sanitises markup, and the Content-Security-Policy allows no script, style
// or image except the server's own. The server answers only requests to its own names, so no other website can read its pages
// through a browser. A Token guards changes, and on a Private server reading, too; any other server leaves out the feeds in need of
// credentials. When the server fetches an address somebody has typed, the rules of the Mirror's Client apply.
package web
