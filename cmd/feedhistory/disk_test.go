//go:build linux

package main

import (
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	t.Parallel()
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
	program := filepath.Join(commandDir(t), "feedhistory")
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

var faults = flag.Int("faults", feedtest.Count(1), "how many system calls TestFaults lets fail, of each kind of fault")

// Whichever call to the disk fails, and with it all later ones: the message says what
// happened, the stored entries stay, and the next run completes the mirror. The kernel's
// answers are strace's.
func TestFaults(t *testing.T) {
	t.Parallel()
	strace := straceOf(t)
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0"><channel><title>F</title><fh:complete/>`)
		for n := range 300 {
			_, _ = fmt.Fprintf(w, `<item><guid>urn:%d</guid><title>%s</title></item>`, n, strings.Repeat("x", 900))
		}
		_, _ = io.WriteString(w, `</channel></rss>`)
	}))
	const full, failed, noRoom = "the disk is full; nothing stored is lost", "the disk has failed", "the file cannot grow; nothing stored is lost"
	for _, fault := range []struct{ calls, error, want, later string }{
		{"pwrite64", "EIO", failed + ": input/output error", noRoom},
		{"pwrite64", "ENOSPC", full, noRoom},
		{"pwrite64", "EFBIG", noRoom, noRoom},
		{"pwrite64", "EDQUOT", noRoom, noRoom},
		{"ftruncate", "ENOSPC", noRoom, noRoom},
		{"fsync,fdatasync", "EIO", failed + ": input/output error", failed},
		{"pread64,read", "EIO", failed, failed},
		{"?open,openat", "EMFILE", "too many", "too many"}, // the one of SQLite, which not every system has, the other of Go
		{"mmap", "ENOMEM", "there is not enough memory", "there is not enough memory"},
	} {
		t.Run(strings.NewReplacer(",", "-", "?", "").Replace(fault.calls)+"="+fault.error, func(t *testing.T) {
			t.Parallel()
			for n := range *faults {
				db := filepath.Join(t.TempDir(), "feeds.db")
				status, _, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", server.URL+"/first")
				require.Zero(t, status, stderr)
				options := []string{"-e", "trace=" + fault.calls, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d+", fault.calls, fault.error, 1+n*7%60)}
				switch fault.calls { // which the program's loader needs, too
				case "pread64,read", "?open,openat":
					options = append(options, "-P", db, "-P", db+"-wal")
				case "mmap":
					options = append(options, "-P", db+"-shm")
				}
				if status, said := strace(t, options, "sync", "--db", db, "--allow-private", server.URL); status != 0 || said != "" {
					// strace counts the calls of each thread. Where one has made enough of them, the
					// command may find the disk sound with another, and then has SQLite's word only.
					if n == 0 || !strings.Contains(said, fault.later) {
						require.Contains(t, said, fault.want, "call %d", n)
					}
					require.NotContains(t, said, "another user")
				} else {
					require.Positive(t, n, "nothing has failed")
				}
				for _, args := range [][]string{{"sync", "--db", db, "--allow-private", server.URL}, {"db", "check", "--db", db}} {
					status, stdout, stderr := call(t.Context(), "", args...)
					require.Zero(t, status, stderr)
					require.NotContains(t, stdout, "damaged in")
				}
				_, stdout, _ := call(t.Context(), "", "entries", "--db", db)
				require.Equal(t, 600, strings.Count(stdout, "\n"))
			}
		})
	}
}

// straceOf returns a function that runs the command under strace with some options, and returns its
// exit code and its standard error.
func straceOf(t *testing.T) func(t *testing.T, options []string, args ...string) (status int, stderr string) {
	t.Helper()
	strace := feedtest.Program(t, "FEEDHISTORY_STRACE", "strace")
	program := filepath.Join(commandDir(t), "feedhistory")
	return func(t *testing.T, options []string, args ...string) (int, string) {
		var stderr bytes.Buffer
		c := exec.Command(strace, slices.Concat([]string{"-f", "-qq", "-o", os.DevNull}, options, []string{program}, args)...)
		c.Stderr, c.Env = &stderr, append(os.Environ(), "GORACE=atexit_sleep_ms=10", "XDG_CONFIG_HOME="+t.TempDir())
		_ = c.Run()
		if strings.Contains(stderr.String(), "PTRACE") {
			t.Skip("this system lets nobody trace: " + stderr.String())
		}
		return c.ProcessState.ExitCode(), stderr.String()
	}
}

// Few files that may be open, a device in the place of a file, and a full disk in the place
// of a backup: the messages name what is at fault.
func TestNarrowDisk(t *testing.T) {
	t.Parallel()
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid><title>One</title></item></channel></rss>`)
	}))
	status, _, stderr := call(t.Context(), "", "sync", "--db", "/dev/full", "--allow-private", server.URL)
	require.Equal(t, terminal.ExitFailed, status)
	require.Equal(t, "feedhistory: /dev/full: the file cannot be opened: it is not a regular file\n", stderr)
	dir := t.TempDir()
	db, program := filepath.Join(dir, "feeds.db"), filepath.Join(commandDir(t), "feedhistory")
	status, _, stderr = call(t.Context(), "", "sync", "--db", db, "--allow-private", server.URL)
	require.Zero(t, status, stderr)
	run := func(name string, args ...string) (int, string) {
		var errs bytes.Buffer
		c := exec.Command(name, args...)
		c.Stderr, c.Env = &errs, append(os.Environ(), "GORACE=atexit_sleep_ms=10", "XDG_CONFIG_HOME="+dir)
		_ = c.Run()
		return c.ProcessState.ExitCode(), errs.String()
	}
	few := 0
	for n := 7; n < 20; n++ {
		status, stderr := run("sh", "-c", `ulimit -n "$0"; exec "$@"`, strconv.Itoa(n), program, "sync", "--db", db, "--allow-private", server.URL)
		require.NotContains(t, stderr, "another user", "%d files", n)
		if status == terminal.ExitFailed && strings.Contains(stderr, "feeds.db: too many files are open: allow more (ulimit -n)") {
			few++
		}
	}
	require.Positive(t, few)
	small := filepath.Join(dir, "small")
	require.NoError(t, os.Mkdir(small, 0o700))
	status, stderr = run("unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=64k tmpfs "$0" || exit 99; exec "$@"`, small, program, "db", "backup", "--db", db, filepath.Join(small, "copy.db"))
	if status == 99 || status < 0 {
		t.Skip("this system gives its users no mounts: " + stderr)
	}
	require.Equal(t, terminal.ExitFailed, status, stderr)
	require.Equal(t, "feedhistory: "+filepath.Join(small, "copy.db")+": the disk is full; nothing stored is lost: make room, and run the command again\n", stderr)
}

// A copy and a repair need no links, which FAT and network shares do not have. A copy still takes
// no other file's place.
func TestNoLinks(t *testing.T) {
	t.Parallel()
	strace := straceOf(t)
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>F</title><item><guid>urn:1</guid><title>One</title></item></channel></rss>`)
	}))
	dir := t.TempDir()
	db, stick := filepath.Join(dir, "feeds.db"), filepath.Join(dir, "stick.db")
	done(t, "", "sync", "--db", db, "--allow-private", server.URL)
	run := func(args ...string) (int, string) {
		return strace(t, []string{"-e", "inject=linkat:error=EPERM"}, args...)
	}
	status, stderr := run("db", "backup", "--db", db, stick)
	require.Zero(t, status, stderr)
	require.Contains(t, done(t, "", "entries", "--db", stick), "One")
	require.NoFileExists(t, stick+".part")
	status, stderr = run("db", "backup", "--db", db, stick)
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "the file exists already")
	damaged, err := sql.Open("sqlite", "file:"+db)
	require.NoError(t, err)
	_, err = damaged.Exec("UPDATE feedhistory_entries SET data = replace(data, 'One', 'Two')")
	require.NoError(t, errors.Join(err, damaged.Close()))
	require.NoError(t, os.WriteFile(db+".part", []byte("a killed repair's"), 0o600))
	status, stderr = run("db", "check", "--repair", "--allow-private", "--db", db)
	require.Zero(t, status, stderr)
	require.FileExists(t, db+".damaged")
	require.Contains(t, done(t, "", "db", "check", "--db", db), "nothing is damaged")
}

// A copy of newsboat's cache that does not fit says which directory is too small.
func TestFullTemporaryDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache.db")
	db, err := sql.Open("sqlite", "file:"+cache)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE rss_item (id INTEGER PRIMARY KEY, guid, feedurl, pubDate, content); INSERT INTO rss_item VALUES (1, '', '', 0, hex(zeroblob(500000)))")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	small, program := filepath.Join(dir, "small"), filepath.Join(commandDir(t), "feedhistory")
	require.NoError(t, os.Mkdir(small, 0o700))
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
