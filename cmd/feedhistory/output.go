package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// objectStore are the flags for publishing into an object store.
type objectStore struct {
	S3Endpoint string `name:"s3-endpoint" placeholder:"URL" help:"With s3://…: the URL of the store, if it is not AWS (default: AWS_ENDPOINT_URL)."`
}

// inStore reports whether --out names an object store.
func inStore(out string) bool { return strings.HasPrefix(out, "s3://") }

// openOutput returns the place named by a verb's --out: a directory or an object store,
// whose requests go to the log, unless it is nil.
func (c *objectStore) openOutput(out string, log *slog.Logger) (publish.Output, error) {
	switch {
	case inStore(out):
		o, err := s3.FromEnvironment(out, c.S3Endpoint)
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		o.Logger = log
		return o, nil
	case c.S3Endpoint != "":
		return nil, terminal.UsageError("--s3-endpoint: --out is a directory")
	}
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, errors.New("--out: " + out + ": not a directory")
	}
	return publish.Dir{Path: out}, nil
}

// A dryRun is an Output over another one, with its changes in memory.
type dryRun struct {
	publish.Overlay
	Written []string // in the order of writing, without hidden files
}

// Put implements publish.Output.
func (d *dryRun) Put(ctx context.Context, name string, data []byte) error {
	if path.Base(name)[0] != '.' && !slices.Contains(d.Written, name) {
		d.Written = append(d.Written, name)
	}
	return d.Overlay.Put(ctx, name, data)
}

// Remove implements publish.Output.
func (d *dryRun) Remove(ctx context.Context, name string) error {
	d.Written = slices.DeleteFunc(d.Written, func(other string) bool { return other == name })
	return d.Overlay.Remove(ctx, name)
}

// Lock implements publish.Output. It does nothing: a dry run writes nothing, so nobody
// has to wait.
func (d *dryRun) Lock(context.Context) (func() error, error) { return func() error { return nil }, nil }
