package argument

import (
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

// CheckTarget refuses a flag's file that cannot be written at the end, before any work is
// done: it is a directory, or in none.
func CheckTarget(flag, file string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return exit.UsageError(flag + ": " + file + " is a directory")
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return exit.UsageError(flag + ": " + file + ": there is no directory " + filepath.Dir(file))
	}
	return nil
}
