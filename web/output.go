package web

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// A below is the part of an Output below a directory.
type below struct {
	publish.Output
	dir string
}

func (b below) Open(name string) (fs.File, error)  { return b.Output.Open(path.Join(b.dir, name)) }
func (b below) Put(name string, data []byte) error { return b.Output.Put(path.Join(b.dir, name), data) }
func (b below) Remove(name string) error           { return b.Output.Remove(path.Join(b.dir, name)) }

// A staged Output holds a subscription document back, with the note that a
// Publisher makes of it, until all is done.
type staged struct {
	publish.Output
	name  string
	files map[string][]byte // nil: it is not there
	lock  func() (unlock func() error, err error)
}

func (s *staged) Lock() (unlock func() error, err error) { return s.lock() }

func (s *staged) holds(name string) bool { return name == s.name || name == "."+s.name+".next" }

// hide has the document begin again.
func (s *staged) hide() { s.files[s.name] = nil }

// commit has it seen.
func (s *staged) commit() error {
	if data := s.files[s.name]; data != nil {
		return s.Output.Put(s.name, data)
	}
	return nil
}

func (s *staged) Open(name string) (fs.File, error) {
	data, ok := s.files[name]
	switch {
	case !ok:
		return s.Output.Open(name)
	case data == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openMemory{&memoryFile{name: name, data: data}, bytes.NewReader(data), nil}, nil
}

func (s *staged) Put(name string, data []byte) error {
	if !s.holds(name) {
		return s.Output.Put(name, data)
	}
	s.files[name] = bytes.Clone(data)
	return nil
}

func (s *staged) Remove(name string) error {
	if !s.holds(name) {
		return s.Output.Remove(name)
	}
	s.files[name] = nil
	return nil
}

// A memory is an Output in memory.
type memory struct {
	mu     sync.RWMutex
	files  map[string]*memoryFile
	locked bool
}

// Open implements fs.FS. There are directories, too, for those who look for
// what there is.
func (m *memory) Open(name string) (fs.File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if f := m.files[name]; f != nil {
		return &openMemory{f, bytes.NewReader(f.data), nil}, nil
	}
	var list []fs.DirEntry
	seen := map[string]bool{}
	for other, f := range m.files {
		rest, ok := strings.CutPrefix(other, name+"/")
		if name == "." {
			rest, ok = other, true
		}
		child, _, deeper := strings.Cut(rest, "/")
		if !ok || seen[child] {
			continue
		}
		seen[child] = true
		info := &memoryFile{name: child, time: f.time, dir: deeper}
		if !deeper {
			info = f
		}
		list = append(list, fs.FileInfoToDirEntry(info))
	}
	if len(list) == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openMemory{&memoryFile{name: path.Base(name), dir: true}, bytes.NewReader(nil), list}, nil
}

// Put implements publish.Output.
func (m *memory) Put(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string]*memoryFile{}
	}
	m.files[name] = &memoryFile{name: path.Base(name), data: bytes.Clone(data), time: time.Now()}
	return nil
}

// Remove implements publish.Output.
func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}

// Lock implements publish.Output.
func (m *memory) Lock() (unlock func() error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, publish.ErrLocked
	}
	m.locked = true
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locked = false
		return nil
	}, nil
}

// A memoryFile is a file, and what is to be known of it.
type memoryFile struct {
	name string
	data []byte
	time time.Time
	dir  bool
}

func (f *memoryFile) Name() string       { return f.name }
func (f *memoryFile) Size() int64        { return int64(len(f.data)) }
func (f *memoryFile) ModTime() time.Time { return f.time }
func (f *memoryFile) IsDir() bool        { return f.dir }
func (f *memoryFile) Sys() any           { return nil }

func (f *memoryFile) Mode() fs.FileMode {
	if f.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type openMemory struct {
	file *memoryFile
	*bytes.Reader
	list []fs.DirEntry // what is left of a directory
}

func (o *openMemory) Stat() (fs.FileInfo, error) { return o.file, nil }
func (o *openMemory) Close() error               { return nil }

// ReadDir implements fs.ReadDirFile.
func (o *openMemory) ReadDir(int) ([]fs.DirEntry, error) {
	if !o.file.dir {
		return nil, errors.New("not a directory")
	}
	list := o.list
	o.list = nil
	return list, nil
}
