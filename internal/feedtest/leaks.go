package feedtest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs a package's tests, and fails if they leave goroutines behind: func
// TestMain(m *testing.M) { feedtest.Main(m) }. On a busy machine, goroutines take longer
// to end than goleak waits.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for end := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(end); {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}
