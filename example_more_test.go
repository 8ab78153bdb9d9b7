package feedhistory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

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

// A document is written in its own format, with an entry that has changed.
func ExampleWrite() {
	doc := parse(small)
	doc.Entries[0].Updated = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	if err := feedhistory.Write(os.Stdout, doc); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <?xml version="1.0" encoding="utf-8"?>
	// <rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
	// <title>Small</title>
	// <link>https://example.org/feed</link>
	// <description>Small</description>
	// <lastBuildDate>Thu, 29 Feb 2024 12:00:00 GMT</lastBuildDate>
	// <atom:link rel="hub" href="https://hub.example.org/"/>
	// <item>
	// <title>One</title>
	// <guid isPermaLink="false">urn:1</guid>
	// <pubDate>Sat, 13 Dec 2003 18:30:02 +0000</pubDate>
	// <atom:updated>2024-02-29T12:00:00Z</atom:updated>
	// </item>
	// </channel></rss>
}

// A draft of an entry can be edited, and published again.
func ExampleEntry_Draft() {
	draft := parse(small).Entries[0].Draft()
	draft.Title.Body, draft.Updated = "One, corrected", time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	entry, err := draft.Entry()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entry.ID, entry.Title().Plain(), entry.Published.Year())
	// Output: urn:1 One, corrected 2003
}

func ExampleDocument_NextPoll() {
	doc := parse(small)
	doc.Response.Received = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	fmt.Println(doc.NextPoll().Format(time.TimeOnly))
	hub, ok := doc.Links.Rel(feedhistory.RelHub)
	fmt.Println(hub.Href, ok)
	// Output:
	// 13:30:00
	// https://hub.example.org/ true
}

// Damage tells whether mending a document may have lost an older part of the feed.
func ExampleDocument_Damage() {
	doc := parse(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><entry><id>urn:2</id></entry></feed>`)
	for _, note := range doc.Notes {
		fmt.Println(note.Line, note.Code)
	}
	fmt.Println(doc.Damage(doc.Kind()) != nil, len(doc.Received()))
	// Output:
	// 1 unclosed-element
	// false 99
}

// The rules say why a request was refused.
func ExampleRefusedError() {
	explain := func(err error) string {
		refused, ok := errors.AsType[*feedhistory.RefusedError](err)
		if !ok {
			return "not refused"
		}
		switch refused.Rule {
		case feedhistory.RuleURL, feedhistory.RuleLength, feedhistory.RuleScheme:
			return "the address is no address of a feed"
		case feedhistory.RuleMethod, feedhistory.RuleHeader:
			return "the program asked for it in an impossible way"
		}
		return "it is not safe: " + refused.Rule
	}
	_, err := feedhistory.Fetch(context.Background(), "ftp://example.org/feed")
	fmt.Println(explain(err))
	if _, ok := errors.AsType[*feedhistory.EncodingError](err); ok {
		fmt.Println("the server compressed the feed in an unknown way")
	}
	// Output: the address is no address of a feed
}

// Each gap has a reason, and each reason advice.
func ExampleReason() {
	for r := feedhistory.ReasonUnknown; r <= feedhistory.ReasonForeign; r++ {
		if r == feedhistory.ReasonDeclared || r == feedhistory.ReasonMissedWindow {
			fmt.Printf("%v: %s\n", r, r.Advice())
		}
	}
	fmt.Println(feedhistory.Reason(0) == feedhistory.ReasonUnknown)
	// Output:
	// missed-window: poll more often, before the feed drops its older entries
	// declared: ask the publisher, whose own document says so; the original feed may still have it
	// true
}
