package mirror_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"

	"github.com/feedhistory/feedhistory/compose"
	website "github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
)

// xmlOf returns the current entries of a Reading, as they were published.
func xmlOf(r *mirror.Reading) ([]byte, error) {
	doc, err := r.Document()
	if err != nil {
		return nil, err
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
