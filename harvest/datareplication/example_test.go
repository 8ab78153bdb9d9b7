package datareplication_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/publish"
)

// A feed has two entities, and a consumer comes back for a third.
func Example() {
	dir, err := os.MkdirTemp("", "feed")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	producer := &datareplication.Producer{Output: publish.Dir{Path: dir}}
	handler := &datareplication.Handler{FS: producer.Output}
	server := httptest.NewServer(handler)
	defer server.Close()
	handler.Base = server.URL
	put := func(id, body string) datareplication.Entity {
		return datareplication.Entity{ContentID: id, Type: "text/plain", Body: []byte(body)}
	}
	if err := producer.Append(context.Background(), put("1", "planes"), put("2", "trains")); err != nil {
		panic(err)
	}

	h := datareplication.Harvester{
		URL:  server.URL,
		HTTP: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}},
	}
	var mark datareplication.Mark // a program stores it
	for range 2 {
		harvest := h.Harvest(context.Background(), mark)
		for e, err := range harvest.Entities() {
			if err != nil {
				panic(err)
			}
			fmt.Println(e.Operation, e.ContentID, string(e.Body))
			mark = harvest.Mark()
		}
		fmt.Println("nothing more for now")
		if err := producer.Append(context.Background(), put("3", "boats")); err != nil {
			panic(err)
		}
	}
	// Output:
	// PUT 1 planes
	// PUT 2 trains
	// nothing more for now
	// PUT 3 boats
	// nothing more for now
}

// New consumers begin with a snapshot.
func ExampleProducer_Snapshot() {
	dir, err := os.MkdirTemp("", "feed")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	producer := &datareplication.Producer{Output: publish.Dir{Path: dir}}
	handler := &datareplication.Handler{FS: producer.Output}
	server := httptest.NewServer(handler)
	defer server.Close()
	handler.Base = server.URL

	err = producer.Snapshot(context.Background(), func(yield func(datareplication.Entity, error) bool) {
		for _, text := range []string{"planes", "trains"} { // SELECT … FROM resources
			if !yield(datareplication.Entity{Type: "text/plain", Body: []byte(text)}, nil) {
				return
			}
		}
	})
	if err != nil {
		panic(err)
	}
	h := datareplication.Harvester{
		URL: server.URL, Snapshot: server.URL + "/snapshot",
		HTTP: &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}},
	}
	for e, err := range h.Harvest(context.Background(), datareplication.Mark{}).Entities() {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(e.Body))
	}
	// Output:
	// planes
	// trains
}
