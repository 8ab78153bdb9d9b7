package publish

import (
	"errors"
	"io/fs"
)

// An Output is where documents stand: a directory, a bucket, memory. Names are
// slash-separated paths as fs.ValidPath has them.
//
// Reading may go on at any time, beside a writer and beside other readers. An
// error about a name that is not there matches fs.ErrNotExist; everything
// rests on telling this apart from other failures. Erase also reads directories
// (fs.ReadDirFS, or an Open that returns fs.ReadDirFile).
type Output interface {
	fs.FS

	// Put stores data under name, and replaces what was there. It is atomic:
	// at any time, and after any crash, a reader finds all of the old or all of
	// the new, or that nothing is there yet. It is durable: what Put has returned
	// nil for survives a loss of power. After an error either may be there, the
	// old or the new. Put may be called at the same time for different names.
	Put(name string, data []byte) error

	// Remove removes a name, as durably. It is no error if it is not there.
	Remove(name string) error

	// Lock makes the caller the only writer until it calls unlock, or crashes.
	// If there is another writer the error matches ErrLocked, at once.
	Lock() (unlock func() error, err error)
}

// ErrLocked says that another writer is at work on an Output.
var ErrLocked = errors.New("another writer is at work on this output")
