// Fromgofeed reads the same feed in the way of a program with gofeed, and after
// the change to this library. README.md explains the differences.
//
//	go run ./examples/fromgofeed [URL]
//
// Without a URL it reads a feed of three documents that it serves itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var client feedhistory.Client
	url := ""
	if len(os.Args) > 1 {
		url = os.Args[1]
	} else {
		home, stop, err := site.Start()
		if err != nil {
			log.Fatal(err)
		}
		defer stop()
		url = home + site.Archived
		client.Policy.AllowPrivate = true // the site is on this machine
	}
	if err := run(ctx, os.Stdout, &client, url); err != nil {
		log.Fatal(err)
	}
}

// before reads a feed with gofeed: it gets the last few items.
func before(ctx context.Context, url string) (*gofeed.Feed, error) {
	return gofeed.NewParser().ParseURLWithContext(url, ctx)
}

// latest does the same with one line changed: it gets the last few items, with
// limits on what a server can do.
func latest(ctx context.Context, client *feedhistory.Client, url string) (*gofeed.Feed, error) {
	doc, err := client.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	return doc.Feed(), nil
}

// all gets every item that the feed ever published, and a verdict on what is
// missing.
func all(ctx context.Context, client *feedhistory.Client, url string) (*gofeed.Feed, *feedhistory.History, error) {
	history, err := client.Fetch(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return history.Feed(), history, nil
}

// poll requests a known feed again, conditionally. If nothing has changed,
// which costs the server and the reader next to nothing, it returns nil.
func poll(
	ctx context.Context, client *feedhistory.Client, url string, known feedhistory.Known,
) (*gofeed.Feed, feedhistory.Known, error) {
	doc, err := client.Poll(ctx, url, known)
	if _, same := errors.AsType[*feedhistory.Unchanged](err); same {
		return nil, known, nil
	}
	if err != nil {
		return nil, known, err
	}
	return doc.Feed(), doc.Known(), nil
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
