package collection

import (
	"os"
	"runtime/debug"
)

// spareMemory makes the garbage collector run twice as often, unless the user has set GOGC:
// a harvest of millions of records takes long, and must leave memory to other programs.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
