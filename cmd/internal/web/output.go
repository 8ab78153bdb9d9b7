package web

import (
	"bytes"
	"io/fs"
	"path"

	"github.com/feedhistory/feedhistory/publish"
)

// A below is a directory of an Output.
type below struct {
	publish.Output
	dir string
}

func (b below) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Open(path.Join(b.dir, name))
}

func (b below) Put(name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." { // the joined path would be a different file
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Put(path.Join(b.dir, name), data)
}

func (b below) Remove(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Remove(path.Join(b.dir, name))
}

// A staged is an Output that holds back a subscription document, and the note
// that a Publisher makes about it, until everything is done.
type staged struct {
	publish.Output
	name  string
	files map[string][]byte // a nil value means that the file does not exist
	lock  func() (unlock func() error, err error)
}

func (s *staged) Lock() (unlock func() error, err error) { return s.lock() }

func (s *staged) holds(name string) bool { return name == s.name || name == "."+s.name+".next" }

// hide makes the subscription document seem not to exist, so that the feed
// begins again.
func (s *staged) hide() { s.files[s.name] = nil }

// commit makes the held document visible.
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
	files := publish.Memory{}
	if err := files.Put(name, data); err != nil {
		return nil, err
	}
	return files.Open(name)
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
