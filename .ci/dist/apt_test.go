package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A release is a flat repository for apt, whose packages bring the service's files.
func TestRepository(t *testing.T) {
	d := &dist{root: "../..", out: t.TempDir(), work: t.TempDir(), version: "v0.998.0", when: time.Unix(1_700_000_000, 0).UTC()}
	any := filepath.Join(d.work, "any")
	require.NoError(t, os.WriteFile(any, []byte("text"), 0o644))
	files := map[string]string{}
	for _, name := range []string{"feedhistory", "feedfleet", "LICENSE", "NOTICES", "feedhistory.1", "completions/feedhistory.bash", "completions/_feedhistory", "completions/feedhistory.fish"} {
		files[name] = any
	}
	b := &build{target: target{"linux", "amd64", ""}, files: map[string]map[string]string{"feedhistory": files, "feedfleet": files}}
	for _, command := range commands {
		require.NoError(t, d.packages(b, command))
	}
	require.NoError(t, d.debian())
	packages, err := os.ReadFile(filepath.Join(d.out, "Packages"))
	require.NoError(t, err)
	require.Contains(t, string(packages), "Package: feedhistory\nVersion: 0.998.0\n")
	require.Contains(t, string(packages), "\nFilename: ./feedhistory_0.998.0_amd64.deb\nSize: ")
	require.Contains(t, string(packages), "\n\nPackage: feedhistory\n", "a paragraph for each package")
	release, err := os.ReadFile(filepath.Join(d.out, "Release"))
	require.NoError(t, err)
	require.Contains(t, string(release), " Packages.gz\n")
	contents := map[string]os.FileMode{}
	for _, c := range d.contents(b, "feedhistory") {
		contents[c.Destination] = c.FileInfo.Mode
	}
	require.EqualValues(t, 0o755, contents["/usr/bin/feedhistory-service"])
	require.EqualValues(t, 0o440, contents["/etc/sudoers.d/feedhistory"])
}
