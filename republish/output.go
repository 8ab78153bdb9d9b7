package republish

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/feedhistory/feedhistory/publish"
)

// A subOutput is a directory of an Output.
type subOutput struct {
	publish.Output
	dir string
}

func (b subOutput) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Open(path.Join(b.dir, name))
}

func (b subOutput) Put(name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." { // the joined path would be a different file
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Put(path.Join(b.dir, name), data)
}

func (b subOutput) Remove(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Remove(path.Join(b.dir, name))
}

// A stagedOutput is an Output that holds back a subscription document, and a
// Publisher's note about it, until everything is done.
type stagedOutput struct {
	publish.Output
	name  string
	files map[string][]byte // nil stands for a missing file
	lock  func() (unlock func() error, err error)
}

func (s *stagedOutput) Lock() (unlock func() error, err error) { return s.lock() }

func (s *stagedOutput) holds(name string) bool { return name == s.name || name == "."+s.name+".next" }

// hide makes the subscription document seem not to exist, so the feed
// begins again.
func (s *stagedOutput) hide() { s.files[s.name] = nil }

// commit makes the held document visible.
func (s *stagedOutput) commit() error {
	if data := s.files[s.name]; data != nil {
		return s.Output.Put(s.name, data)
	}
	return nil
}

func (s *stagedOutput) Open(name string) (fs.File, error) {
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

func (s *stagedOutput) Put(name string, data []byte) error {
	if !s.holds(name) {
		return s.Output.Put(name, data)
	}
	s.files[name] = bytes.Clone(data)
	return nil
}

func (s *stagedOutput) Remove(name string) error {
	if !s.holds(name) {
		return s.Output.Remove(name)
	}
	s.files[name] = nil
	return nil
}

// A dividedOutput is an Output with the directories of private feeds apart.
type dividedOutput struct {
	publish.Output                // of the other feeds
	private        publish.Output // nil means private feeds are not published
	isPrivate      func(name string) (bool, error)
}

// parts returns the parts in use.
func (d *dividedOutput) parts() []publish.Output {
	if d.private == nil {
		return []publish.Output{d.Output}
	}
	return []publish.Output{d.Output, d.private}
}

// of returns the part of a file.
func (d *dividedOutput) of(op, file string) (publish.Output, error) {
	name, _, _ := strings.Cut(file, "/")
	private, err := d.isPrivate(name)
	switch {
	case err != nil:
		return nil, err
	case !private:
		return d.Output, nil
	case d.private == nil:
		return nil, &fs.PathError{Op: op, Path: file, Err: fs.ErrNotExist}
	}
	return d.private, nil
}

// Open implements fs.FS.
func (d *dividedOutput) Open(name string) (fs.File, error) {
	out, err := d.of("open", name)
	if err != nil {
		return nil, err
	}
	return out.Open(name)
}

// Put implements publish.Output.
func (d *dividedOutput) Put(name string, data []byte) error {
	out, err := d.of("put", name)
	if err != nil {
		return err
	}
	return out.Put(name, data)
}

// Remove implements publish.Output.
func (d *dividedOutput) Remove(name string) error {
	out, err := d.of("remove", name)
	if err != nil {
		return err
	}
	return out.Remove(name)
}

// Lock implements publish.Output.
func (d *dividedOutput) Lock() (unlock func() error, err error) {
	first, err := d.Output.Lock()
	if err != nil || d.private == nil {
		return first, err
	}
	second, err := d.private.Lock()
	if err != nil {
		return nil, errors.Join(err, first())
	}
	return func() error { return errors.Join(second(), first()) }, nil
}
