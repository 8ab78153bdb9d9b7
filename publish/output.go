package publish

import (
	"errors"
	"io/fs"
)

// An Output is where documents are kept: a directory (Dir), an object store
// (package publish/s3), memory (Memory). Package publish/outputtest proves that
// an implementation keeps the contract that follows.
//
// A name is a slash-separated path for which fs.ValidPath is true, and not ".";
// Put and Remove refuse any other with an error that matches fs.ErrInvalid. Names
// that have an element which begins with a dot are not for the feed's readers;
// for the writer they are like any others. Nobody uses a name both for a document
// and for a directory, nor the names ".lock" and ".*.tmp".
//
// Anybody may read at any time, also while there is a writer. An error about a
// name that does not exist matches fs.ErrNotExist; an error for any other reason,
// such as a failing network, must not match it: a Publisher would take the feed
// for an empty one. What Put or Remove has done is seen by all who begin to read
// after it has returned. fs.ReadFile, fs.Stat, fs.ReadDir and fs.WalkDir work, by
// Open or by methods of their own. A directory exists as long as there is
// something in it, or longer.
type Output interface {
	fs.FS

	// Put stores data under a name, and replaces what was there. It is atomic:
	// at any time, and after any crash, a reader finds all of the old data, or all
	// of the new, or that the name does not exist yet. It is durable: data for
	// which Put has returned nil survives a loss of power. After an error the old
	// data may be there, or the new; the new may even appear later, but not after
	// another Put of the same name has returned nil. Put keeps no reference to
	// data. It may be called at the same time for different names.
	Put(name string, data []byte) error

	// Remove removes a name, as durably. It is no error if the name does not exist.
	Remove(name string) error

	// Lock makes the caller the only writer until it calls unlock, or crashes: a
	// lock that a crashed writer held becomes free by itself, at once or after
	// some time. While there is another writer, here or in another process, Lock
	// returns an error that matches ErrLocked, without waiting for it. An Output
	// that takes the lock from a writer which only seemed to have crashed lets
	// none of that writer's later calls of Put and Remove succeed.
	//
	// Only the holder of the lock may call Put and Remove. Reading needs no lock.
	Lock() (unlock func() error, err error)
}

// ErrLocked says that another writer is at work on an Output.
var ErrLocked = errors.New("another writer is at work on this output")
