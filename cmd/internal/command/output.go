package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// ObjectStore are the flags for publishing into an object store.
type ObjectStore struct {
	S3Endpoint string `name:"s3-endpoint" placeholder:"URL" help:"With s3://…: the URL of the store, if it is not AWS (default: AWS_ENDPOINT_URL)."`
}

// InStore reports whether --out names an object store.
func InStore(out string) bool { return strings.HasPrefix(out, "s3://") }

// OpenOutput returns the place named by a verb's --out: a directory or an object store,
// whose requests go to the log, unless it is nil.
func (c *ObjectStore) OpenOutput(out string, log *slog.Logger) (publish.Output, error) {
	switch {
	case InStore(out):
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

// WhileLocked repeats an action on a publish.Dir as long as another process has the
// lock, for up to ten seconds.
func WhileLocked[T any](do func() (T, error)) (value T, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if value, err = do(); !errors.Is(err, publish.ErrLocked) || time.Now().After(deadline) {
			return value, err
		}
	}
}

// A DryRun is an Output with its changes in memory.
type DryRun struct {
	publish.Overlay
	Written []string // in the order of writing, without hidden files
}

// NewDryRun returns an output over another one, which it only reads.
func NewDryRun(over publish.Output) *DryRun {
	return &DryRun{Overlay: publish.Overlay{Output: over}}
}

// Put implements publish.Output.
func (d *DryRun) Put(ctx context.Context, name string, data []byte) error {
	if path.Base(name)[0] != '.' && !slices.Contains(d.Written, name) {
		d.Written = append(d.Written, name)
	}
	return d.Overlay.Put(ctx, name, data)
}

// Remove implements publish.Output.
func (d *DryRun) Remove(ctx context.Context, name string) error {
	d.Written = slices.DeleteFunc(d.Written, func(other string) bool { return other == name })
	return d.Overlay.Remove(ctx, name)
}

// Lock implements publish.Output. It does nothing: a dry run writes nothing, so nobody
// has to wait.
func (d *DryRun) Lock(context.Context) (func() error, error) { return func() error { return nil }, nil }

// A Root is a directory. No name or symbolic link leads out of it. Open opens the
// directory again for each file, because a site's build may replace it.
type Root string

// Open opens a file of the directory.
func (dir Root) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}
