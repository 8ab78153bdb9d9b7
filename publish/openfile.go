package publish

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"
)

// errDirectory means a directory has no bytes.
var errDirectory = errors.New("is a directory")

// A fileInfo is the fs.FileInfo of a document or a directory.
type fileInfo struct {
	Base  string // the last part of the name
	Bytes int64
	Time  time.Time
	Dir   bool
}

// The methods of fs.FileInfo.

func (i fileInfo) Name() string       { return i.Base }
func (i fileInfo) Size() int64        { return i.Bytes }
func (i fileInfo) ModTime() time.Time { return i.Time }
func (i fileInfo) IsDir() bool        { return i.Dir }
func (i fileInfo) Sys() any           { return nil }

func (i fileInfo) Mode() fs.FileMode {
	if i.Dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// An openDocument is an open document.
type openDocument struct {
	info fileInfo
	*bytes.Reader
}

// The methods of fs.File.

func (d *openDocument) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDocument) Close() error               { return nil }

// An openDirectory is an open directory.
type openDirectory struct {
	info fileInfo
	list []fs.DirEntry // the entries still to return, sorted
}

// The methods of fs.ReadDirFile.

func (d *openDirectory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDirectory) Close() error               { return nil }

func (d *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Base, Err: errDirectory}
}

func (d *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case n > 0 && len(d.list) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(d.list):
		n = len(d.list)
	}
	list := d.list[:n:n]
	d.list = d.list[n:]
	return list, nil
}
