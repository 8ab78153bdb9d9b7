//go:build linux

package main

import (
	"bytes"
	"database/sql"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A disk that fails is neither a damaged file nor another user's. The first page of a
// process's memory is a file whose reading always fails like that.
func TestFailedDisk(t *testing.T) {
	const file = "/proc/self/mem"
	for _, args := range [][]string{{"list"}, {"entries"}, {"sync", "--all"}, {"erase", "urn:1"}, {"rm", "https://example.org/feed"}} {
		status, _, stderr := call(t.Context(), "", append(args, "--db", file)...)
		require.Equal(t, terminal.ExitFailed, status, args)
		require.Equal(t, "feedhistory: "+file+": the disk has failed: input/output error\n", stderr, args)
	}
}

// Verbs that write name a read-only file system; verbs that only read work on it.
func TestReadOnlyFileSystem(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid><title>One</title></item></channel></rss>`)
	}))
	url, dir := server.URL+"/feed.rss", t.TempDir()
	db, pub := filepath.Join(dir, "feeds.db"), filepath.Join(dir, "pub")
	for _, args := range [][]string{
		{"sync", "--db", db, "--allow-private", url},
		{"publish", "--from", url, "--allow-private", "--out", pub, "--base", "https://example.org/"},
	} {
		status, _, stderr := call(t.Context(), "", args...)
		require.Zero(t, status, stderr)
	}
	// In a mount namespace of its own, no permission is needed, and the mount ends with it.
	const mount = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"`
	frozen := func(program string, args ...string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		c := exec.Command("unshare", append([]string{"-rm", "sh", "-c", mount, dir, program}, args...)...)
		c.Stdout, c.Stderr, c.Env = &out, &errs, append(os.Environ(), "GORACE=atexit_sleep_ms=10", "XDG_CONFIG_HOME="+dir)
		_ = c.Run()
		return c.ProcessState.ExitCode(), out.String(), errs.String()
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("there is no unshare")
	}
	if status, _, stderr := frozen("true"); status != 0 {
		t.Skip("this system gives its users no mounts: " + stderr)
	}
	program := filepath.Join(t.TempDir(), "feedhistory")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, program))
	for _, test := range []struct {
		want string
		args []string
	}{
		{"", []string{"list", "--db", db}},
		{"", []string{"entries", "--db", db}},
		{db + ": the file system is read-only", []string{"sync", "--db", db, "--all"}},
		{db + ": the file system is read-only", []string{"sync", "--db", db, "--allow-private", url}},
		{db + ": the file system is read-only", []string{"erase", "--db", db, "urn:1"}},
		{db + ": the file system is read-only", []string{"rm", "--db", db, url}},
		{filepath.Join(dir, "new.db") + ": read-only file system", []string{"sync", "--db", filepath.Join(dir, "new.db"), "--allow-private", url}},
		{filepath.Join(pub, ".lock") + ": read-only file system", []string{"erase", "--out", pub, "urn:1"}},
	} {
		status, stdout, stderr := frozen(program, test.args...)
		if test.want == "" {
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, url)
			continue
		}
		require.Equal(t, terminal.ExitFailed, status, test.args)
		require.Contains(t, stderr, test.want+"\n")
		require.NotContains(t, stderr, "another user")
	}
}

// A copy of newsboat's cache that does not fit says which directory is too small.
func TestFullTemporaryDirectory(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache.db")
	db, err := sql.Open("sqlite", "file:"+cache)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE rss_item (id INTEGER PRIMARY KEY, guid, feedurl, pubDate, content); INSERT INTO rss_item VALUES (1, '', '', 0, hex(zeroblob(500000)))")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	small, program := filepath.Join(dir, "small"), filepath.Join(t.TempDir(), "feedhistory")
	require.NoError(t, os.Mkdir(small, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, program))
	c := exec.Command("unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=64k tmpfs "$0" || exit 99; exec "$@"`,
		small, program, "import", "--db", filepath.Join(dir, "feeds.db"), cache)
	c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10", "XDG_CONFIG_HOME="+dir, "TMPDIR="+small)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if _ = c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() == 99 {
		t.Skip("this system gives its users no mounts: " + stderr.String())
	}
	require.Equal(t, terminal.ExitFailed, c.ProcessState.ExitCode(), stderr.String())
	require.Equal(t, "feedhistory: "+small+" has no room for a copy of "+cache+" (2 MB): set TMPDIR to a directory that has\n", stderr.String())
}
