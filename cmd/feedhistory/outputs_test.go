package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// store BUCKET starts an object store with a bucket, and puts its address into
// the environment as STORE. Its credentials are an-id and a-secret.
func store(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: store BUCKET")
	}
	objects := s3mem.New()
	ts.Check(objects.CreateBucket(context.Background(), args[0]))
	server := httptest.NewServer(gofakes3.New(objects, gofakes3.WithV4Auth(map[string]string{"an-id": "a-secret"})).Server())
	ts.Defer(server.Close)
	ts.Setenv("STORE", server.URL)
	*ts.Value("objects").(*gofakes3.Backend) = objects
}

// dump BUCKET PREFIX FILE writes the keys and the bytes of all objects below a prefix of a
// bucket into a file.
func dump(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: dump BUCKET PREFIX FILE")
	}
	objects, ctx := *ts.Value("objects").(*gofakes3.Backend), context.Background()
	list, err := objects.ListBucket(ctx, args[0], nil, gofakes3.ListBucketPage{})
	ts.Check(err)
	var text bytes.Buffer
	for _, o := range list.Contents {
		if !strings.HasPrefix(o.Key, args[1]) {
			continue
		}
		object, err := objects.GetObject(ctx, args[0], o.Key, nil)
		ts.Check(err)
		fmt.Fprintln(&text, o.Key)
		_, err = text.ReadFrom(object.Contents)
		ts.Check(err)
	}
	if text.Len() == 0 {
		ts.Fatalf("there is nothing below %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), text.Bytes(), 0o600))
}
