package feedtest

import "testing"

// Scaled returns the size of a test or benchmark: full or, with -short, short.
func Scaled(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Long leaves a test out of the short form, `go test -short`.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
}
