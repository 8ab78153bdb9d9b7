package publish_test

import (
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// Entries are exported as lines of JSON, and imported without loss: with the markup and
// all elements of the publisher, even for an entry without an id.
func ExampleLine_Original() {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss version="2.0" xmlns:x="https://example.org/ns"><channel><title>Small</title>
<item><title>One</title><link>https://example.org/1</link><x:mood>calm</x:mood></item></channel></rss>`), "https://example.org/feed.rss")
	if err != nil {
		log.Fatal(err)
	}

	var lines strings.Builder
	out := json.NewEncoder(&lines)
	for _, e := range doc.Entries {
		line := publish.NewLine(e)
		line.Feed, line.Raw = doc.URL, publish.NewRawEntry(e)
		if err := out.Encode(line); err != nil {
			log.Fatal(err)
		}
	}

	for line, err := range publish.Lines(strings.NewReader(lines.String())) {
		if err != nil {
			log.Fatal(err)
		}
		e, err := line.Original() // line.Entry() would have an id, and an update time
		if err != nil {
			log.Fatal(err)
		}
		given := doc.Entries[0]
		fmt.Println(e.ID, e.WeakID, e.Updated.IsZero())
		fmt.Println(string(e.XML()) == string(given.XML()), line.Raw.Digest == given.Digest())
	}
	// Output:
	// https://example.org/1 true true
	// true true
}
