package publish

import (
	"errors"
	"fmt"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION: another process has the file open.
const errSharing = syscall.Errno(32)

// lockFile takes the lock of a file by opening it exclusively.
func lockFile(path string) (unlock func() error, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		err = fmt.Errorf("%s: %w", path, ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		err := syscall.CloseHandle(h)
		_ = syscall.DeleteFile(name) // fails if another process has opened it already
		return err
	}, nil
}

// syncDir does nothing, because NTFS has its own journal of names.
func syncDir(string) error { return nil }
