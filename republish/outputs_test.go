package republish

import (
	"io"
	"io/fs"
	"testing"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/stretchr/testify/require"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		d := publish.Dir{Path: t.TempDir()}
		return subOutput{d, "a/b"}, subOutput{subOutput{d, "a"}, "b"}
	})
}

// TestStaged checks that only its writer sees what a staged Output holds back,
// and that it is otherwise like any Output.
func TestStaged(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(testing.TB) (out, other publish.Output) {
		m := &publish.MemoryOutput{}
		s := &stagedOutput{Output: m, name: "index.atom", files: map[string][]byte{}, lock: m.Lock}
		return s, s
	})
}

// TestDivided checks that the directories of both parts are Outputs.
func TestDivided(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"private", "public"} {
		outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
			d := &dividedOutput{
				Output: publish.Dir{Path: t.TempDir()}, private: publish.Dir{Path: t.TempDir()},
				isPrivate: func(name string, _ bool) (bool, error) { return name == "private", nil },
			}
			return subOutput{d, name}, subOutput{d, name}
		})
	}
}

// TestDividedStranger checks that a file of an unknown feed, which may be a private one,
// is neither read nor written.
func TestDividedStranger(t *testing.T) {
	t.Parallel()
	m := &publish.MemoryOutput{}
	name := Name("https://example.org/feed")
	require.NoError(t, m.Put(t.Context(), name+"/file", nil))
	store := &mirror.Memory{}
	all := &directory{store: store}
	d := &dividedOutput{Output: m, private: &publish.MemoryOutput{}, isPrivate: all.isPrivate}
	_, err := d.Open(name + "/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, d.Put(t.Context(), name+"/file", nil), mirror.ErrNotFound)
	require.ErrorIs(t, d.Remove(t.Context(), name+"/file"), mirror.ErrNotFound)

	withNames(t, store, "https://example.org/feed")
	all.add("https://example.org/feed")
	f, err := d.Open(name + "/file")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestDividedUnknown checks that nothing is read or written if it is not known whose
// it is.
func TestDividedUnknown(t *testing.T) {
	t.Parallel()
	m := &publish.MemoryOutput{}
	require.NoError(t, m.Put(t.Context(), "name/file", nil))
	d := &dividedOutput{Output: m, private: m, isPrivate: func(string, bool) (bool, error) { return false, io.ErrUnexpectedEOF }}
	_, err := d.Open("name/file")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, d.Put(t.Context(), "name/file", nil), io.ErrUnexpectedEOF)
	require.ErrorIs(t, d.Remove(t.Context(), "name/file"), io.ErrUnexpectedEOF)
}
