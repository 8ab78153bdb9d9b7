package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The listings are of the code. A failure names the lines that differ; `GOWORK=off go run
// ./api` in .ci writes them.
func TestListings(t *testing.T) {
	for _, m := range libraries {
		now, err := listing("../..", m)
		require.NoError(t, err)
		was, err := os.ReadFile(filepath.Join("../..", file(m)))
		require.NoError(t, err)
		require.Equal(t, string(was), now, "the API of module %q is not the one that %s lists: run `go run ./api` in .ci", m, file(m))
	}
}
