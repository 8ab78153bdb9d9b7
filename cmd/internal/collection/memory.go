package collection

import (
	"os"
	"runtime/debug"
)

// spareMemory makes the garbage collector work harder, unless the user has set it. A
// collection can have millions of records, and their harvest should fit beside other programs.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
