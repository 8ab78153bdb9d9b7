//go:build unix && !solaris && !illumos && !aix

package publish

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock of a file. The file exists only while the lock is held or,
// after a crash, until the next writer comes, so no site publishes it and nobody
// commits it. A link in its place is refused.
func lockFile(path string) (unlock func() error, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o666)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s: %w", path, ErrLocked)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if isAt(f, path) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil // Close releases the lock
		}
		if err := f.Close(); err != nil { // the file belonged to another writer, who has just removed it
			return nil, err
		}
	}
}

// isAt reports whether a file still has its name.
func isAt(f *os.File, path string) bool {
	is, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(is, there)
}

// syncDir waits until the names in a directory are on the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
