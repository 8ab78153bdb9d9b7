// Modifiedrange serves a collection by ranges of modification times, and keeps a copy of
// it up to date.
//
//	go run ./examples/modifiedrange [-wire]
//
// With -wire it shows the exchange on the wire.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/examples/wire"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

func main() { wire.Main(run) }

// produce serves a collection. A real program would query a database.
func produce(items *[]modifiedrange.Item, now func() time.Time) http.Handler {
	return &modifiedrange.Handler{
		Limit: 2, Now: now, Head: &feedhistory.Document{ID: "urn:vehicles", Title: "Vehicles"},
		Items: func(_ context.Context, start, end time.Time, limit int) (found []modifiedrange.Item, err error) {
			for _, item := range *items { // the most recently modified first
				if (modifiedrange.Range{Start: start, End: end}).Contains(item.Modified) && (limit == 0 || len(found) < limit) {
					found = append(found, item)
				}
			}
			return found, nil
		},
	}
}

// consume prints the modifications since the last time, and returns the mark to continue
// from next time.
func consume(ctx context.Context, out io.Writer, client *feedhistory.Client, mark modifiedrange.Mark) (modifiedrange.Mark, error) {
	h := modifiedrange.Harvester{HTTP: client, URL: wire.Site + "collection"}
	harvest := h.Harvest(ctx, mark)
	history, err := feedhistory.Merge(harvest.Readings())
	if err != nil {
		return mark, err
	}
	for _, e := range history.Entries {
		fmt.Fprintln(out, e.ID, e.Title().Plain())
	}
	next, _ := harvest.Mark() // unchanged if something is missing
	return next, nil
}

// run copies a collection of three entries, and then the changed one.
func run(ctx context.Context, out, exchange io.Writer) (err error) {
	now := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	var items []modifiedrange.Item
	handler := produce(&items, func() time.Time { return now })
	client, stop := wire.Serve(handler, exchange, "Date", "Modified-Range")
	defer stop()

	for _, title := range []string{"Planes", "Trains", "Automobiles"} {
		if items, err = add(items, title, "first", now.Add(-time.Duration(3-len(items))*time.Hour)); err != nil {
			return err
		}
	}
	var mark modifiedrange.Mark
	if mark, err = consume(ctx, out, client, mark); err != nil {
		return err
	}
	now = now.Add(time.Hour)
	if items, err = add(items, "Trains", "second", now); err != nil {
		return err
	}
	_, err = consume(ctx, out, client, mark)
	return err
}

// add puts an item at the front of a collection, and removes the one it replaces.
func add(items []modifiedrange.Item, title, text string, at time.Time) ([]modifiedrange.Item, error) {
	e, err := compose.Draft{ID: "urn:" + title, Title: feedhistory.Text{Body: title + ", " + text}, Updated: at}.Entry()
	if err != nil {
		return nil, err
	}
	all := []modifiedrange.Item{{Modified: at, Entry: e}}
	for _, item := range items {
		if item.Entry.ID != e.ID {
			all = append(all, item)
		}
	}
	return all, nil
}
