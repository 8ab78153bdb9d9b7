package atompmh_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/publish"
)

// A pool of records is published, and a consumer keeps up with it.
func Example() {
	dir, err := os.MkdirTemp("", "records")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server := httptest.NewServer(&publish.Handler{FS: publish.Dir{Path: dir}})
	defer server.Close()

	day := time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC)
	rdf := func(name string) []atompmh.Representation {
		return []atompmh.Representation{{URL: "https://example.org/" + name + ".rdf", Type: "application/rdf+xml"}}
	}
	pool := []atompmh.Item{
		{ID: "urn:record:1", Modified: day, Title: "Crocodiles", Representations: rdf("crocodiles")},
		{ID: "urn:record:2", Modified: day, Title: "Turtles", Representations: rdf("turtles")},
	}
	producer := atompmh.Producer{
		Output: publish.Dir{Path: dir}, Base: server.URL,
		Pool: func(_ context.Context, since time.Time) iter.Seq2[atompmh.Item, error] {
			return func(yield func(atompmh.Item, error) bool) {
				for _, item := range pool {
					if !item.Modified.Before(since) && !yield(item, nil) {
						return
					}
				}
			}
		},
	}
	harvester := atompmh.Harvester{
		URL:  producer.URL(),
		HTTP: &feedhistory.Client{AllowPrivate: true},
	}
	defer harvester.HTTP.CloseIdle()
	var mark atompmh.Mark // a program stores it
	for range 2 {
		if err := producer.Update(context.Background()); err != nil {
			panic(err)
		}
		harvest := harvester.Harvest(context.Background(), mark)
		for change, err := range harvest.Changes() {
			if err != nil {
				panic(err)
			}
			fmt.Println(change.Kind, change.Entry.Title().Body)
		}
		mark, _ = harvest.Mark()
		pool[0].Deleted, pool[0].Modified = true, day.Add(time.Hour)
	}
	// Output:
	// record Crocodiles
	// record Turtles
	// deleted Crocodiles
}

// The records themselves are fetched, in the preferred format.
func ExampleHarvester_Fetch() {
	ctx, out := context.Background(), &publish.MemoryOutput{}
	mux := http.NewServeMux()
	mux.Handle("/", &publish.Handler{FS: out})
	mux.HandleFunc("/1.rdf", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rdf+xml")
		fmt.Fprint(w, "<rdf/>")
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	producer := atompmh.Producer{Output: out, Base: server.URL, Pool: func(context.Context, time.Time) iter.Seq2[atompmh.Item, error] {
		return func(yield func(atompmh.Item, error) bool) {
			for _, name := range []string{"1", "2"} { // the second is not there
				yield(atompmh.Item{
					ID: "urn:record:" + name, Modified: time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC), Title: "Record " + name,
					Representations: []atompmh.Representation{{URL: server.URL + "/" + name + ".rdf", Type: "application/rdf+xml"}},
				}, nil)
			}
		}
	}}
	if err := producer.Update(ctx); err != nil {
		log.Fatal(err)
	}

	h := atompmh.Harvester{
		URL:    producer.URL(),
		Accept: []string{"application/rdf+xml", "text/html"},
		HTTP:   &feedhistory.Client{AllowPrivate: true},
	}
	defer h.HTTP.CloseIdle()
	harvest := h.Harvest(ctx, atompmh.Mark{})
	for record, err := range h.Fetch(ctx, harvest.Changes(), nil) {
		switch {
		case err != nil:
			fmt.Println("something is missing:", err)
		case record.Kind != atompmh.Record || record.Gone:
			fmt.Println("not there any more:", record.ID)
		case record.Err != nil:
			fmt.Println("to be fetched again later:", record.ID, feedhistory.Describe(record.Err))
		default:
			fmt.Println(record.ID, string(record.Body), record.Type)
		}
	}
	// Unordered output:
	// urn:record:1 <rdf/> application/rdf+xml
	// not there any more: urn:record:2
}

// pool returns a pool of the given records.
func pool(items ...atompmh.Item) func(context.Context, time.Time) iter.Seq2[atompmh.Item, error] {
	return func(_ context.Context, since time.Time) iter.Seq2[atompmh.Item, error] {
		return func(yield func(atompmh.Item, error) bool) {
			for _, item := range items {
				if !item.Modified.Before(since) && !yield(item, nil) {
					return
				}
			}
		}
	}
}

// A feed with a deletion entry cannot show deletions by absence from then on.
func ExampleProducer_deletions() {
	ctx := context.Background()
	producer := atompmh.Producer{
		Output: &publish.MemoryOutput{}, Base: "https://example.org/",
		Pool: pool(atompmh.Item{ID: "urn:record:1", Modified: time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC), Deleted: true}),
	}
	if err := producer.Update(ctx); err != nil {
		panic(err)
	}
	producer.ByAbsence = true
	if e, ok := errors.AsType[*harvest.Error](producer.Update(ctx)); ok && e.Code == harvest.ErrDeletions {
		fmt.Println("the feed shows deletions by", e.Item)
	}
	// Output: the feed shows deletions by entry
}

// A record has no representation of an accepted type: by default it counts as deleted.
func ExampleHarvester_unacceptable() {
	ctx, out := context.Background(), &publish.MemoryOutput{}
	server := httptest.NewServer(&publish.Handler{FS: out})
	defer server.Close()
	producer := atompmh.Producer{Output: out, Base: server.URL, Pool: pool(atompmh.Item{
		ID: "urn:record:1", Modified: time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC), Title: "Crocodiles",
		Representations: []atompmh.Representation{{URL: "https://example.org/1.rdf", Type: "application/rdf+xml"}},
	})}
	if err := producer.Update(ctx); err != nil {
		panic(err)
	}
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	for _, keep := range []bool{false, true} {
		h := atompmh.Harvester{URL: producer.URL(), HTTP: client, Accept: []string{"text/html"}, KeepUnacceptable: keep}
		harvest := h.Harvest(ctx, atompmh.Mark{})
		for change, err := range harvest.Changes() {
			if err != nil {
				panic(err)
			}
			fmt.Println(change.Kind, change.ID, change.Chosen == nil)
		}
	}
	// Output:
	// deleted urn:record:1 true
	// record urn:record:1 true
}

// Records that could not be fetched stay in the queue, which a program stores.
func ExampleQueue() {
	ctx, out := context.Background(), &publish.MemoryOutput{}
	mux := http.NewServeMux()
	mux.Handle("/", &publish.Handler{FS: out})
	mux.HandleFunc("/1.rdf", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "later", http.StatusNotImplemented)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	producer := atompmh.Producer{Output: out, Base: server.URL, Pool: pool(atompmh.Item{
		ID: "urn:record:1", Modified: time.Date(2012, 11, 1, 0, 0, 0, 0, time.UTC), Title: "Crocodiles",
		Representations: []atompmh.Representation{{URL: server.URL + "/1.rdf", Type: "application/rdf+xml"}},
	})}
	if err := producer.Update(ctx); err != nil {
		panic(err)
	}
	h := atompmh.Harvester{URL: producer.URL(), HTTP: &feedhistory.Client{AllowPrivate: true}}
	defer h.HTTP.CloseIdle()
	queue := atompmh.Queue{}
	for record, err := range h.Fetch(ctx, h.Harvest(ctx, atompmh.Mark{}).Changes(), queue) {
		fmt.Println(record.ID, feedhistory.Describe(record.Err), err)
	}
	rows := []atompmh.QueuedRecord{} // a program's own table of what is to be fetched
	for _, queued := range queue {
		rows = append(rows, queued)
	}
	fmt.Println(len(rows), rows[0].Type, rows[0].Failed)
	// Output:
	// urn:record:1 501 Not Implemented <nil>
	// 1 application/rdf+xml 1
}
