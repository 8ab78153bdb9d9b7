package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A release is a flat repository for apt, whose packages bring the service's files. Homebrew,
// scoop and winget find its archives.
func TestRepository(t *testing.T) {
	d := &dist{root: "../..", out: t.TempDir(), work: t.TempDir(), version: "v0.998.0", when: time.Unix(1_700_000_000, 0).UTC()}
	linux := target{"linux", "amd64", ""}
	for _, name := range []string{
		linux.String() + "/feedhistory", linux.String() + "/feedfleet",
		"documents/NOTICES", "documents/feedhistory.1", "documents/feedhistory.bash", "documents/_feedhistory", "documents/feedhistory.fish",
	} {
		path := filepath.Join(d.work, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	}
	for _, command := range commands {
		require.NoError(t, d.packages(linux, command))
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
	for _, name := range []string{"linux-arm64.tar.gz", "windows-amd64.zip"} {
		require.NoError(t, os.WriteFile(filepath.Join(d.out, "feedhistory-v0.998.0-"+name), []byte(name), 0o644))
	}
	require.NoError(t, d.manifests())
	manifest := func(name string) string {
		text, err := os.ReadFile(filepath.Join(d.out, name))
		require.NoError(t, err)
		return string(text)
	}
	const address = "https://github.com/feedhistory/feedhistory/releases/download/v0.998.0/feedhistory-v0.998.0-windows-amd64.zip"
	var scoop struct {
		Version      string
		Architecture map[string]map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(manifest("feedhistory.json")), &scoop))
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("windows-amd64.zip")))
	require.Equal(t, map[string]string{"url": address, "hash": digest, "extract_dir": "feedhistory-v0.998.0-windows-amd64"}, scoop.Architecture["64bit"])
	require.Contains(t, manifest("feedhistory.rb"), "  on_linux do\n    on_arm do\n      url \"https://github.com/")
	require.NotContains(t, manifest("feedhistory.rb"), "windows")
	require.Contains(t, manifest("feedhistory.feedhistory.installer.yaml"), "InstallerUrl: "+address+"\n    InstallerSha256: "+digest+"\n")
	for _, name := range []string{"feedhistory.feedhistory.yaml", "feedhistory.feedhistory.installer.yaml", "feedhistory.feedhistory.locale.en-US.yaml"} {
		require.Contains(t, manifest(name), "PackageIdentifier: feedhistory.feedhistory\nPackageVersion: 0.998.0\n")
	}
	files, err := exec.Command("dpkg-deb", "--contents", filepath.Join(d.out, "feedhistory_0.998.0_amd64.deb")).Output()
	require.NoError(t, err)
	for _, file := range []string{
		`-rwxr-xr-x root/root .* \./usr/bin/feedhistory`, `-rwxr-xr-x root/root .* \./usr/bin/feedhistory-service`,
		`-r--r----- root/root .* \./etc/sudoers\.d/feedhistory`, `-rw-r--r-- root/root .* \./usr/share/man/man1/feedhistory\.1`,
	} {
		require.Regexp(t, "(?m)^"+file+"$", string(files))
	}
}
