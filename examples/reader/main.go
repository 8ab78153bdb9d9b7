// Reader prints the whole history of a feed: every entry once, and the gaps.
//
//	go run ./examples/reader [URL]
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

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, urls, stop := site.Feeds(site.Archived)
	defer stop()
	if err := read(ctx, os.Stdout, client, urls[0]); err != nil {
		log.Fatal(err)
	}
}

// read prints the history of the feed at url.
func read(ctx context.Context, w io.Writer, client *feedhistory.Client, url string) error {
	history, err := client.Fetch(ctx, url)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %s, from %d documents: %d entries, %s\n\n", history.Head.Title,
		history.Kind, history.Documents, len(history.Entries), history.Verdict())
	for _, entry := range history.Entries {
		when := entry.Updated
		if when.IsZero() {
			when = entry.Published
		}
		fmt.Fprintf(w, "%s  %s\n", when.Format(time.DateOnly), entry.Title().Plain())
	}
	for _, gap := range history.Gaps {
		fmt.Fprintf(w, "\nmissing: %v\n  what to do: %s\n", gap, gap.Reason.Advice())
	}
	return nil
}
