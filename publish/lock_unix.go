//go:build unix && !solaris && !illumos && !aix

package publish

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes the lock that a file stands for.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
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
	return f.Close, nil // which drops the lock
}

// syncDir waits until a directory's names are on the disk.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
