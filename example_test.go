package feedhistory_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

// Fetch refuses private addresses, such as that of the site in these examples.
func ExampleFetch() {
	_, home, stop := site.Start()
	defer stop()
	history, err := feedhistory.Fetch(context.Background(), home+site.Archived)
	if err != nil {
		fmt.Println("the feed could not be read:", feedhistory.Describe(err))
		return
	}
	for _, e := range history.Entries {
		fmt.Println(e.Time().Format(time.DateOnly), e.Title().Plain())
	}
	fmt.Println(history.Kind, history.Verdict())
	for _, gap := range history.Gaps {
		fmt.Println("missing:", gap, "What to do:", gap.Reason.Advice())
	}
	// Output: the feed could not be read: a loopback, private or special-purpose address
}

func ExampleClient_Fetch() {
	client, home, stop := site.Start()
	defer stop()
	history, err := client.Fetch(context.Background(), home+site.Archived)
	if err != nil {
		log.Fatal(err) // the feed could not be read
	}
	for _, e := range history.Entries {
		fmt.Println(e.Updated.Format(time.DateOnly), e.Title().Plain())
	}
	fmt.Println(history.Kind, history.Verdict())
	// Output:
	// 2003-12-13 Atom-Powered Robots Run Amok
	// 2003-12-01 Robots Scheduled To Run Amok (corrected)
	// 2003-11-03 Star City
	// 2003-10-27 The Engine That Does More
	// archived whole
}

func ExampleHistory_Verdict() {
	client, home, stop := site.Start()
	defer stop()
	for _, path := range []string{site.Complete, site.Plain, site.Paged, site.Broken} {
		history, err := client.Fetch(context.Background(), home+path)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(history.Kind, history.Verdict())
		for _, gap := range history.Gaps {
			fmt.Println("missing:", gap.Reason, strings.TrimPrefix(gap.URL, home))
		}
	}
	// Output:
	// complete whole
	// plain window
	// paged lossy
	// archived partial
	// missing: status /gone/2003.atom
}

// A walk yields document by document, so memory does not grow with the history. A break
// leaves the rest unread.
func ExampleClient_Walk() {
	client, home, stop := site.Start()
	defer stop()
	client.Pace = 10 * time.Millisecond
	client.Budget = feedhistory.Budget{Documents: 100}
	for doc, err := range client.Walk(context.Background(), home+site.Archived, nil) {
		if err != nil {
			log.Fatal(err) // the first document's error, or a *feedhistory.Gap
		}
		fmt.Println(strings.TrimPrefix(doc.URL, home), len(doc.Entries))
		if doc.Archive {
			break
		}
	}
	// Output:
	// /liftoff/index.atom 2
	// /liftoff/2003/11.atom 2
}

// A program that has just read the feed, for instance to recognise it, need not request it
// again. A streaming Merger gives the verdict of a walk, and keeps no entries.
func ExampleMerger() {
	client, home, stop := site.Start()
	defer stop()
	first, err := client.Get(context.Background(), home+site.Archived)
	if err != nil {
		log.Fatal(err)
	}
	merger := feedhistory.Merger{Streaming: true}
	entries := 0
	for doc, err := range client.Walk(context.Background(), first.URL, &feedhistory.WalkOptions{First: first}) {
		if doc != nil {
			entries += len(doc.Entries) // store them
		}
		if !merger.Add(doc, err) {
			break
		}
	}
	history, err := merger.History()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entries, "entries,", len(history.Entries), "in memory:", history.Verdict())
	// Output: 5 entries, 0 in memory: whole
}

func ExampleParse() {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"
		xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:a="http://www.w3.org/2005/Atom">
		<channel><title>Liftoff News</title><fh:archive/>
		<a:link rel="prev-archive" href="04.rss"/>
		<item><title>Q & A</title><guid>1</guid></item></channel></rss>`), "http://example.org/2003/05.rss")
	if err != nil {
		log.Fatal(err)
	}
	older, _ := doc.Older()
	fmt.Println(doc.Kind(), older.Href)
	for _, note := range doc.Notes {
		fmt.Printf("line %d: %s\n", note.Line, note.Code)
	}
	// Output:
	// archived http://example.org/2003/04.rss
	// line 5: bare-ampersand
}

func ExampleEntry_Decode() {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0"
		xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
		<item><guid isPermaLink="false">1</guid><title>Episode</title><itunes:duration>10:00</itunes:duration>
		<enclosure url="1.mp3" type="audio/mpeg" length="1337"/></item></channel></rss>`), "http://example.org/feed.rss")
	if err != nil {
		log.Fatal(err)
	}
	item, err := doc.Entries[0].Decode() // a gofeed.Item
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(item.ITunesExt.Duration, item.Enclosures[0].URL)
	// Output: 10:00 http://example.org/1.mp3
}

// A program that reads feeds with gofeed gets the whole history by changing two lines.
func ExampleHistory_Feed() {
	client, home, stop := site.Start()
	defer stop()
	url := home + site.Archived

	// feed, err := gofeed.NewParser().ParseURL(url)
	history, err := client.Fetch(context.Background(), url)
	if err != nil {
		log.Fatal(err)
	}
	feed := history.Feed() // a *gofeed.Feed

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

func ExampleWriteAtom() {
	client, home, stop := site.Start()
	defer stop()
	history, err := client.Fetch(context.Background(), home+site.Paged)
	if err != nil {
		log.Fatal(err)
	}
	doc := history.Document()
	doc.Entries = append(history.PseudoEntries(), doc.Entries...) // for people: what is missing, and why
	var b strings.Builder
	if err := feedhistory.WriteAtom(&b, doc); err != nil {
		log.Fatal(err)
	}
	doc, err = feedhistory.Parse(strings.NewReader(b.String()), "")
	fmt.Println(doc.Format, doc.Title, len(doc.Entries), err)
	// Output: atom Search: eclipse 2 <nil>
}

// tracer shows what tracing needs: a RoundTripper that wraps another.
type tracer struct{ next *http.Transport }

func (t tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	fmt.Fprintln(os.Stdout, req.Method, req.URL.Path)
	return t.next.RoundTrip(req)
}

func (t tracer) CloseIdleConnections() { t.next.CloseIdleConnections() }

func ExampleClient_tracing() {
	client, home, stop := site.Start()
	defer stop()
	client.Transport = tracer{new(http.Transport)}
	if _, err := client.Get(context.Background(), home+site.Complete); err != nil {
		log.Fatal(err)
	}
	// Output: GET /queue.atom
}
