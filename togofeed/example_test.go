package togofeed_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/togofeed"
)

func ExampleItem() {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"
		xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
		<item><guid isPermaLink="false">1</guid><title>Episode</title><itunes:duration>10:00</itunes:duration>
		<enclosure url="1.mp3" type="audio/mpeg" length="1337"/></item></channel></rss>`), "http://example.org/feed.rss")
	if err != nil {
		log.Fatal(err)
	}
	item, err := togofeed.Item(doc.Entries[0]) // a gofeed.Item
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(item.ITunesExt.Duration, item.Enclosures[0].URL)
	// Output: 10:00 http://example.org/1.mp3
}

// A program that reads feeds with gofeed gets the whole history by changing two lines.
func ExampleFeed() {
	client, home, stop := site.Start()
	defer stop()
	url := home + site.Archived

	// feed, err := gofeed.NewParser().ParseURL(url)
	history, err := client.Fetch(context.Background(), url)
	if err != nil {
		log.Fatal(err)
	}
	feed := togofeed.Feed(history) // a *gofeed.Feed

	fmt.Println(feed.Title, len(feed.Items), history.Verdict())
	for _, item := range feed.Items {
		fmt.Println(item.PublishedParsed.Format(time.DateOnly), item.Title)
	}
	// Output:
	// Liftoff News 4 whole
	// 2003-12-13 Atom-Powered Robots Run Amok
	// 2003-12-01 Robots Scheduled To Run Amok (corrected)
	// 2003-11-03 Star City
	// 2003-10-27 The Engine That Does More
}

// A program that stores gofeed's items has those that are new or have changed, poll after poll.
func ExampleDocument() {
	client, home, stop := site.Start()
	defer stop()
	m := &mirror.Mirror{Client: client}
	var ledger mirror.Ledger // a column of the program's table of feeds
	for range 2 {
		for r, err := range m.Poll(context.Background(), home+site.Archived, ledger) {
			if err != nil {
				log.Fatal(err)
			}
			doc, err := r.Document()
			if err != nil {
				log.Fatal(err)
			}
			feed := togofeed.Document(doc) // a *gofeed.Feed
			fmt.Println(feed.Title, len(feed.Items))
			ledger = r.Ledger // stored together with feed.Items
		}
	}
	// Output:
	// Liftoff News 2
	// Liftoff News 1
	// Liftoff News 1
	// Liftoff News 0
	// Liftoff News 0
}
