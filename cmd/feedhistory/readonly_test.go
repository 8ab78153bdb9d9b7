//go:build unix

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A stranger runs the command as a user without permissions.
type stranger struct{ program string }

// newStranger copies this program to a directory where everybody may run it. Permissions
// do not restrict root, so root runs it as nobody.
func newStranger(t *testing.T, dir string) stranger {
	t.Helper()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	program := filepath.Join(filepath.Dir(dir), "program")
	self, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer self.Close()
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, self)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, os.Chmod(program, 0o755)) // whatever the umask is
	return stranger{program}
}

func (s stranger) run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	c := exec.Cmd{Path: s.program, Args: append([]string{"feedhistory"}, args...), Stdout: &out, Stderr: &errs, Dir: "/"}
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := c.Run(); c.ProcessState == nil {
		return -1, "", err.Error()
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// Verbs that read a mirror work without permission to write to the database and its
// directory, whether the database is at rest or has a log that a killed process left; and
// they change nothing.
func TestReadOnly(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `<rss version="2.0"><channel><title>Feed</title><item><guid>1</guid><title>Hello</title></item></channel></rss>`)
	}))
	dir := t.TempDir()
	user := newStranger(t, dir)
	file := filepath.Join(dir, "feeds.db")
	status, _, stderr := call(t.Context(), "", "sync", "--db", file, "--allow-private", server.URL+"/feed.rss")
	require.Zero(t, status, stderr)

	reads := func(t *testing.T, dir, search string) {
		t.Helper()
		file := filepath.Join(dir, "feeds.db")
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, name := range append(names, dir) {
			mode := os.FileMode(0o444)
			if name == dir {
				mode = 0o555
			}
			require.NoError(t, os.Chmod(name, mode))
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		before := feedtest.ReadFile(t, file)
		for _, args := range [][]string{
			{"list"}, {"list", server.URL + "/feed.rss"}, {"entries"}, {"entries", "--search", search}, {"export"}, {"export", "--format", "opml"},
		} {
			status, stdout, stderr := user.run(append(args, "--db", file)...)
			require.Zero(t, status, "%q: %s", args, stderr)
			require.NotEmpty(t, stdout, "%q", args)
			require.Empty(t, stderr)
		}
		for _, args := range [][]string{{"rm", server.URL + "/feed.rss"}, {"sync", "--all"}} {
			status, _, stderr := user.run(append(args, "--db", file)...)
			require.Equal(t, exit.Failed, status)
			require.Contains(t, stderr, file+": the file cannot be ")
		}
		after := feedtest.ReadFile(t, file)
		require.Equal(t, before, after)
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Equal(t, names, left)
	}
	t.Run("at rest", func(t *testing.T) { reads(t, dir, "hello") })

	// A copy of the files as they are while another process has them open.
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(file, 0o644))
	d := database.Location{DB: file}
	store, err := d.Connect(t.Context())
	require.NoError(t, err)
	defer store.Close()
	_, err = store.DB.Exec("UPDATE feedhistory_entries SET title = 'Goodbye', data = replace(data, 'Hello', 'Goodbye')")
	require.NoError(t, err)
	_, err = store.DB.Exec("INSERT INTO feedhistory_unindexed SELECT key FROM feedhistory_entries")
	require.NoError(t, err)
	killed := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(killed), 0o755))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data := feedtest.ReadFile(t, file+suffix)
		require.NoError(t, os.WriteFile(filepath.Join(killed, "feeds.db"+suffix), data, 0o644))
	}
	t.Run("with a log", func(t *testing.T) { reads(t, killed, "goodbye") })
}

// A verb reports that another process has written to the file that it read on the
// assumption that nobody writes to it.
func TestReadWhileWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "feeds.db")
	d := database.Location{DB: file}
	w := &command.World{Globals: &command.Globals{}, Flags: &network.Flags{}, Ctx: t.Context()}
	store, err := d.Create(w)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	for _, written := range []bool{false, true} {
		still, err := d.Reader(t.Context(), sqlstore.SQLiteReaderDSN(file, true))
		require.NoError(t, err)
		still.File, still.Info = file, info
		if written {
			require.NoError(t, os.WriteFile(file+"-wal", []byte("x"), 0o600))
			require.ErrorContains(t, still.Close(), "another process wrote to it meanwhile")
			continue
		}
		require.NoError(t, still.Close())
	}
}
