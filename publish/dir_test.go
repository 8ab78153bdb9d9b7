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

func TestDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	d := Dir{Path: root}
	_, err := d.Open("x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, d.Remove("x"), "what is not there")

	require.NoError(t, d.Put("2003/11/x.atom", []byte("one")))
	require.NoError(t, d.Put("2003/11/x.atom", []byte("two")))
	data, err := fs.ReadFile(d, "2003/11/x.atom")
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	names, err := fs.Glob(d, "2003/11/*")
	require.NoError(t, err)
	require.Equal(t, []string{"2003/11/x.atom"}, names)

	require.NoError(t, d.Remove("2003/11/x.atom"))
	_, err = fs.ReadFile(d, "2003/11/x.atom")
	require.ErrorIs(t, err, fs.ErrNotExist)

	for _, name := range []string{"", ".", "/x", "../x", "a/../x", "a//x"} {
		require.ErrorIs(t, d.Put(name, nil), fs.ErrInvalid, name)
		require.ErrorIs(t, d.Remove(name), fs.ErrInvalid, name)
	}
	require.NoFileExists(t, filepath.Join(root, "..", "x"))
}

func TestDirIsServed(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, d.Put("feed.atom", []byte("x")))
	info, err := fs.Stat(d, "feed.atom")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o444), info.Mode()&0o444, "a web server can read it")
}

// TestDirPutFails: the old data stays, and nothing is left over.
func TestDirPutFails(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, d.Put("x/y", []byte("one")))
	require.Error(t, d.Put("x/y/z", []byte("below a file")))
	require.Error(t, d.Put("x", []byte("over a directory")))
	require.NoError(t, os.Mkdir(filepath.Join(d.Path, ".z.tmp"), 0o777))
	require.Error(t, d.Put("z", nil))
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err := fs.ReadFile(d, "x/y")
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
}

// TestDirPutAfterCrash: a file that a crash left half-written is no obstacle.
func TestDirPutAfterCrash(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, ".x.tmp"), []byte("half of somethi"), 0o666))
	require.NoError(t, d.Put("x", []byte("whole")))
	data, err := fs.ReadFile(d, "x")
	require.NoError(t, err)
	require.Equal(t, "whole", string(data))
	entries, err := os.ReadDir(d.Path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestDirPutIsAtomic: a reader finds all of one or all of another.
func TestDirPutIsAtomic(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	texts := [2][]byte{make([]byte, 100_000), make([]byte, 50_000)}
	for i := range texts[0] {
		texts[0][i] = 'a'
	}
	require.NoError(t, d.Put("x", texts[0]))
	var writer sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for i := range 100 {
			if err := d.Put("x", texts[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		data, err := fs.ReadFile(d, "x")
		require.NoError(t, err)
		require.Contains(t, texts, data)
	}
	writer.Wait()
}

func TestDirLock(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "new")}
	unlock, err := d.Lock()
	require.NoError(t, err)
	_, err = Dir{Path: d.Path + "/."}.Lock()
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, unlock())
	unlock, err = d.Lock()
	require.NoError(t, err)
	require.NoError(t, unlock())
}

// However many come at the same time, one has the lock, and in the end there is no
// file of it.
func TestDirLockIsOnes(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	var holders, had atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				unlock, err := d.Lock()
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
	unlock, err := d.Lock()
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.NoFileExists(t, filepath.Join(d.Path, lockName))
}

func TestDirHere(t *testing.T) {
	t.Chdir(t.TempDir())
	p := &Publisher{Output: Dir{}, Base: base}
	require.NoError(t, p.Append(entries(t, 1, 120)...))
	require.Len(t, fetch(t, Dir{}, p.URL()).Entries, 120)
	require.FileExists(t, "feed.atom")
}
