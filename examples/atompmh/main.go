// Atompmh publishes a pool of metadata records by Atom-PMH, and harvests it: first all
// of it, then the changes.
//
//	go run ./examples/atompmh [-wire]
//
// With -wire it shows the exchange on the wire.
package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/wire"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/publish"
)

func main() { wire.Main(run) }

// produce publishes the changes of a pool of records, in a directory any web server can
// serve.
func produce(ctx context.Context, dir string, records []atompmh.Item) error {
	p := atompmh.Producer{
		Output: publish.Dir{Path: dir}, Base: wire.Site + "records/",
		Pool: func(context.Context, time.Time) iter.Seq2[atompmh.Item, error] {
			return func(yield func(atompmh.Item, error) bool) {
				for _, r := range records {
					if !yield(r, nil) {
						return
					}
				}
			}
		},
	}
	return p.Update(ctx)
}

// consume prints the changes since the last time, and returns the mark to continue from
// next time.
func consume(ctx context.Context, out io.Writer, client *feedhistory.Client, mark atompmh.Mark) (atompmh.Mark, error) {
	h := atompmh.Harvester{HTTP: client, URL: wire.Site + "records/feed.atom"}
	harvest := h.Harvest(ctx, mark)
	for change, err := range harvest.Changes() {
		if err != nil {
			return mark, err
		}
		fmt.Fprintln(out, change.Kind, change.ID, change.Time.UTC().Format(time.DateOnly))
	}
	next, _ := harvest.Mark() // unchanged if something is missing
	return next, nil
}

// run creates records, harvests them, deletes one, and harvests again.
func run(ctx context.Context, out, exchange io.Writer) error {
	dir, err := os.MkdirTemp("", "records")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	handler := &publish.Handler{FS: publish.Dir{Path: dir}}
	client, stop := wire.Serve(http.StripPrefix("/records", handler), exchange, "If-None-Match", "Etag")
	defer stop()

	day := time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC)
	records := []atompmh.Item{
		{ID: "urn:record:1", Modified: day, Title: "Crocodiles", Representations: rdf("crocodiles")},
		{ID: "urn:record:2", Modified: day, Title: "Turtles", Representations: rdf("turtles")},
	}
	var mark atompmh.Mark
	for _, change := range []func(){
		func() {},
		func() { records[0].Deleted, records[0].Modified = true, day.AddDate(0, 0, 1) },
		func() {}, // which costs one conditional request
	} {
		change()
		if err := produce(ctx, dir, records); err != nil {
			return err
		}
		if mark, err = consume(ctx, out, client, mark); err != nil {
			return err
		}
	}
	return nil
}

func rdf(name string) []atompmh.Representation {
	return []atompmh.Representation{{URL: wire.Site + name + ".rdf", Type: "application/rdf+xml"}}
}
