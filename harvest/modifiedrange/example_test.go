package modifiedrange_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// A collection has one item, and a client keeps up with it.
func Example() {
	changed := time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)
	entry, err := compose.Draft{ID: "urn:1", Title: feedhistory.Text{Body: "Planes"}, Updated: changed}.Entry()
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

	h := modifiedrange.Harvester{
		URL: server.URL, Dialect: modifiedrange.AnyDialect,
		HTTP: &feedhistory.Client{AllowPrivate: true},
	}
	defer h.HTTP.CloseIdle()
	var mark modifiedrange.Mark // a program stores it
	for range 2 {
		harvest := h.Harvest(context.Background(), mark)
		history, err := feedhistory.Merge(harvest.Readings())
		if err != nil {
			panic(err)
		}
		for _, e := range history.Entries {
			fmt.Println("changed:", e.Title().Body)
		}
		next, whole := harvest.Mark()
		fmt.Println("whole:", whole, "in the dialect", harvest.Dialect())
		mark = next
	}
	// Output:
	// changed: Planes
	// whole: true in the dialect modified-range
	// whole: true in the dialect modified-range
}
