// Package site is a small website whose feeds the examples read: one of each kind.
package site

import (
	"embed"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/feedhistory/feedhistory"
)

//go:embed *.atom *.rss liftoff
var files embed.FS

// The feeds, as paths on the site.
const (
	Archived = "/liftoff/index.atom" // a subscription document and two archives
	Complete = "/queue.atom"         // one document with all entries
	Paged    = "/search.rss"         // two pages
	Broken   = "/broken.atom"        // an archived feed whose archive is missing
	Plain    = "/plain.rss"          // its latest entries only, as in most feeds
)

// Feeds returns the feeds an example reads, and a client for them: the URLs of its
// command line or, if there are none, the site's feeds at the paths. Call stop at the
// end.
func Feeds(paths ...string) (client *feedhistory.Client, urls []string, stop func()) {
	if len(os.Args) > 1 {
		client = new(feedhistory.Client)
		return client, os.Args[1:], client.CloseIdle
	}
	client, url, stop := Start()
	for _, path := range paths {
		urls = append(urls, url+path)
	}
	return client, urls, stop
}

// Start serves the site on a free port of the loopback interface, until stop is
// called, and returns its URL, and a client that may read from this machine. It
// panics if there is no free port.
func Start() (client *feedhistory.Client, url string, stop func()) {
	server := httptest.NewServer(http.FileServerFS(files))
	client = &feedhistory.Client{AllowPrivate: true}
	return client, server.URL, func() {
		client.CloseIdle()
		server.Close()
	}
}
