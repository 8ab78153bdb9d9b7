package feedhistory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
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
		fmt.Println(e.Time().Format(time.DateOnly), e.Title().Plain())
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
	for r, err := range client.Walk(context.Background(), home+site.Archived) {
		if err != nil {
			log.Fatal(err) // the first document's, or the context's
		}
		for _, gap := range r.Gaps {
			fmt.Println("missing:", gap)
		}
		doc := r.Document
		if doc == nil {
			continue // it could not be read, or the walk is at its end
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

// A Merger given documents without entries gives the verdict of a walk, and keeps none.
func ExampleMerger() {
	client, home, stop := site.Start()
	defer stop()
	var merger feedhistory.Merger
	entries := 0
	for r, err := range client.Walk(context.Background(), home+site.Archived) {
		if r != nil && r.Document != nil {
			entries += len(r.Document.Entries) // store them
			r.Document.Entries = nil
		}
		if !merger.Add(r, err) {
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
	older, _ := doc.Links.Rel(doc.Kind().Older())
	fmt.Println(doc.Kind(), older.Href)
	for _, note := range doc.Notes {
		fmt.Printf("line %d: %s\n", note.Line, note.Code)
	}
	// Output:
	// archived http://example.org/2003/04.rss
	// line 5: bare-ampersand
}

// tracer shows what tracing needs: a RoundTripper that wraps another.
type tracer struct{ next http.RoundTripper }

func (t tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	fmt.Fprintln(os.Stdout, req.Method, req.URL.Path)
	return t.next.RoundTrip(req)
}

func ExampleClient_tracing() {
	client, home, stop := site.Start()
	defer stop()
	client.Wrap = func(next http.RoundTripper) http.RoundTripper { return tracer{next} }
	if _, err := client.Get(context.Background(), home+site.Complete); err != nil {
		log.Fatal(err)
	}
	// Output: GET /queue.atom
}

// Documents that only the proxy can reach come through it.
func ExampleClient_proxy() {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the proxy is asked for", r.URL)
		_, _ = w.Write([]byte(small))
	}))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		log.Fatal(err)
	}
	client := &feedhistory.Client{Proxy: http.ProxyURL(address)} // or http.ProxyFromEnvironment
	defer client.CloseIdle()
	doc, err := client.Get(context.Background(), "http://feeds.example.org/small")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Title)
	// Output:
	// the proxy is asked for http://feeds.example.org/small
	// Small
}

// An episode is downloaded by the rules of the Client that reads the feed.
func ExampleClient_HTTPClient() {
	client, home, stop := site.Start()
	defer stop()
	client.Credentials = []feedhistory.Credential{{Origin: home, User: "ada", Password: "secret"}}
	resp, err := client.HTTPClient().Get(home + "/episodes/1.mp3")
	if err != nil {
		log.Fatal(err) // a *feedhistory.FetchError says why there was no answer
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		failed := feedhistory.NewFetchError(resp)
		fmt.Println(failed.Status, errors.Is(failed, fs.ErrNotExist))
	}
	// Output: 404 true
}

// parse reads a document of these examples.
func parse(text string) *feedhistory.Document {
	doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feed")
	if err != nil {
		log.Fatal(err)
	}
	return doc
}

const small = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>Small</title><ttl>90</ttl>
<atom:link rel="hub" href="https://hub.example.org/"/>
<item><guid isPermaLink="false">urn:1</guid><title>One</title><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item></channel></rss>`

func ExampleSchedule_Next() {
	doc := parse(small)
	doc.Response.Received = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	fmt.Println(doc.Schedule.Next(doc.Response).Format(time.TimeOnly))
	hub, ok := doc.Links.Rel("hub")
	fmt.Println(hub.Href, ok)
	// Output:
	// 13:30:00
	// https://hub.example.org/ true
}

// Missing has a gap if mending a document may have lost an older part of the feed.
func ExampleDocument_Missing() {
	doc := parse(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><entry><id>urn:2</id></entry></feed>`)
	for _, note := range doc.Notes {
		fmt.Println(note.Line, note.Code)
	}
	fmt.Println(len(doc.Missing(doc.Kind())), len(doc.Text()))
	// Output:
	// 1 unclosed-element
	// 0 99
}

// One error has all about a request that failed.
func ExampleFetchError() {
	explain := func(err error) string {
		failed, ok := errors.AsType[*feedhistory.FetchError](err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "there is nothing"
		case errors.Is(err, feedhistory.ErrPrivateAddress), errors.Is(err, feedhistory.ErrUserinfo):
			return "it is not safe"
		case ok && !failed.RetryAt.IsZero():
			return "the host wants to be left alone"
		case ok && failed.Reason == feedhistory.ReasonRefused:
			return "the address is no address of a feed"
		}
		return "try again later"
	}
	_, err := feedhistory.Fetch(context.Background(), "ftp://example.org/feed")
	fmt.Println(explain(err))
	_, err = feedhistory.Fetch(context.Background(), "http://localhost/feed")
	fmt.Println(explain(err))
	// Output:
	// the address is no address of a feed
	// it is not safe
}

// Each gap has a reason, and each reason advice.
func ExampleReason() {
	for _, r := range []feedhistory.Reason{feedhistory.ReasonMissedWindow, feedhistory.ReasonDeclared, feedhistory.ReasonUnknown} {
		fmt.Printf("%s: %s\n", r, r.Advice())
	}
	// Output:
	// missed-window: poll more often, before the feed drops its older entries
	// declared: ask the publisher, whose own document says so; the original feed may still have it
	// unknown: try again; the reason is unknown
}
