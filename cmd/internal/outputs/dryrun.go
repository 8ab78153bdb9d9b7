package outputs

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// A DryRun is an Output with its changes in memory. Reading finds the changed files,
// and the other files of the Output below.
type DryRun struct {
	publish.Output
	put     map[string][]byte
	removed map[string]bool
	Written []string // in the order of writing, without hidden files
}

// NewDryRun returns an output over another one, which it only reads.
func NewDryRun(over publish.Output) *DryRun {
	return &DryRun{Output: over, put: map[string][]byte{}, removed: map[string]bool{}}
}

// Open implements fs.FS.
func (d *DryRun) Open(name string) (fs.File, error) {
	if data, ok := d.put[name]; ok {
		return &dryFile{Reader: bytes.NewReader(data), name: path.Base(name), size: int64(len(data))}, nil
	}
	if d.removed[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return d.Output.Open(name)
}

// Put implements publish.Output.
func (d *DryRun) Put(_ context.Context, name string, data []byte) error {
	d.put[name] = slices.Clone(data)
	delete(d.removed, name)
	if path.Base(name)[0] != '.' && !slices.Contains(d.Written, name) {
		d.Written = append(d.Written, name)
	}
	return nil
}

// Remove implements publish.Output.
func (d *DryRun) Remove(_ context.Context, name string) error {
	delete(d.put, name)
	d.removed[name] = true
	d.Written = slices.DeleteFunc(d.Written, func(other string) bool { return other == name })
	return nil
}

// Lock implements publish.Output. It does nothing: a dry run writes nothing, so nobody
// has to wait.
func (d *DryRun) Lock(context.Context) (func() error, error) { return func() error { return nil }, nil }

// A dryFile is a file only in the memory of a dryRun.
type dryFile struct {
	*bytes.Reader
	name string
	size int64
}

// Stat implements fs.File.
func (f *dryFile) Stat() (fs.FileInfo, error) { return f, nil }

// Close implements fs.File.
func (f *dryFile) Close() error { return nil }

// Name implements fs.FileInfo.
func (f *dryFile) Name() string { return f.name }

// Size implements fs.FileInfo.
func (f *dryFile) Size() int64 { return f.size }

// Mode implements fs.FileInfo.
func (f *dryFile) Mode() fs.FileMode { return 0o444 }

// ModTime implements fs.FileInfo.
func (f *dryFile) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (f *dryFile) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (f *dryFile) Sys() any { return nil }
