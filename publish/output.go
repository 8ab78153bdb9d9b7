package publish

import (
	"context"
	"errors"
	"io/fs"
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
