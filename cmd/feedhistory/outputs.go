package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// storeFlags are the flags of verbs that publish into an object store.
type storeFlags struct {
	S3Endpoint string `name:"s3-endpoint" placeholder:"URL" help:"With s3://…: the URL of the store, if it is not AWS (default: AWS_ENDPOINT_URL)."`
}

// inStore reports whether --out names an object store.
func inStore(out string) bool { return strings.HasPrefix(out, "s3://") }

// output returns the place that a verb's --out names: a directory or an object store.
func (c *storeFlags) output(out string) (publish.Output, error) {
	switch {
	case inStore(out):
		o, err := s3.FromEnvironment(out, c.S3Endpoint)
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		return o, nil
	case c.S3Endpoint != "":
		return nil, errors.New("--s3-endpoint: --out is a directory")
	}
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, errors.New("--out: " + out + ": not a directory")
	}
	return publish.Dir{Path: out}, nil
}
