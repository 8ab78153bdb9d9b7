//go:build !unix || solaris || illumos || aix

package command

import (
	"errors"
	"os"
	"runtime"
)

// hold does nothing: on Windows, nobody can remove a file that is open.
func hold(*os.File) bool { return true }

// removeUnheld removes a file on Windows, unless it is open. On other systems the file stays.
func removeUnheld(name string) {
	if runtime.GOOS == "windows" {
		_ = os.Remove(name)
	}
}

// rename closes a file, and gives it its name.
func rename(f *os.File, name string) error {
	return errors.Join(f.Close(), os.Rename(f.Name(), name))
}
