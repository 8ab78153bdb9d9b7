package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDirIsServed(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, d.Put(t.Context(), "feed.atom", []byte("x")))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, "usual"), nil, 0o666)) // less the umask
	usual, err := fs.Stat(d, "usual")
	require.NoError(t, err)
	info, err := fs.Stat(d, "feed.atom")
	require.NoError(t, err)
	require.Equal(t, usual.Mode()&0o444, info.Mode()&0o444, "a web server can read it")
}

// TestDirPutFails checks that the old data stays, and that nothing else is
// left.
func TestDirPutFails(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, d.Put(t.Context(), "x/y", []byte("one")))
	require.Error(t, d.Put(t.Context(), "x/y/z", []byte("below a file")))
	require.Error(t, d.Put(t.Context(), "x", []byte("over a directory")))
	require.NoError(t, os.Mkdir(filepath.Join(d.Path, ".z.tmp"), 0o777))
	require.Error(t, d.Put(t.Context(), "z", nil))
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err := fs.ReadFile(d, "x/y")
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
}

// TestDirPutAfterCrash checks that a file which a crash left half-written does
// no harm.
func TestDirPutAfterCrash(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, ".x.tmp"), []byte("half of somethi"), 0o666))
	require.NoError(t, d.Put(t.Context(), "x", []byte("whole")))
	data, err := fs.ReadFile(d, "x")
	require.NoError(t, err)
	require.Equal(t, "whole", string(data))
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Nothing is written through a link that somebody has put where a temporary file, the
// document or the lock belongs.
func TestDirFollowsNoLink(t *testing.T) {
	for _, name := range []string{".feed.atom.tmp", "feed.atom", ".lock"} {
		precious := filepath.Join(t.TempDir(), "precious")
		require.NoError(t, os.WriteFile(precious, []byte("mine"), 0o666))
		d := Dir{Path: t.TempDir()}
		if err := os.Symlink(precious, filepath.Join(d.Path, name)); err != nil {
			t.Skip("this system makes no links: ", err)
		}
		unlock, err := d.Lock(t.Context())
		if name == ".lock" {
			require.Error(t, err, "a lock elsewhere is no lock here")
		} else {
			require.NoError(t, err)
			require.NoError(t, d.Put(t.Context(), "feed.atom", []byte("whole")))
			require.NoError(t, unlock())
			info, err := os.Lstat(filepath.Join(d.Path, "feed.atom"))
			require.NoError(t, err)
			require.True(t, info.Mode().IsRegular(), name)
		}
		data, err := os.ReadFile(precious)
		require.NoError(t, err)
		require.Equal(t, "mine", string(data), name)
	}
}

// However many try at the same time, one gets the lock, and in the end its file
// is gone.
func TestDirLockIsOnes(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	var holders, had atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				unlock, err := d.Lock(t.Context())
				if errors.Is(err, ErrLocked) {
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				assert.EqualValues(t, 1, holders.Add(1))
				had.Add(1)
				holders.Add(-1)
				assert.NoError(t, unlock())
			}
		})
	}
	all.Wait()
	require.Positive(t, had.Load())
	require.NoFileExists(t, filepath.Join(d.Path, lockName))
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, lockName), nil, 0o600)) // as a crash, or an earlier version, leaves it
	unlock, err := d.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.NoFileExists(t, filepath.Join(d.Path, lockName))
}

func TestDirHere(t *testing.T) {
	t.Chdir(t.TempDir())
	p := &Publisher{Output: Dir{}, Base: base}
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 120)...))
	require.Len(t, fetch(t, Dir{}, p.URL()).Entries, 120)
	require.FileExists(t, "feed.atom")
}
