// Package openfile has the open documents and directories of a file system whose
// contents are in memory.
package openfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"
)

// ErrDirectory is the reason why a directory cannot be read.
var ErrDirectory = errors.New("is a directory")

// An Info is the fs.FileInfo of a document or a directory.
type Info struct {
	Base  string // the last part of the name
	Bytes int64
	Time  time.Time
	Dir   bool
}

// The methods of fs.FileInfo.

func (i Info) Name() string       { return i.Base }
func (i Info) Size() int64        { return i.Bytes }
func (i Info) ModTime() time.Time { return i.Time }
func (i Info) IsDir() bool        { return i.Dir }
func (i Info) Sys() any           { return nil }

func (i Info) Mode() fs.FileMode {
	if i.Dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// A Document is an open document.
type Document struct {
	Info Info
	*bytes.Reader
}

// The methods of fs.File.

func (d *Document) Stat() (fs.FileInfo, error) { return d.Info, nil }
func (d *Document) Close() error               { return nil }

// A Directory is an open directory.
type Directory struct {
	Info Info
	List []fs.DirEntry // what ReadDir has not returned yet, sorted
}

// The methods of fs.ReadDirFile.

func (d *Directory) Stat() (fs.FileInfo, error) { return d.Info, nil }
func (d *Directory) Close() error               { return nil }

func (d *Directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.Info.Base, Err: ErrDirectory}
}

func (d *Directory) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case n > 0 && len(d.List) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(d.List):
		n = len(d.List)
	}
	list := d.List[:n:n]
	d.List = d.List[n:]
	return list, nil
}
