package feedhistory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/site"
)

// A shelf is a program's own store of one feed. Each document changes it in one
// transaction.
type shelf struct {
	entries         map[string]*feedhistory.Entry
	processed       map[string]bool // archive documents, by the URL requested
	archives, pages []string        // the documents to read next: WalkOptions.Pending and PendingPages
}

// read reads what is new, and continues where earlier walks ended. It stops after a
// number of documents, as though the program were interrupted.
func (s *shelf) read(client *feedhistory.Client, url string, most int) (documents int) {
	fresh, resumed := false, false // the latest page had a new entry; it, or one before it, was pending
	var kind feedhistory.Kind
	for doc, err := range client.Walk(context.Background(), url, &feedhistory.WalkOptions{
		Processed:    func(url string) bool { return s.processed[url] },
		Last:         func(*feedhistory.Document) bool { return !fresh && !resumed },
		Pending:      slices.Clone(s.archives),
		PendingPages: slices.Clone(s.pages),
	}) {
		if gap, ok := errors.AsType[*feedhistory.Gap](err); ok {
			fmt.Println("missing:", gap) // it stays pending
			continue
		}
		if err != nil {
			log.Fatal(err) // the feed could not be read
		}
		if documents++; documents == 1 {
			kind = doc.Kind()
		}
		here := doc.Response.Requested
		isHere := func(pending string) bool { return pending == here }
		older, _ := doc.Links.Rel(kind.Older())

		// From here to the end of the loop: one transaction.
		resumed = resumed || slices.Contains(s.pages, here)
		fresh = false
		for _, e := range doc.Entries {
			fresh = fresh || s.entries[e.ID] == nil // before it is stored
			s.entries[e.ID] = e
		}
		s.archives, s.pages = slices.DeleteFunc(s.archives, isHere), slices.DeleteFunc(s.pages, isHere)
		switch {
		case kind == feedhistory.Archived:
			s.processed[here] = documents > 1 // the first is the subscription document
			if older.Href != "" && !s.processed[older.Href] && !slices.Contains(s.archives, older.Href) {
				s.archives = append(s.archives, older.Href)
			}
		case kind == feedhistory.Paged && (fresh || resumed): // the same as in Last
			if older.Href != "" && !slices.Contains(s.pages, older.Href) {
				s.pages = append(s.pages, older.Href)
			}
		}
		if documents == most {
			break
		}
	}
	return documents
}

// A program with its own store walks an archived feed, and a paged one. The first walks are
// interrupted, the second ones read the rest, and the third ones only look for news.
func ExampleWalkOptions() {
	client, home, stop := site.Start()
	defer stop()
	for _, feed := range []struct {
		path        string
		interrupted int
	}{{site.Archived, 2}, {site.Paged, 1}} {
		s := &shelf{entries: map[string]*feedhistory.Entry{}, processed: map[string]bool{}}
		for _, most := range []int{feed.interrupted, 100, 100} {
			documents := s.read(client, home+feed.path, most)
			fmt.Println(documents, "documents,", len(s.entries), "entries,", len(s.archives)+len(s.pages), "pending")
		}
	}
	// Output:
	// 2 documents, 3 entries, 1 pending
	// 2 documents, 4 entries, 0 pending
	// 1 documents, 4 entries, 0 pending
	// 1 documents, 1 entries, 1 pending
	// 2 documents, 2 entries, 0 pending
	// 1 documents, 2 entries, 0 pending
}
