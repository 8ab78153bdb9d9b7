package command_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/command"
)

// A new file removes those of killed processes, and no other: neither that of a process still
// writing to the same name, nor a file or a link of the user's.
func TestUnfinishedFiles(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	dead := in(".out.jsonl.ABCDEFGH.part")
	for _, name := range []string{dead, in(".out.jsonl.ABCDEFGH"), in(".out.jsonl.part"), in(".out.jsonl.my-notes.part"), in(".other.jsonl.ABCDEFGH.part"), in("target")} {
		require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	}
	link := in(".out.jsonl.LINKLINK.part")
	if os.Symlink("target", link) != nil {
		link = in("target")
	}
	var files []*command.File
	for _, text := range []string{"first", "second"} {
		f, err := command.NewFile("--output", in("out.jsonl"))
		require.NoError(t, err)
		_, err = io.WriteString(f, text)
		require.NoError(t, err)
		files = append(files, f)
	}
	require.NoFileExists(t, dead)
	for i, want := range []string{"first", "second"} {
		require.NoError(t, files[i].Commit())
		text, err := os.ReadFile(in("out.jsonl"))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	f, err := command.NewFile("--output", in("out.jsonl"))
	require.NoError(t, err)
	f.Discard()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var left []string
	for _, e := range entries {
		if e.Name() != filepath.Base(link) {
			left = append(left, e.Name())
		}
	}
	want := []string{".other.jsonl.ABCDEFGH.part", ".out.jsonl.ABCDEFGH", ".out.jsonl.my-notes.part", ".out.jsonl.part", "out.jsonl"}
	if filepath.Base(link) != "target" {
		want = append(want, "target")
	}
	require.Equal(t, want, left)
	require.FileExists(t, link)
}
