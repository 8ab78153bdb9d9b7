//go:build unix && !solaris && !illumos && !aix

package command

import (
	"errors"
	"os"
	"syscall"
)

// hold locks a new file until it is closed. It returns false if another process has taken the
// file for a killed one's. A file system without locks keeps the files of killed processes.
func hold(f *os.File) bool {
	if errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return false
	}
	is, err := f.Stat()
	if err != nil {
		return true
	}
	there, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(is, there)
}

// removeUnheld removes a file, unless a process holds it. It follows no link, and waits for no
// pipe.
func removeUnheld(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.Remove(name)
	}
}

// rename gives a file its name, and closes it only then, so it is held until it has it.
func rename(f *os.File, name string) error {
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return f.Close()
}
