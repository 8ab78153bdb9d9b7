package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A File is the destination of a verb's result: standard output, or a file that appears
// only when it is complete.
type File struct {
	io.Writer
	file *os.File // nil means standard output
	Name string
	flag string      // the flag that names the file
	info os.FileInfo // of the existing file; nil if there is none
}

// Output opens the output with a name; without a name, or with "-", it is standard output.
func (w *World) Output(name string) (*File, error) {
	if name == "" || name == "-" {
		return &File{Writer: w.Stdout}, nil
	}
	return NewFile("--output", name)
}

// NewFile opens the file named by a flag. It also removes the unfinished files that killed
// processes have left of it.
func NewFile(flag, name string) (*File, error) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if err := terminal.CheckTarget(flag, name); err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // such as a pipe, or /dev/null
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{Writer: f, file: f}, err
	}
	f, err := Unfinished(name, 0o666)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s: %s cannot be created: %w", flag, name, path.Err)
	}
	return &File{Writer: f, file: f, Name: name, flag: flag, info: info}, err
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
	err := o.file.Sync()
	if err == nil {
		err = rename(o.file, o.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.flag, err)
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

// An unfinished file has a name that nobody can foretell, because others may be able to write
// into its directory, between the prefix and this suffix.
const unfinished = ".part"

// Unfinished creates an empty, hidden file in the directory of the named one, and locks it until it
// is closed. It removes the unfinished files left by killed processes.
func Unfinished(name string, mode os.FileMode) (*os.File, error) {
	dir, prefix := filepath.Dir(name), "."+filepath.Base(name)+"."
	removeUnfinished(dir, prefix)
	for {
		f, err := os.OpenFile(filepath.Join(dir, prefix+rand.Text()[:8]+unfinished), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if err != nil || hold(f) {
			return f, err
		}
		_ = f.Close()
	}
}

// removeUnfinished removes the unfinished files of a directory that no process holds. Those that
// cannot be removed stay: they are in nobody's way.
func removeUnfinished(dir, prefix string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	for names, err := d.Readdirnames(1000); err == nil; names, err = d.Readdirnames(1000) {
		for _, name := range names {
			random, isOurs := strings.CutPrefix(strings.TrimSuffix(name, unfinished), prefix)
			if isOurs && strings.HasSuffix(name, unfinished) && len(random) == 8 && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
				removeUnheld(filepath.Join(dir, name))
			}
		}
	}
}
