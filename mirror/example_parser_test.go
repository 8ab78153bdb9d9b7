package mirror_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	website "github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
)

// xmlOf returns a document of the feed with the current entries of a Reading, as they were
// published, in RSS if one of them was, else in Atom.
func xmlOf(r *mirror.Reading) ([]byte, error) {
	doc, err := r.Ledger.Feed().Document()
	if err != nil {
		doc = &feedhistory.Document{} // the head was never read
	}
	doc.Format = feedhistory.FormatAtom
	for _, change := range slices.Concat(r.Added, r.Changed) {
		e, err := change.Entry()
		if err != nil {
			return nil, err
		}
		if doc.Entries = append(doc.Entries, e); change.Content.Format == feedhistory.FormatRSS {
			doc.Format = feedhistory.FormatRSS
		}
	}
	var text bytes.Buffer
	err = compose.Write(&text, doc)
	return text.Bytes(), err
}

// A program with a parser of its own gives it the entries as they were published.
func ExampleMirror_Poll_parser() {
	client, home, stop := website.Start()
	defer stop()
	m := &mirror.Mirror{Client: client}
	for r, err := range m.Poll(context.Background(), home+website.Archived, mirror.Ledger{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := xmlOf(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		var feed struct { // the parser
			Titles []string `xml:"entry>title"`
		}
		if err := xml.Unmarshal(text, &feed); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%q\n", feed.Titles)
	}
	// Output:
	// ["Atom-Powered Robots Run Amok" "Robots Scheduled To Run Amok (corrected)"]
	// ["Star City"]
	// ["The Engine That Does More"]
	// []
}
