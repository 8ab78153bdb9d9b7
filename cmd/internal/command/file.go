package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
)

// A File is the destination of a verb's result: standard output, or a file that appears
// only when it is complete.
type File struct {
	io.Writer
	file *os.File // nil means standard output
	Name string
	info os.FileInfo // of the existing file; nil if there is none
}

// Output opens the output with a name; without a name, or with "-", it is standard output.
func (w *World) Output(name string) (*File, error) {
	if name == "" || name == "-" {
		return &File{Writer: w.Stdout}, nil
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if err := argument.CheckTarget("--output", name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // such as a pipe, or /dev/null
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{Writer: f, file: f}, err
	}
	part := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text()[:8])
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("--output: %s cannot be created: %w", name, path.Err)
	}
	return &File{Writer: f, file: f, Name: name, info: info}, err
}

// Commit closes a complete file and moves it to its place.
func (o *File) Commit() error {
	if o.file == nil {
		return nil
	}
	defer o.Discard()
	if o.Name == "" {
		return o.file.Close()
	}
	if o.info != nil {
		if err := o.file.Chmod(o.info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := errors.Join(o.file.Sync(), o.file.Close(), os.Rename(o.file.Name(), o.Name)); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	o.file = nil
	return nil
}

// Discard closes and removes an uncommitted file.
func (o *File) Discard() {
	if o.file != nil {
		_ = o.file.Close()
		if o.Name != "" {
			_ = os.Remove(o.file.Name())
		}
	}
}
