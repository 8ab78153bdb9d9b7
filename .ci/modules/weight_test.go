package modules

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that only parses does not link the walk and net/http: what the root registers at
// its start stays in every program.
func TestParseAlone(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	whole, stripped := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "stripped")
	command(t, root, "off", "go", "build", "-o", whole, "./examples/fields")
	names := command(t, root, "off", "go", "tool", "nm", whole)
	require.Contains(t, names, "feedhistory.Parser.Parse")
	require.NotContains(t, names, "feedhistory.(*Client).Walk")
	require.NotContains(t, names, "net/http.(*Transport).RoundTrip")
	if runtime.GOARCH == "amd64" && runtime.GOOS == "linux" {
		command(t, root, "off", "go", "build", "-ldflags=-s -w", "-o", stripped, "./examples/fields")
		info, err := os.Stat(stripped)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(6_500_000))
	}
}
