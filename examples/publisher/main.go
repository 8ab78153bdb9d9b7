// Publisher publishes a slice of structs as a feed with its whole history, and
// serves it.
//
//	go run ./examples/publisher DIRECTORY
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/publish"
)

// A Post is a post of a website, from a database or from files.
type Post struct {
	ID        string // never changes, even if Address does
	Address   string
	Title     string
	HTML      string
	Published time.Time
	Edited    time.Time // zero if it was not edited, or the time is unknown
}

var posts = []Post{
	{"tag:example.org,2003:1", "/1", "One", "<p>The first.</p>", time.Date(2003, time.October, 13, 18, 30, 2, 0, time.UTC), time.Time{}},
	{"tag:example.org,2003:2", "/2", "Two", "<p>The second.</p>", time.Date(2003, time.November, 13, 18, 30, 2, 0, time.UTC), time.Time{}},
	{"tag:example.org,2003:3", "/3", "Three", "<p>The third.</p>", time.Date(2003, time.December, 13, 18, 30, 2, 0, time.UTC), time.Time{}},
}

const (
	address = "localhost:8080"
	base    = "http://" + address + "/feeds/"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: publisher DIRECTORY")
	}
	publisher := newPublisher(os.Args[1], base)
	done, err := update(context.Background(), publisher, base, posts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d new, %d changed, %d deleted: %s\n", done.New, done.Changed, done.Deleted, publisher.URL())
	server := &http.Server{Addr: address, Handler: handler(publisher), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newPublisher returns a publisher of the feed in a directory. The directory also has the
// publisher's state, so it must be permanent.
func newPublisher(dir, base string) *publish.Publisher {
	return &publish.Publisher{
		Output: publish.Dir{Path: dir},
		Base:   base,
		Head:   &feedhistory.Document{Title: "My website", Authors: []feedhistory.Person{{Name: "Ann"}}},
		Split:  compose.Split{Period: compose.Month}, // an archive for each month
	}
}

// update publishes the difference to the feed: new, edited and removed posts. Call it
// after each change, or now and then. If it is killed, the feed is as before, or has the
// changes; call it again.
func update(ctx context.Context, p *publish.Publisher, base string, posts []Post) (*publish.Report, error) {
	update := publish.Batch{DeleteMissing: true}
	for _, post := range posts {
		entry, err := compose.Draft{
			ID:        post.ID,
			Title:     feedhistory.Text{Body: post.Title},
			Content:   feedhistory.Text{Type: "html", Body: post.HTML, Base: base},
			Links:     feedhistory.Links{{Rel: "alternate", Href: post.Address}},
			Published: post.Published,
			Updated:   cmp.Or(post.Edited, post.Published), // an edit without a time gets the current time
		}.Entry()
		if err != nil {
			return nil, err
		}
		update.Entries = append(update.Entries, entry)
	}
	done, err := p.Publish(ctx, update)
	if err == nil && len(done.Lost) > 0 {
		err = fmt.Errorf("archives are missing, restore them from a backup: %q", done.Lost)
	}
	return done, err
}

// handler serves the feed under its base.
func handler(p *publish.Publisher) http.Handler {
	return http.StripPrefix("/feeds", &publish.Handler{FS: p.Output})
}
