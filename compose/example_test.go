package compose_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/examples/site"
)

const small = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>Small</title><ttl>90</ttl>
<atom:link rel="hub" href="https://hub.example.org/"/>
<item><guid isPermaLink="false">urn:1</guid><title>One</title><pubDate>Sat, 13 Dec 2003 18:30:02 GMT</pubDate></item></channel></rss>`

// document reads a document of these examples.
func document(text string) *feedhistory.Document {
	doc, err := feedhistory.Parse(strings.NewReader(text), "https://example.org/feed")
	if err != nil {
		log.Fatal(err)
	}
	return doc
}

// A document is written in its own format, with an entry that has changed.
func ExampleWrite() {
	doc := document(small)
	doc.Entries[0].Updated = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	if err := compose.Write(os.Stdout, doc); err != nil {
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
	// <ttl>90</ttl>
	// <item>
	// <title>One</title>
	// <guid isPermaLink="false">urn:1</guid>
	// <pubDate>Sat, 13 Dec 2003 18:30:02 +0000</pubDate>
	// <atom:updated>2024-02-29T12:00:00Z</atom:updated>
	// </item>
	// </channel></rss>
}

// A draft of an entry can be edited, and published again.
func ExampleDraftOf() {
	draft := compose.DraftOf(document(small).Entries[0])
	draft.Title.Body, draft.Updated = "One, corrected", time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	entry, err := draft.Entry()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entry.ID, entry.Title().Plain(), entry.Published.Year())
	// Output: urn:1 One, corrected 2003
}

func ExampleWriteAtom() {
	client, home, stop := site.Start()
	defer stop()
	history, err := client.Fetch(context.Background(), home+site.Paged)
	if err != nil {
		log.Fatal(err)
	}
	doc := compose.History(history)
	doc.Entries = append(compose.PseudoEntries(history), doc.Entries...) // for people: what is missing, and why
	var b strings.Builder
	if err := compose.WriteAtom(&b, doc); err != nil {
		log.Fatal(err)
	}
	doc, err = feedhistory.Parse(strings.NewReader(b.String()), "")
	fmt.Println(doc.Format, doc.Title, len(doc.Entries), err)
	// Output: atom Search: eclipse 2 <nil>
}
