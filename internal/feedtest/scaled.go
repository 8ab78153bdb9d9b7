package feedtest

import "testing"

// Scaled returns the size of a test or benchmark: full or, with -short, short.
func Scaled(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}
