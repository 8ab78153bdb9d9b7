// Package site is a small website with feeds for the examples, each of a
// different kind.
package site

import (
	"embed"
	"net"
	"net/http"
	"sync"
	"time"
)

//go:embed *.atom *.rss liftoff
var files embed.FS

// The feeds, as paths on the site.
const (
	Archived = "/liftoff/index.atom" // a subscription document and two archives
	Complete = "/queue.atom"         // one document with everything
	Paged    = "/search.rss"         // two pages
	Broken   = "/broken.atom"        // an archived feed whose archive is missing
	Plain    = "/plain.rss"          // a feed like most, with its last entries
)

// Start serves the site on a free port of the loopback interface, until stop is
// called, and returns its URL.
func Start() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.FileServerFS(files), ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	stop = func() {
		_ = server.Close()
		serving.Wait()
	}
	return "http://" + listener.Addr().String(), stop, nil
}
