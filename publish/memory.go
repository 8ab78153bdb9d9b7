package publish

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A MemoryOutput is an Output in memory, whose documents are lost when the process
// ends. It is for tests, and for feeds generated from data stored elsewhere. The zero
// value is empty and ready to use. Do not copy a MemoryOutput.
type MemoryOutput struct {
	mu     sync.RWMutex
	files  map[string][]byte
	times  map[string]time.Time // when each was put
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
	return &MemoryOutput{files: maps.Clone(m.files), times: maps.Clone(m.times)} // Put never changes bytes in place
}

// ReadFile implements fs.ReadFileFS.
func (m *MemoryOutput) ReadFile(name string) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if data, ok := m.files[name]; ok {
		return bytes.Clone(data), nil
	}
	return nil, m.missing("open", name)
}

// missing returns the error for an unknown name.
func (m *MemoryOutput) missing(op, name string) error {
	err := fs.ErrNotExist
	if !fs.ValidPath(name) {
		err = fs.ErrInvalid
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements fs.FS. It also opens directories, for listing them.
func (m *MemoryOutput) Open(name string) (fs.File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if data, ok := m.files[name]; ok {
		return &openDocument{info: m.info(name), Reader: bytes.NewReader(data)}, nil
	}
	list := m.list(name)
	if len(list) == 0 && name != "." {
		return nil, m.missing("open", name)
	}
	return &openDirectory{info: fileInfo{Base: path.Base(name), Dir: true}, list: list}, nil
}

func (m *MemoryOutput) info(name string) fileInfo {
	return fileInfo{Base: path.Base(name), Bytes: int64(len(m.files[name])), Time: m.times[name]}
}

// list returns the entries of a directory, sorted.
func (m *MemoryOutput) list(dir string) []fs.DirEntry {
	found := map[string]fileInfo{}
	for name := range m.files {
		rest, ok := name, dir == "."
		if !ok {
			rest, ok = strings.CutPrefix(name, dir+"/")
		}
		if child, _, deeper := strings.Cut(rest, "/"); ok && deeper {
			found[child] = fileInfo{Base: child, Dir: true}
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
func (m *MemoryOutput) Put(ctx context.Context, name string, data []byte) error {
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
func (m *MemoryOutput) Remove(ctx context.Context, name string) error {
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
