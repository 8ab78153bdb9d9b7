package republish

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
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

func (b subOutput) Put(ctx context.Context, name string, data []byte) error {
	if !fs.ValidPath(name) || name == "." { // the joined path would be a different file
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Put(ctx, path.Join(b.dir, name), data)
}

func (b subOutput) Remove(ctx context.Context, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Remove(ctx, path.Join(b.dir, name))
}

// A stagedOutput is an Output that holds back a subscription document, and a
// Publisher's note about it, until everything is done.
type stagedOutput struct {
	publish.Output
	name  string
	files map[string][]byte // nil stands for a missing file
	lock  func(context.Context) (unlock func() error, err error)
}

func (s *stagedOutput) Lock(ctx context.Context) (unlock func() error, err error) { return s.lock(ctx) }

func (s *stagedOutput) holds(name string) bool { return name == s.name || name == "."+s.name+".next" }

// hide makes the subscription document seem not to exist, so the feed
// begins again.
func (s *stagedOutput) hide() { s.files[s.name] = nil }

// commit makes the held document visible.
func (s *stagedOutput) commit(ctx context.Context) error {
	if data := s.files[s.name]; data != nil {
		return s.Output.Put(ctx, s.name, data)
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
	files := publish.MemoryOutput{}
	if err := files.Put(context.Background(), name, data); err != nil {
		return nil, err
	}
	return files.Open(name)
}

func (s *stagedOutput) Put(ctx context.Context, name string, data []byte) error {
	if !s.holds(name) {
		return s.Output.Put(ctx, name, data)
	}
	s.files[name] = bytes.Clone(data)
	return nil
}

func (s *stagedOutput) Remove(ctx context.Context, name string) error {
	if !s.holds(name) {
		return s.Output.Remove(ctx, name)
	}
	s.files[name] = nil
	return nil
}

// A dividedOutput is an Output with the directories of private feeds apart.
type dividedOutput struct {
	publish.Output                // of the other feeds
	private        publish.Output // nil means private feeds are not published
	isPrivate      func(name string, written bool) (bool, error)
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
	private, err := d.isPrivate(name, op == "put")
	unknown := errors.Is(err, mirror.ErrNotFound)
	switch {
	case op == "open" && unknown, err == nil && private && d.private == nil:
		return nil, &fs.PathError{Op: op, Path: file, Err: fs.ErrNotExist}
	case err != nil:
		return nil, err
	case private:
		return d.private, nil
	}
	return d.Output, nil
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
func (d *dividedOutput) Put(ctx context.Context, name string, data []byte) error {
	out, err := d.of("put", name)
	if err != nil {
		return err
	}
	return out.Put(ctx, name, data)
}

// Remove implements publish.Output.
func (d *dividedOutput) Remove(ctx context.Context, name string) error {
	out, err := d.of("remove", name)
	if err != nil {
		return err
	}
	return out.Remove(ctx, name)
}

// Lock implements publish.Output.
func (d *dividedOutput) Lock(ctx context.Context) (unlock func() error, err error) {
	first, err := d.Output.Lock(ctx)
	if err != nil || d.private == nil {
		return first, err
	}
	second, err := d.private.Lock(ctx)
	if err != nil {
		return nil, errors.Join(err, first())
	}
	return func() error { return errors.Join(second(), first()) }, nil
}
