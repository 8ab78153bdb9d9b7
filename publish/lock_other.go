//go:build !windows && (!unix || solaris || illumos || aix)

package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile takes the lock of a file. This system has no lock released by a crash, so
// after a crash a person must remove the file.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s: %w", path, ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(path)) }, nil
}

// syncDir does nothing, because not every system can sync directories.
func syncDir(string) error { return nil }
