// Follower prints the titles of a feed's new entries as they appear, and asks for them no
// more often than the publisher wants. Its tests need neither a network nor time: one has a
// double of the Client, the other a double of the web, both on the clock of testing/synctest.
//
//	go run ./examples/follower [URL]
//
// Without a URL it follows a feed that it serves itself. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, urls, end := site.Feeds(site.Plain)
	defer end()
	if err := follow(ctx, os.Stdout, client, urls[0]); !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// A poller is the part of *feedhistory.Client this program needs.
type poller interface {
	Poll(ctx context.Context, url string, known feedhistory.Known) (*feedhistory.Reading, error)
}

// follow polls a feed until the context ends.
func follow(ctx context.Context, out io.Writer, p poller, url string) error {
	var known feedhistory.Known
	printed := map[string]bool{}
	for {
		next := time.Now().Add(time.Hour)
		r, err := p.Poll(ctx, url, known)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintln(out, "failed:", feedhistory.Describe(err))
		case r.Unchanged:
			known = r.Known
		default:
			known, next = r.Known, r.Document.Schedule.Next(r.Response)
			for _, e := range r.Document.Entries {
				if !printed[e.ID] {
					printed[e.ID] = true
					fmt.Fprintln(out, e.Title().Plain())
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(next)):
		}
	}
}
