package mirror_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

// A poll is broken off after each of its commits: at the end of the walk it would have followed the
// links by which archives name documents beyond the chain. The next one follows them.
func TestBrokenOffBeforeLinksBeyond(t *testing.T) {
	site := programSite{
		"/feed": func() string { return numbered(`<link rel="prev-archive" href="/3"/>`, 9, 8) },
		"/3": func() string {
			return numbered(`<fh:archive/><link rel="prev-archive" href="/2"/><link rel="prev-archive" href="/3b"/>`, 7, 6)
		},
		"/3b": func() string {
			return numbered(`<fh:archive/><link rel="prev-archive" href="/1"/><link rel="next-archive" href="/4b"/>`, 5)
		},
		"/4b": func() string { return numbered(`<fh:archive/><link rel="prev-archive" href="/3b"/>`, 0) },
		"/2": func() string {
			return numbered(`<fh:archive/><link rel="current" href="/new"/><link rel="prev-archive" href="/1"/>`, 4, 3)
		},
		"/1":   func() string { return numbered(`<fh:archive/>`, 2, 1) },
		"/new": func() string { return numbered(`<link rel="prev-archive" href="/2"/>`, 11, 10) },
	}
	for commits := range 8 {
		store, own := &crashing{Store: mirror.NewMemory(), left: commits}, newRows()
		_, _ = newMirror(store, site).Update(t.Context(), programURL)
		store.left = 100
		require.NoError(t, own.walk(t.Context(), t, newMirror(nil, site), programURL, commits))
		for range 2 {
			polled(t, newMirror(store, site), programURL)
			require.NoError(t, own.walk(t.Context(), t, newMirror(nil, site), programURL, 100))
		}
		require.Len(t, held(t, store, programURL), 12, "after %d commits", commits)
		require.Len(t, own.titles(), 12, "after %d commits of a program", commits)
	}
}
