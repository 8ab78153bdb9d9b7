// Timeline reads several feeds in parallel with one Client, and prints their
// entries together, newest first, with a verdict on each feed.
//
//	go run ./examples/timeline [URL ...]
//
// Without URLs it reads five feeds that it serves itself: one of each kind, and
// one whose publisher has lost an archive.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var client feedhistory.Client
	urls := os.Args[1:]
	if len(urls) == 0 {
		home, stop, err := site.Start()
		if err != nil {
			log.Fatal(err)
		}
		defer stop()
		for _, path := range []string{site.Archived, site.Complete, site.Paged, site.Broken, site.Plain} {
			urls = append(urls, home+path)
		}
		client.Policy.AllowPrivate = true // the site is on this machine
	}
	aggregate(ctx, os.Stdout, &client, urls)
}

// A result is the history of one feed, or the error.
type result struct {
	history *feedhistory.History // nil if there was no answer
	err     error
}

// aggregate prints the entries of all feeds.
func aggregate(ctx context.Context, w io.Writer, client *feedhistory.Client, urls []string) {
	results := make([]result, len(urls))
	var group sync.WaitGroup
	for i, url := range urls {
		group.Go(func() {
			results[i].history, results[i].err = client.Fetch(ctx, url)
		})
	}
	group.Wait()

	var entries []*feedhistory.Entry
	for i, r := range results {
		if r.history == nil {
			fmt.Fprintf(w, "%s: %v\n", urls[i], r.err)
			continue
		}
		entries = append(entries, r.history.Entries...)
		fmt.Fprintf(w, "%-18s %-9s %s\n", r.history.Head.Title, r.history.Kind, r.history.Verdict())
		for _, gap := range r.history.Gaps {
			entries = append(entries, gap.PseudoEntry()) // shows the reader where something is missing
		}
	}
	slices.SortStableFunc(entries, func(a, b *feedhistory.Entry) int { return when(b).Compare(when(a)) })
	fmt.Fprintln(w)
	for _, e := range entries {
		fmt.Fprintf(w, "%s  %-18s %s\n", when(e).Format(time.DateOnly), cmp.Or(e.Source.Title, "—"), e.Title().Plain())
	}
}

func when(e *feedhistory.Entry) time.Time {
	if e.Updated.IsZero() {
		return e.Published
	}
	return e.Updated
}
