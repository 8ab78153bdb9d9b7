package publish

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Memory is an Output in memory, which ends with the process. It is for
// tests, and for feeds that are generated from data stored elsewhere. The zero
// value is empty and ready to use. Do not copy a Memory.
type Memory struct {
	mu     sync.RWMutex
	files  map[string][]byte
	times  map[string]time.Time // when each was put
	locked bool
}

// Names returns the names of all documents, sorted.
func (m *Memory) Names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.files))
}

// Clone returns another Memory with the same documents and no lock, like the
// one that a crash of the writer would leave.
func (m *Memory) Clone() *Memory {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &Memory{files: maps.Clone(m.files), times: maps.Clone(m.times)} // Put never changes bytes in place
}

// ReadFile implements fs.ReadFileFS.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if data, ok := m.files[name]; ok {
		return bytes.Clone(data), nil
	}
	return nil, m.missing("open", name)
}

// missing returns the error for a name that no document has.
func (m *Memory) missing(op, name string) error {
	err := fs.ErrNotExist
	if !fs.ValidPath(name) {
		err = fs.ErrInvalid
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements fs.FS. It also opens directories, so that they can be listed.
func (m *Memory) Open(name string) (fs.File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if data, ok := m.files[name]; ok {
		return &openMemory{m.info(name), bytes.NewReader(data), nil}, nil
	}
	list := m.list(name)
	if len(list) == 0 && name != "." {
		return nil, m.missing("open", name)
	}
	return &openMemory{memoryInfo{name: path.Base(name), dir: true}, bytes.NewReader(nil), list}, nil
}

func (m *Memory) info(name string) memoryInfo {
	return memoryInfo{name: path.Base(name), size: int64(len(m.files[name])), time: m.times[name]}
}

// list returns the entries of a directory, sorted.
func (m *Memory) list(dir string) []fs.DirEntry {
	found := map[string]memoryInfo{}
	for name := range m.files {
		rest, ok := name, dir == "."
		if !ok {
			rest, ok = strings.CutPrefix(name, dir+"/")
		}
		if child, _, deeper := strings.Cut(rest, "/"); ok && deeper {
			found[child] = memoryInfo{name: child, dir: true}
		} else if ok {
			found[child] = m.info(name)
		}
	}
	list := make([]fs.DirEntry, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, fs.FileInfoToDirEntry(found[name]))
	}
	return list
}

// Put implements Output.
func (m *Memory) Put(name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrInvalid}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files, m.times = map[string][]byte{}, map[string]time.Time{}
	}
	m.files[name], m.times[name] = append([]byte{}, data...), time.Now()
	return nil
}

// Remove implements Output.
func (m *Memory) Remove(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	delete(m.times, name)
	return nil
}

// Lock implements Output.
func (m *Memory) Lock() (unlock func() error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, ErrLocked
	}
	m.locked = true
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locked = false
		return nil
	}, nil
}

// memoryInfo is the fs.FileInfo of a document or a directory.
type memoryInfo struct {
	name string
	size int64
	time time.Time
	dir  bool
}

func (f memoryInfo) Name() string       { return f.name }
func (f memoryInfo) Size() int64        { return f.size }
func (f memoryInfo) ModTime() time.Time { return f.time }
func (f memoryInfo) IsDir() bool        { return f.dir }
func (f memoryInfo) Sys() any           { return nil }

func (f memoryInfo) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// openMemory is an open document or directory.
type openMemory struct {
	info memoryInfo
	*bytes.Reader
	list []fs.DirEntry // what ReadDir has not returned yet
}

func (o *openMemory) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openMemory) Close() error               { return nil }

// Read implements fs.File.
func (o *openMemory) Read(p []byte) (int, error) {
	if o.info.dir {
		return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: errors.New("is a directory")}
	}
	return o.Reader.Read(p)
}

// WriteTo implements io.WriterTo.
func (o *openMemory) WriteTo(w io.Writer) (int64, error) {
	if o.info.dir {
		return 0, &fs.PathError{Op: "read", Path: o.info.name, Err: errors.New("is a directory")}
	}
	return o.Reader.WriteTo(w)
}

// ReadDir implements fs.ReadDirFile.
func (o *openMemory) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case !o.info.dir:
		return nil, &fs.PathError{Op: "readdir", Path: o.info.name, Err: errors.New("not a directory")}
	case n > 0 && len(o.list) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(o.list):
		n = len(o.list)
	}
	list := o.list[:n:n]
	o.list = o.list[n:]
	return list, nil
}
