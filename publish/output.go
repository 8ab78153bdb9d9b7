package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing/fstest"
	"time"
)

// An Output is a place for documents: a directory (Dir), an object store (package
// publish/s3), memory (MemoryOutput). Package publish/outputtest tests implementations
// for the following contract.
//
// A name is a slash-separated path for which fs.ValidPath is true, except ".". Put and
// Remove refuse other names with an error that matches fs.ErrInvalid. Names with an
// element beginning with a dot are not for the feed's readers; to the writer they are
// like any others. Nobody uses a name for both a document and a directory, nor the
// names ".lock" and ".*.tmp".
//
// Anybody may read at any time, even while there is a writer. An error about a missing
// name matches fs.ErrNotExist. An error for any other reason, such as a failing
// network, must not match it, or a Publisher would mistake the feed for an empty one.
// Once Put or Remove has returned, everybody who begins to read sees its effect.
// fs.ReadFile, fs.Stat, fs.ReadDir and fs.WalkDir work, through Open or through methods
// of their own. A directory exists at least as long as it contains something.
type Output interface {
	fs.FS

	// Put stores data under a name, and replaces what was there. It is atomic: at any
	// time, and after any crash, a reader finds either all of the old data, or all of the
	// new, or no such name yet. It is durable: data for which Put has returned nil
	// survives a loss of power. After an error, either the old data or the new may be
	// there; the new data may even appear later, but not after another Put of the same
	// name has returned nil. Put keeps no reference to data. It may be called at the same
	// time for different names. If the context ends first, Put may return its error;
	// Remove and Lock likewise.
	Put(ctx context.Context, name string, data []byte) error

	// Remove removes a name, as durably as Put. A missing name is not an error.
	Remove(ctx context.Context, name string) error

	// Lock makes the caller the only writer until it calls unlock, or crashes: the lock of
	// a crashed writer becomes free by itself, at once or after some time. If there is
	// another writer, here or in another process, Lock returns an error that matches
	// ErrLocked without waiting. If an Output takes the lock from a writer wrongly
	// believed to have crashed, later calls of Put and Remove by this writer must fail.
	// The lock outlives the context, so unlock works after its end. A second call of
	// unlock has no effect.
	//
	// Only the holder of the lock may call Put and Remove. Reading needs no
	// lock.
	Lock(ctx context.Context) (unlock func() error, err error)
}

// ErrLocked means another writer holds the lock of an Output.
var ErrLocked = errors.New("another writer is at work on this output")

// CheckName returns the error of Put and Remove, an *fs.PathError with this operation, for a
// name that no document can have; otherwise nil.
func CheckName(op, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// A Dir is an Output in a directory of the file system, which any web server can serve.
// Files whose names begin with a dot are not for readers: the lock, files being
// written, and notes about the work a Publisher must finish after a crash.
type Dir struct {
	Path string // the directory, which is created if it does not exist; "" means the current one
}

const lockName = ".lock"

// Open implements fs.FS.
func (d Dir) Open(name string) (fs.File, error) { return os.DirFS(d.path(".")).Open(name) }

// Stat implements fs.StatFS.
func (d Dir) Stat(name string) (fs.FileInfo, error) { return fs.Stat(os.DirFS(d.path(".")), name) }

// path returns the path of the file with a name.
func (d Dir) path(name string) string {
	return filepath.Join(cmp.Or(d.Path, "."), filepath.FromSlash(name))
}

// Put implements Output. It writes the data to a temporary file, which gets the name
// once the data is on the disk. The remains of a crash are replaced when the same name is
// put again.
func (d Dir) Put(ctx context.Context, name string, data []byte) error {
	if err := CheckName("put", name); err != nil {
		return err
	}
	path := d.path(name)
	dir, base := filepath.Dir(path), filepath.Base(path)
	if err := makeDir(dir); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+base+tempSuffix)
	var err error
	if info, there := os.Lstat(temp); there == nil && !info.IsDir() {
		err = removeIfThere(temp)
	}
	if err == nil {
		err = writeDurably(temp, data)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temp))
	}
	return syncDir(dir)
}

// tempSuffix is the suffix of files being written.
const tempSuffix = ".tmp"

// writeDurably writes a new file, and waits until it is on the disk. If it did not
// wait, a crash after the rename could leave an empty file under the new name. It follows no
// link: others may be able to write into a published directory.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
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
	if err := CheckName("remove", name); err != nil {
		return err
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

// A MemoryOutput is an Output in memory, whose documents are lost when the process
// ends. It is for tests, and for feeds generated from data stored elsewhere. The zero
// value is empty and ready to use. Do not copy a MemoryOutput.
type MemoryOutput struct {
	mu     sync.RWMutex
	files  fstest.MapFS // no file in it is ever changed in place
	locked bool
}

// Names returns the names of all documents, sorted.
func (m *MemoryOutput) Names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.files))
}

// Clone returns another MemoryOutput with the same documents and no lock, as after a
// crash of the writer.
func (m *MemoryOutput) Clone() *MemoryOutput {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &MemoryOutput{files: maps.Clone(m.files)}
}

// Open implements fs.FS. It also opens directories, for listing them.
func (m *MemoryOutput) Open(name string) (fs.File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.files.Open(name)
}

// Put implements Output.
func (m *MemoryOutput) Put(ctx context.Context, name string, data []byte) error {
	if err := CheckName("put", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = fstest.MapFS{}
	}
	m.files[name] = &fstest.MapFile{Data: bytes.Clone(data), Mode: 0o444, ModTime: time.Now()}
	return nil
}

// Remove implements Output.
func (m *MemoryOutput) Remove(ctx context.Context, name string) error {
	if err := CheckName("remove", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}

// Lock implements Output.
func (m *MemoryOutput) Lock(ctx context.Context) (unlock func() error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, ErrLocked
	}
	m.locked = true
	return sync.OnceValue(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locked = false
		return nil
	}), nil
}

// An Overlay is an Output over another one. It keeps changes in memory, and reads unchanged
// documents, and directories, from the Output below, whose lock it takes. Put and Remove are
// not to be called at the same time as other methods.
type Overlay struct {
	Output                        // the Output below, which must be set: without it, Open finds nothing, and the other methods panic
	Keeps  func(name string) bool // whether to keep the changes of a document; others are made below. Nil means all are kept

	changed fstest.MapFS // a nil file is a removed document
}

// Open implements fs.FS.
func (o *Overlay) Open(name string) (fs.File, error) {
	if _, ok := o.changed[name]; ok {
		return o.changed.Open(name)
	}
	if o.Output == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.Output.Open(name)
}

// Put implements Output.
func (o *Overlay) Put(ctx context.Context, name string, data []byte) error {
	if !o.keeps(name) {
		return o.Output.Put(ctx, name, data)
	}
	return o.change("put", name, &fstest.MapFile{Data: bytes.Clone(data), Mode: 0o444})
}

// Remove implements Output.
func (o *Overlay) Remove(ctx context.Context, name string) error {
	if !o.keeps(name) {
		return o.Output.Remove(ctx, name)
	}
	return o.change("remove", name, nil)
}

func (o *Overlay) keeps(name string) bool { return o.Keeps == nil || o.Keeps(name) }

func (o *Overlay) change(op, name string, file *fstest.MapFile) error {
	if err := CheckName(op, name); err != nil {
		return err
	}
	if o.changed == nil {
		o.changed = fstest.MapFS{}
	}
	o.changed[name] = file
	return nil
}

// Kept returns the document kept under a name; nil if it is unchanged or removed.
func (o *Overlay) Kept(name string) []byte {
	if file := o.changed[name]; file != nil {
		return file.Data
	}
	return nil
}
