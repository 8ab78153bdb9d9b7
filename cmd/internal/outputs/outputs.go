// Package outputs opens the places where feeds are published: directories and object
// stores.
package outputs

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// Store are the flags for publishing into an object store.
type Store struct {
	S3Endpoint string `name:"s3-endpoint" placeholder:"URL" help:"With s3://…: the URL of the store, if it is not AWS (default: AWS_ENDPOINT_URL)."`
}

// InStore reports whether --out names an object store.
func InStore(out string) bool { return strings.HasPrefix(out, "s3://") }

// OpenOutput returns the place named by a verb's --out: a directory or an object store,
// whose requests go to the log, unless it is nil.
func (c *Store) OpenOutput(out string, log *slog.Logger) (publish.Output, error) {
	switch {
	case InStore(out):
		o, err := s3.FromEnvironment(out, c.S3Endpoint)
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		o.Logger = log
		return o, nil
	case c.S3Endpoint != "":
		return nil, exit.UsageError("--s3-endpoint: --out is a directory")
	}
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return nil, errors.New("--out: " + out + ": not a directory")
	}
	return publish.Dir{Path: out}, nil
}

// WhileLocked repeats an action on a publish.Dir as long as another process has the
// lock, for up to ten seconds.
func WhileLocked[T any](do func() (T, error)) (value T, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if value, err = do(); !errors.Is(err, publish.ErrLocked) || time.Now().After(deadline) {
			return value, err
		}
	}
}
