package main

import (
	"context"
	"net/http/httptest"

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
}
