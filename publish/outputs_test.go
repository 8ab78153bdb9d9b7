package publish_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
)

func TestDirOutput(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		dir := t.TempDir()
		return publish.Dir{Path: dir + "/new"}, publish.Dir{Path: dir + "/./new"}
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(testing.TB) (out, other publish.Output) {
		m := &publish.MemoryOutput{}
		return m, m
	})
}

// Only who has an Overlay sees what it keeps. The rest is below, for everybody.
func TestOverlay(t *testing.T) {
	t.Parallel()
	below := &publish.MemoryOutput{}
	for _, name := range []string{"kept", "gone", "through"} {
		require.NoError(t, below.Put(t.Context(), name, []byte("old")))
	}
	o := &publish.Overlay{Output: below, Keeps: func(name string) bool { return name != "through" && name != "new" }}
	data := []byte("edited")
	for _, name := range []string{"kept", "gone", "through", "new"} {
		require.NoError(t, o.Put(t.Context(), name, data))
	}
	clear(data)
	require.NoError(t, o.Remove(t.Context(), "gone"))
	requireTexts := func(out fs.FS, want map[string]string) {
		t.Helper()
		for name, text := range want {
			got, err := fs.ReadFile(out, name)
			if text == "" {
				require.ErrorIs(t, err, fs.ErrNotExist, name)
			} else {
				require.NoError(t, err, name)
			}
			require.Equal(t, text, string(got), name)
		}
	}
	requireTexts(o, map[string]string{"kept": "edited", "gone": "", "through": "edited", "new": "edited", "none": ""})
	requireTexts(below, map[string]string{"kept": "old", "gone": "old", "through": "edited", "new": "edited"})
	require.Equal(t, "edited", string(o.Kept("kept")))
	require.Nil(t, o.Kept("gone"))
	require.Nil(t, o.Kept("through"))
	require.NoError(t, o.Remove(t.Context(), "through"))
	requireTexts(below, map[string]string{"through": ""})

	all := &publish.Overlay{Output: below}
	require.NoError(t, all.Put(t.Context(), "new", []byte("own")))
	requireTexts(all, map[string]string{"new": "own"})
	requireTexts(below, map[string]string{"new": "edited"})
	for _, name := range []string{"", ".", "../up", "/root"} {
		require.ErrorIs(t, all.Put(t.Context(), name, nil), fs.ErrInvalid, name)
		require.ErrorIs(t, all.Remove(t.Context(), name), fs.ErrInvalid, name)
	}
	_, err := new(publish.Overlay).Open("none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
