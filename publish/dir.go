package publish

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A Dir is an Output in a directory of the file system, which any web server can serve.
// Files whose names begin with a dot are not for readers: the lock, files being
// written, and notes about the work a Publisher must finish after a crash.
type Dir struct {
	Path string // the directory, which is created if it does not exist; "" means the current one
}

const lockName = ".lock"

// Open implements fs.FS.
func (d Dir) Open(name string) (fs.File, error) { return os.DirFS(d.path(".")).Open(name) }

// path returns the path of the file with a name.
func (d Dir) path(name string) string {
	return filepath.Join(cmp.Or(d.Path, "."), filepath.FromSlash(name))
}

// Put implements Output. It writes the data to a temporary file, which gets the name
// once the data is on the disk. The remains of a crash are overwritten when the same
// name is put again.
func (d Dir) Put(ctx context.Context, name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrInvalid}
	}
	path := d.path(name)
	dir, base := filepath.Dir(path), filepath.Base(path)
	if err := makeDir(dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+base+tempSuffix)
	if err := writeDurably(temp, data); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return syncDir(dir)
}

// tempSuffix is the suffix of files being written.
const tempSuffix = ".tmp"

// writeDurably writes a file, and waits until it is on the disk. If it did not
// wait, a crash after the rename could leave an empty file under the new name.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeDir creates a directory and its parents, each durably in its own parent.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// Remove implements Output. It also removes a half-written file of this name, left by a
// crash.
func (d Dir) Remove(ctx context.Context, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	path := d.path(name)
	dir, base := filepath.Split(path)
	if err := removeIfThere(filepath.Join(dir, "."+base+tempSuffix)); err != nil {
		return err
	}
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return syncDir(filepath.Dir(path))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Lock implements Output. The operating system holds the lock, and releases it when the
// process ends, however it ends. The lock's file, .lock, exists only while the lock is
// held or, after a crash, until the next Lock.
func (d Dir) Lock(ctx context.Context) (unlock func() error, err error) {
	if err := makeDir(d.path(".")); err != nil {
		return nil, err
	}
	unlock, err = lockFile(d.path(lockName))
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(unlock), nil // a second call would remove another writer's file
}
