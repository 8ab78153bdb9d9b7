package check_test

import (
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
)

// A publisher's test checks its own output.
func ExampleDocument() {
	const feed = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">
  <title>Example</title><id>https://example.org/</id>
  <updated>2003-12-13T18:30:02Z</updated>
  <link rel="self" href="feed.atom"/>
  <link rel="next" href="feed.atom?page=2"/>
  <fh:complete/>
</feed>`
	doc, err := feedhistory.Parse(strings.NewReader(feed), "https://example.org/feed.atom")
	for _, f := range check.Document(doc, err, check.RFC5005) {
		fmt.Println(f)
		fmt.Println(f.Quote.After)
		fmt.Println(f.Hint)
	}
	// Output:
	// https://example.org/feed.atom:5:3: error: the document is complete, but has a link next to https://example.org/feed.atom?page=2 [complete-with-history-link, RFC 5005 §1, 5005#26]
	// <link rel="next" href="feed.atom?page=2"/>
	// remove the link, or remove fh:complete if there are entries elsewhere
}

// The documents of a chain are checked one by one, newest first.
func ExampleChain() {
	const namespaces = `xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"`
	documents := []struct{ url, text string }{
		{"https://example.org/feed.atom", `<feed ` + namespaces + `><id>urn:feed</id><title>F</title><updated>2003-12-13T18:30:02Z</updated>
<link rel="self" href="feed.atom"/><link rel="prev-archive" href="2003.atom"/>
<entry><id>urn:1</id><title>One</title><updated>2003-12-13T18:30:02Z</updated></entry></feed>`},
		{"https://example.org/2003.atom", `<feed ` + namespaces + `><id>urn:feed</id><title>F</title><updated>2003-12-31T00:00:00Z</updated><fh:archive/>
<link rel="self" href="2003.atom"/><link rel="current" href="feed.atom"/>
<entry><id>urn:2</id><title>One</title><updated>2003-12-31T00:00:00Z</updated></entry></feed>`},
	}
	var chain check.Chain
	var found []check.Finding
	for _, d := range documents {
		doc, err := feedhistory.Parse(strings.NewReader(d.text), d.url)
		if err != nil {
			fmt.Println(err)
			return
		}
		found = append(found, chain.Add(doc)...)
	}
	found = append(found, chain.Finish()...)
	for _, f := range found {
		fmt.Println(f)
	}
	// Output:
	// https://example.org/feed.atom:2:36: error: prev-archive leads to https://example.org/2003.atom, whose entries are from 2003-12-31T00:00:00Z on, but those here end at 2003-12-13T18:30:02Z [prev-archive-newer, RFC 5005 §4]
}

// Rules are for documentation, and for programs that let users choose.
func ExampleRules() {
	counts := map[check.Scope]int{}
	for _, r := range check.Rules() {
		if r.Level == check.Error {
			counts[r.Scope]++
		}
	}
	fmt.Println(counts[check.OneDocument] > 0, counts[check.WholeChain] > 0, counts[check.PagesOfEntities] > 0)
	// Output: true true true
}

// The rules that a Sample checks request the records themselves.
func ExampleRules_representations() {
	for _, r := range check.Rules() {
		if r.Scope == check.Representations {
			fmt.Println(r.Level, r.Code, r.Clause)
		}
	}
	// Output:
	// error pmh-representation-type Atom-PMH §Active entries; atom-pmh#15
	// error pmh-representation-missing Atom-PMH §Active entries; atom-pmh#16
	// warning pmh-representation-unavailable Atom-PMH §Active entries; atom-pmh#16
	// error pmh-self-differs Atom-PMH §Atom-RDC; atom-pmh#34
}
