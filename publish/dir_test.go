package publish

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestDirHere(t *testing.T) {
	t.Chdir(t.TempDir())
	p := &Publisher{Output: Dir{}, Base: base}
	require.NoError(t, p.Append(entries(t, 1, 120)...))
	require.Len(t, fetch(t, Dir{}, p.URL()).Entries, 120)
	require.FileExists(t, "feed.atom")
}
