// Datareplication publishes a log of entities by the data replication protocol, with a
// snapshot to begin with, and keeps a copy of the resources up to date.
//
//	go run ./examples/datareplication [-wire]
//
// With -wire it shows the exchange on the wire.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/examples/wire"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/publish"
)

func main() { wire.Main(run) }

// produce appends a change of a resource to the log. The protocol does not say how to
// identify a resource, so a header field has its key.
func produce(ctx context.Context, p *datareplication.Producer, operation datareplication.Operation, key, body string) error {
	return p.Append(ctx, datareplication.Entity{
		ContentID: fmt.Sprintf("%s-of-%s", operation, key), // or "", for a generated one
		Operation: operation, Type: "text/plain", Body: []byte(body),
		Header: textproto.MIMEHeader{"X-Key": {key}},
	})
}

// consume brings a copy of the resources up to date, and returns the mark to continue
// from. A real program stores both in one transaction.
func consume(ctx context.Context, client *feedhistory.Client, mark datareplication.Mark, resources map[string]string) (datareplication.Mark, error) {
	h := datareplication.Harvester{HTTP: client, URL: wire.Site + "feed/", Snapshot: wire.Site + "feed/snapshot"}
	harvest := h.Harvest(ctx, mark)
	for e, err := range harvest.Entities() {
		switch {
		case err != nil:
			mark, _ = harvest.Mark()
			return mark, err
		case e.Operation == datareplication.Delete:
			delete(resources, e.Header.Get("X-Key"))
		default:
			resources[e.Header.Get("X-Key")] = string(e.Body)
		}
	}
	mark, _ = harvest.Mark()
	return mark, nil
}

// run makes a snapshot of one resource, harvests it, makes changes, and harvests those.
func run(ctx context.Context, out, exchange io.Writer) error {
	dir, err := os.MkdirTemp("", "feed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	handler := &datareplication.Handler{FS: publish.Dir{Path: dir}, Base: wire.Site + "feed/"}
	client, stop := wire.Serve(http.StripPrefix("/feed/", handler), exchange, "Link", "Content-Type", "Last-Modified")
	defer stop()

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := &datareplication.Producer{Output: publish.Dir{Path: dir}, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}
	resources, mark := map[string]string{}, datareplication.Mark{}
	for _, change := range []func() error{
		func() error { return produce(ctx, p, datareplication.Put, "a", "old") },
		func() error { return p.Snapshot(ctx, all(map[string]string{"a": "old"})) },
		nil,
		func() error { return produce(ctx, p, datareplication.Put, "b", "new") },
		func() error { return produce(ctx, p, datareplication.Delete, "a", "") },
		nil,
	} {
		if change != nil {
			err = change()
		} else if mark, err = consume(ctx, client, mark, resources); err == nil {
			fmt.Fprintln(out, resources, "at", mark)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all yields all resources, for a snapshot.
func all(resources map[string]string) func(func(datareplication.Entity, error) bool) {
	return func(yield func(datareplication.Entity, error) bool) {
		for key, body := range resources {
			header := textproto.MIMEHeader{"X-Key": {key}}
			if !yield(datareplication.Entity{Type: "text/plain", Body: []byte(body), Header: header}, nil) {
				return
			}
		}
	}
}
