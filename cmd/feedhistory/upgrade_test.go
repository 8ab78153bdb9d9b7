package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The files of testdata/upgrade were published by version a764573, from the sources in
// them. This version publishes nothing again, and restores the archives that it could
// restore, byte for byte.
func TestUpgradeRepublishesNothing(t *testing.T) {
	for _, name := range feedtest.Glob(t, "testdata/upgrade/*.txtar") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			command, restores, _ := strings.Cut(string(archive.Comment), "\n")
			published := map[string]string{}
			dir := t.TempDir()
			for _, f := range archive.Files {
				file := filepath.Join(dir, f.Name)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, f.Data, 0o644))
				if strings.HasPrefix(f.Name, "o/") {
					published[file] = string(f.Data)
				}
			}
			require.NotEmpty(t, published)
			args := strings.Fields(command)
			for i, arg := range args {
				if i > 0 && (args[i-1] == "--from" || args[i-1] == "--out") {
					args[i] = filepath.Join(dir, arg)
				}
			}
			unchanged := func() {
				for file, text := range published {
					require.Equal(t, text, string(feedtest.ReadFile(t, file)), file)
				}
			}
			_, _, stderr := call(t.Context(), "", args...)
			require.Contains(t, stderr, "0 new · 0 changed", stderr)
			unchanged()
			for line := range strings.Lines(restores) {
				file := filepath.Join(dir, "o", strings.TrimSpace(strings.TrimPrefix(line, "restores ")))
				require.Contains(t, published, file)
				require.NoError(t, os.Remove(file))
				_, _, stderr := call(t.Context(), "", args...)
				require.Contains(t, stderr, "has been restored")
				unchanged()
			}
		})
	}
}
