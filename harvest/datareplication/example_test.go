package datareplication_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strings"

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
		HTTP: &feedhistory.Client{AllowPrivate: true},
	}
	var mark datareplication.Mark // a program stores it
	for range 2 {
		harvest := h.Harvest(context.Background(), mark)
		for e, err := range harvest.Entities() {
			if err != nil {
				panic(err)
			}
			fmt.Println(e.Operation, e.ContentID, string(e.Body))
			mark, _ = harvest.Mark()
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
		HTTP: &feedhistory.Client{AllowPrivate: true},
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

// A producer refuses the entities it cannot write, and publishes none of the call.
func ExampleProducer_refused() {
	producer := &datareplication.Producer{Output: &publish.MemoryOutput{}}
	err := producer.Append(context.Background(),
		datareplication.Entity{ContentID: "1", Type: "text/plain", Body: []byte("planes")},
		datareplication.Entity{ContentID: "2", Operation: datareplication.Patch, Header: textproto.MIMEHeader{"X-Name": {"a\nb"}}},
	)
	fmt.Println(err, errors.Is(err, datareplication.ErrField))
	// Output: entity 1, "2": "a\nb": a header field cannot contain it true
}

// A harvest ends at an entity it cannot trust.
func ExampleHarvester_malformed() {
	producer := &datareplication.Producer{Output: &publish.MemoryOutput{}}
	if err := producer.Append(context.Background(), datareplication.Entity{ContentID: "1", Type: "text/plain", Body: []byte("planes")}); err != nil {
		panic(err)
	}
	for _, fault := range []string{"Content-Length: 7", "X-Modified"} {
		handler := &datareplication.Handler{FS: producer.Output}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			page := httptest.NewRecorder()
			handler.ServeHTTP(page, r)
			for name, values := range page.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(page.Code)
			body := page.Body.String()
			if name, _, ok := strings.Cut(fault, ":"); ok {
				body = strings.ReplaceAll(body, name+": 6", fault)
			} else {
				body = strings.ReplaceAll(body, "Last-Modified", fault)
			}
			fmt.Fprint(w, body)
		}))
		handler.Base = server.URL
		h := datareplication.Harvester{
			URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true},
		}
		for _, err := range h.Harvest(context.Background(), datareplication.Mark{}).Entities() {
			switch {
			case errors.Is(err, datareplication.ErrLength):
				fmt.Println("the body is longer or shorter than it should be")
			case errors.Is(err, datareplication.ErrNoStamp):
				fmt.Println("the entity does not say when it was modified")
			default:
				fmt.Println(err)
			}
		}
		h.HTTP.CloseIdle()
		server.Close()
	}
	// Output:
	// the body is longer or shorter than it should be
	// the entity does not say when it was modified
}

// Two programs make a snapshot at the same time: the one that began last makes it.
func ExampleProducer_Snapshot_superseded() {
	ctx, out := context.Background(), &publish.MemoryOutput{}
	nothing := func(func(datareplication.Entity, error) bool) {}
	err := (&datareplication.Producer{Output: out}).Snapshot(ctx, func(func(datareplication.Entity, error) bool) {
		if err := (&datareplication.Producer{Output: out}).Snapshot(ctx, nothing); err != nil {
			panic(err)
		}
	})
	fmt.Println(errors.Is(err, datareplication.ErrSuperseded))
	// Output: true
}
