package feedtest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs a package's tests, and fails if they leave goroutines behind: func
// TestMain(m *testing.M) { feedtest.Main(m) }.
func Main(m *testing.M) { os.Exit(Leaks(m.Run())) }

// Leaks returns the exit code of a package's tests, or 1 if they have succeeded, but left
// goroutines behind. On a busy machine, goroutines take longer to end than goleak waits.
func Leaks(code int) int {
	if code != 0 {
		return code
	}
	err := goleak.Find()
	for end := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(end); {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "left after the tests:", err)
		return 1
	}
	return 0
}
