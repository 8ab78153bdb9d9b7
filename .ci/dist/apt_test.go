package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A release is a flat repository for apt. `.ci/tryrelease` tries the packages themselves.
func TestRepository(t *testing.T) {
	d := &dist{out: t.TempDir(), version: "v0.998.0", when: time.Unix(1_700_000_000, 0).UTC()}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(d.out, name))
		require.NoError(t, err)
		return string(text)
	}
	for _, command := range []string{"feedhistory", "feedfleet"} {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "DEBIAN"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "DEBIAN/control"),
			[]byte("Package: "+command+"\nVersion: 0.998.0\nArchitecture: amd64\nMaintainer: a <a@example.org>\nDescription: b\n"), 0o644))
		out, err := exec.Command("dpkg-deb", "--build", dir, filepath.Join(d.out, command+"_0.998.0_amd64.deb")).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, d.debian())
	require.Contains(t, read("Packages"), "Package: feedhistory\nVersion: 0.998.0\n")
	require.Contains(t, read("Packages"), "\nFilename: ./feedhistory_0.998.0_amd64.deb\nSize: ")
	require.Contains(t, read("Packages"), "\n\nPackage: feedhistory\n", "a paragraph for each package")
	require.Contains(t, read("Release"), " Packages.gz\n")
}
