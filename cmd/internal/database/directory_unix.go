//go:build unix && !solaris && !illumos && !aix

package database

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockDirectory locks the directory of a database file: shared while the file is being opened,
// alone while it is being made or removed. It returns a function to unlock it. Where directories cannot be
// locked, it does nothing.
func lockDirectory(file string, alone bool) (unlock func()) {
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return func() {}
	}
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(dir.Fd()), how)
	}
	return func() { dir.Close() }
}
