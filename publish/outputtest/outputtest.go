// Package outputtest tests implementations of publish.Output against the interface's
// documentation.
package outputtest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/publish"
)

// Run tests the outputs open returns: two over the same documents, at first none. They
// may be the same output, if there is no way to open two. Open registers whatever it
// must close with t.Cleanup.
func Run(t *testing.T, open func(t testing.TB) (out, other publish.Output)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, w *world)
	}{
		{"Put", testPut},
		{"Contents", testContents},
		{"Names", testNames},
		{"NotExist", testNotExist},
		{"Remove", testRemove},
		{"Directories", testDirectories},
		{"Model", testModel},
		{"Aliases", testAliases},
		{"Refused", testRefused},
		{"Lock", testLock},
		{"Atomic", testAtomic},
		{"Parallel", testParallel},
		{"Feed", testFeed},
		{"FeedByTurns", testFeedByTurns},
		{"FeedErased", testFeedErased},
		{"FeedRaced", testFeedRaced},
		{"FeedCutShort", testFeedCutShort},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, other := open(t)
			test.run(t, &world{T: t, Output: out, other: other})
		})
	}
}

// A world is the environment of a test: its output, and another one over the same
// documents.
type world struct {
	*testing.T
	publish.Output
	other publish.Output
}

// lock makes the world's output the writer until the test ends or the caller
// unlocks it.
func (w *world) lock() (unlock func()) {
	w.Helper()
	release, err := w.Lock(context.Background())
	require.NoError(w, err)
	done := false
	unlock = func() {
		if !done {
			done = true
			require.NoError(w, release())
		}
	}
	w.Cleanup(unlock)
	return unlock
}

// put stores a document.
func (w *world) put(name, text string) {
	w.Helper()
	require.NoError(w, w.Put(context.Background(), name, []byte(text)), name)
}

// requireText requires both outputs to have a document.
func (w *world) requireText(name, text string) {
	w.Helper()
	for _, out := range []fs.FS{w.Output, w.other} {
		data, err := fs.ReadFile(out, name)
		require.NoError(w, err, name)
		require.True(w, text == string(data), "%s has other data", name)
	}
}

// requireMissing requires both outputs to lack a document.
func (w *world) requireMissing(name string) {
	w.Helper()
	for _, out := range []fs.FS{w.Output, w.other} {
		_, err := fs.ReadFile(out, name)
		require.ErrorIs(w, err, fs.ErrNotExist, name)
		_, err = fs.Stat(out, name)
		require.ErrorIs(w, err, fs.ErrNotExist, name)
		f, err := out.Open(name)
		require.ErrorIs(w, err, fs.ErrNotExist, name)
		require.Nil(w, f)
	}
}

// visible returns the names of the visible documents below a directory, sorted.
func visible(out fs.FS, dir string) (names []string, err error) {
	err = fs.WalkDir(out, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case isHidden(entry.Name()) && entry.IsDir():
			return fs.SkipDir
		case !entry.IsDir() && !isHidden(entry.Name()):
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func isHidden(base string) bool { return base != "." && base[0] == '.' }
