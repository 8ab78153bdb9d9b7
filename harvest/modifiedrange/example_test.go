package modifiedrange_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// A collection has one item, and a client keeps up with it.
func Example() {
	changed := time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)
	entry, err := feedhistory.Draft{ID: "urn:1", Title: feedhistory.Text{Body: "Planes"}, Updated: changed}.Entry()
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(&modifiedrange.Handler{
		Items: func(_ context.Context, start, end time.Time, _ int) ([]modifiedrange.Item, error) {
			if !(modifiedrange.Range{Start: start, End: end}).Contains(changed) {
				return nil, nil
			}
			return []modifiedrange.Item{{Modified: changed, Entry: entry}}, nil
		},
	})
	defer server.Close()

	client := modifiedrange.Harvester{
		URL:  server.URL,
		HTTP: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}},
	}
	defer client.HTTP.CloseIdle()
	var state modifiedrange.Mark // a program stores it
	for range 2 {
		sync := client.Harvest(context.Background(), state)
		history, err := feedhistory.Merge(sync.Documents())
		if err != nil {
			panic(err)
		}
		for _, e := range history.Entries {
			fmt.Println("changed:", e.Title().Body)
		}
		next, whole := sync.Mark()
		fmt.Println("whole:", whole)
		state = next
	}
	// Output:
	// changed: Planes
	// whole: true
	// whole: true
}
