// Fromgofeed reads a feed with gofeed, and then with this package. README.md has more.
//
//	go run ./examples/fromgofeed [URL]
//
// Without a URL it serves and reads a feed of three documents.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/togofeed"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, urls, stop := site.Feeds(site.Archived)
	defer stop()
	if err := run(ctx, os.Stdout, client, urls[0]); err != nil {
		log.Fatal(err)
	}
}

// before is how a program reads a feed with gofeed: it gets the last few items.
func before(ctx context.Context, url string) (*gofeed.Feed, error) {
	return gofeed.NewParser().ParseURLWithContext(url, ctx)
}

// latest is the same with one line changed: the last few items, with limits on a
// server's power.
func latest(ctx context.Context, client *feedhistory.Client, url string) (*gofeed.Feed, error) {
	doc, err := client.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	return togofeed.Document(doc), nil
}

// all gets every item the feed ever had, and a verdict on its completeness.
func all(ctx context.Context, client *feedhistory.Client, url string) (*gofeed.Feed, *feedhistory.History, error) {
	history, err := client.Fetch(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return togofeed.Feed(history), history, nil
}

// poll reads a known feed again, by a conditional request. It returns nil if nothing has
// changed, which costs the server and the reader next to nothing.
func poll(
	ctx context.Context, client *feedhistory.Client, url string, known feedhistory.Known,
) (*gofeed.Feed, feedhistory.Known, error) {
	reading, err := client.Poll(ctx, url, known)
	if err != nil {
		return nil, known, err
	}
	if reading.Unchanged {
		return nil, reading.Known, nil
	}
	return togofeed.Document(reading.Document), reading.Known, nil
}

func run(ctx context.Context, w io.Writer, client *feedhistory.Client, url string) error {
	old, err := before(ctx, url)
	if err != nil {
		return err
	}
	now, err := latest(ctx, client, url)
	if err != nil {
		return err
	}
	whole, history, err := all(ctx, client, url)
	if err != nil {
		return err
	}
	_, known, err := poll(ctx, client, url, feedhistory.Known{})
	if err != nil {
		return err
	}
	again, _, err := poll(ctx, client, url, known)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "gofeed: %s, %d items\n", old.Title, len(old.Items))
	fmt.Fprintf(w, "Client.Get: %s, %d items\n", now.Title, len(now.Items))
	fmt.Fprintf(w, "Client.Fetch: %s, %d items, %s\n", whole.Title, len(whole.Items), history.Verdict())
	fmt.Fprintf(w, "Client.Poll: has changed since: %t\n", again != nil)
	return nil
}
