package outputtest

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// aFeed and anArchive are documents of the kinds a Publisher puts, because an output
// may inspect them.
const (
	aFeed = `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title>x</title><updated>2003-12-13T18:30:02Z</updated></feed>
`
	anArchive = `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:x</id>
<fh:archive/><link rel="current" href="https://example.org/feed.atom"/><title>x</title><updated>2003-12-13T18:30:02Z</updated></feed>
`
)

func testPut(t *testing.T, w *world) {
	w.lock()
	for _, text := range []string{"one", aFeed, anArchive, strings.Replace(anArchive, "x", "y", 1), "two", "two", "", "three"} {
		w.put("feed.atom", text)
		w.requireText("feed.atom", text)
	}
	w.put("feed/1-0123456789abcdef.atom", anArchive)
	w.requireText("feed/1-0123456789abcdef.atom", anArchive)
	w.put("feed/1-0123456789abcdef.atom", anArchive)
	linked := strings.Replace(anArchive, "<title>", `<link rel="next-archive" href="https://example.org/2"/><title>`, 1)
	w.put("feed/1-0123456789abcdef.atom", linked)
	w.requireText("feed/1-0123456789abcdef.atom", linked)
	w.requireText("feed.atom", "three")
}

func testContents(t *testing.T, w *world) {
	w.lock()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for name, text := range map[string]string{
		"empty": "", "every-byte.bin": string(all), "line-ends.txt": "a\r\nb\nc\rd", ".empty": "", ".hidden": string(all),
		"large.bin": strings.Repeat(string(all), 3<<20/256), "compressible.atom": strings.Repeat("a", 1<<20), "not-a.atom": "<feed",
	} {
		w.put(name, text)
		w.requireText(name, text)
	}
	require.NoError(t, w.Put(t.Context(), "nil", nil))
	w.requireText("nil", "")
}

// oddNames are valid names, though a Publisher does not use them.
var oddNames = []string{
	"x", "a/b/c/d/e", ".hidden", "a/.hidden", ".dir/x", "a b", "a+b", "a%20b", "%", "a?b#c", "&amp;", "~",
	"é", "日本/語.atom", "feed", "feed.atom/x", "feed-1", "x'y\"", "=", "a,b;c", "@", "(1)", "-", strings.Repeat("n", 200),
}

func testNames(t *testing.T, w *world) {
	w.lock()
	var kept []string
	for _, name := range oddNames {
		// An output may refuse names it cannot keep: no file system can keep all of these.
		if err := w.Put(t.Context(), name, []byte("text of "+name)); err == nil {
			kept = append(kept, name)
		}
	}
	require.Greater(t, len(kept), len(oddNames)/2)
	for _, name := range kept {
		w.requireText(name, "text of "+name)
	}
	for _, name := range kept {
		require.NoError(t, w.Remove(t.Context(), name))
		w.requireMissing(name)
	}
}

func testNotExist(t *testing.T, w *world) {
	for _, name := range []string{"x", "a/b/c", ".hidden", "feed.atom"} {
		w.requireMissing(name)
	}
	unlock := w.lock()
	w.put("feed/2003/1.atom", "x")
	unlock()
	for _, name := range []string{"feed/2003/2.atom", "feed/2003/1", "feed/2003/1.atom2", "fee", "2003", "feed/2", "1.atom"} {
		w.requireMissing(name)
	}
	_, err := fs.ReadFile(w.Output, "feed/2003")
	require.Error(t, err, "a directory")
}

func testRemove(t *testing.T, w *world) {
	w.lock()
	require.NoError(t, w.Remove(t.Context(), "feed/1.atom"), "it does not exist")
	require.NoError(t, w.Remove(t.Context(), ".note"), "it does not exist")
	for _, name := range []string{"feed/1.atom", "feed/11.atom", "feed/1.atom.x", ".note", ".note2", "feed.atom"} {
		w.put(name, name)
	}
	for _, name := range []string{"feed/1.atom", ".note"} {
		for range 2 {
			require.NoError(t, w.Remove(t.Context(), name))
			w.requireMissing(name)
		}
	}
	for _, name := range []string{"feed/11.atom", "feed/1.atom.x", ".note2", "feed.atom"} {
		w.requireText(name, name)
	}
	w.put("feed/1.atom", "again")
	w.requireText("feed/1.atom", "again")
	w.put(".note", "again")
	w.requireText(".note", "again")
}

// testDirectories checks whether an output is a sound fs.FS, which web servers can use.
func testDirectories(t *testing.T, w *world) {
	unlock := w.lock()
	names := []string{"feed-x/2.atom", "feed.atom", "feed/1.atom", "feed/2003/11.atom", "feed/2003/12.atom", "other/1.atom"}
	for _, name := range names {
		w.put(name, aFeed)
	}
	unlock()
	for _, out := range []fs.FS{w.Output, w.other} {
		require.NoError(t, fstest.TestFS(out, names...))
		all, err := visible(out, ".")
		require.NoError(t, err)
		require.Equal(t, names, all)
		none, err := visible(out, "nowhere")
		require.NoError(t, err)
		require.Empty(t, none)
		_, err = fs.ReadDir(out, "nowhere")
		require.ErrorIs(t, err, fs.ErrNotExist)
		info, err := fs.Stat(out, "feed/1.atom")
		require.NoError(t, err)
		require.EqualValues(t, len(aFeed), info.Size())
		require.False(t, info.ModTime().IsZero())
		_, err = out.Open("../feed/1.atom")
		require.ErrorAs(t, err, new(*fs.PathError))
	}
	unlock = w.lock()
	defer unlock()
	require.NoError(t, w.Remove(t.Context(), "feed/2003/11.atom"))
	left, err := visible(w.other, "feed")
	require.NoError(t, err)
	require.Equal(t, []string{"feed/1.atom", "feed/2003/12.atom"}, left)
}
