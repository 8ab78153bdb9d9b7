// Timeline reads several feeds at the same time with one Client, and prints all their
// entries, the newest first, with a verdict on each feed.
//
//	go run ./examples/timeline [URL ...]
//
// Without URLs it reads five feeds served by itself, one of each kind and one whose
// publisher has lost an archive.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/examples/site"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	client, urls, stop := site.Feeds(site.Archived, site.Complete, site.Paged, site.Broken, site.Plain)
	defer stop()
	aggregate(ctx, os.Stdout, client, urls)
}

// A result is the outcome for one feed.
type result struct {
	history *feedhistory.History // nil if nothing could be read
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
			entries = append(entries, compose.PseudoEntry(gap)) // readers see where something is missing
		}
	}
	slices.SortStableFunc(entries, func(a, b *feedhistory.Entry) int { return b.Time().Compare(a.Time()) })
	fmt.Fprintln(w)
	for _, e := range entries {
		fmt.Fprintf(w, "%s  %-18s %s\n", e.Time().Format(time.DateOnly), cmp.Or(e.Head.Title, "—"), e.Title().Plain())
	}
}
