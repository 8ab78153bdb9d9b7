package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"regexp"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

func ExamplePublisher() {
	dir, err := os.MkdirTemp("", "blog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p := &publish.Publisher{
		Output: publish.Dir{Path: dir},
		Base:   "https://example.org/blog/",
		Head:   &feedhistory.Document{Title: "My blog"},
		Split:  feedhistory.Split{Period: feedhistory.Month},
	}
	for month := time.October; month <= time.December; month++ {
		e, err := feedhistory.Draft{
			ID:      fmt.Sprintf("tag:example.org,2003:%d", month),
			Title:   feedhistory.Text{Body: "News of " + month.String()},
			Updated: time.Date(2003, month, 13, 18, 30, 2, 0, time.UTC),
		}.Entry()
		if err != nil {
			log.Fatal(err)
		}
		if err := p.Append(context.Background(), e); err != nil {
			log.Fatal(err)
		}
	}
	names, err := fs.Glob(p.Output, "feed/*/*")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range append(names, "feed.atom") {
		fmt.Println(regexp.MustCompile("-[0-9a-f]+").ReplaceAllString(name, "-…"))
	}
	fmt.Println(p.URL())
	// Output:
	// feed/2003/10-….atom
	// feed/2003/11-….atom
	// feed.atom
	// https://example.org/blog/feed.atom
}

// The history of another feed is published again. Entries need an id.
func ExamplePublisher_AppendHistory() {
	p := &publish.Publisher{Output: &publish.MemoryOutput{}, Base: "https://example.org/"}
	entry, err := feedhistory.Draft{ID: "urn:1", Updated: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)}.Entry()
	if err != nil {
		log.Fatal(err)
	}
	ctx, history := context.Background(), &feedhistory.History{Entries: []*feedhistory.Entry{entry}}
	fmt.Println(p.AppendHistory(ctx, history))
	fmt.Println(errors.Is(p.Append(ctx, &feedhistory.Entry{}), publish.ErrNoID))
	// Output:
	// <nil>
	// true
}
