package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/republish"
	"github.com/stretchr/testify/require"
)

// holds reports whether any file of a directory has a text, in any case.
func holds(t *testing.T, dir, text string) (in []string) {
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(bytes.ToLower(data), []byte(text)) {
			in = append(in, filepath.Base(name))
		}
		return err
	}))
	return in
}

const feedWithSecret = `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><id>urn:f</id><updated>2003-12-13T18:30:02Z</updated>
<entry><id>urn:1</id><title>Xylosecret %d</title><updated>2003-01-0%dT00:00:00Z</updated><link href="http://example.org/xylosecret"/><content>Of Xylosecret</content></entry>
<entry><id>urn:2</id><title>Two</title><updated>2003-01-02T00:00:00Z</updated><content>Of something else</content></entry></feed>`

// mirrorOfSecret mirrors feedWithSecret in a directory, with a place for published feeds.
func mirrorOfSecret(t *testing.T) (data, db, out string) {
	dir, url := serveDirectory(t)
	data = t.TempDir()
	db, out = filepath.Join(data, "feeds.db"), filepath.Join(data, "pub")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.atom"), fmt.Appendf(nil, feedWithSecret, 1, 1), 0o600))
	done(t, "", "sync", "--allow-private", "--db", db, url+"/feed.atom")
	return data, db, out
}

// An erased entry is in no file of the database, neither as a version nor in an index.
func TestEraseFromFiles(t *testing.T) {
	dir, url := serveDirectory(t)
	data := t.TempDir()
	db := filepath.Join(data, "feeds.db")
	for n := 1; n < 4; n++ {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.atom"), fmt.Appendf(nil, feedWithSecret, n, n), 0o600))
		done(t, "", "sync", "--allow-private", "--db", db, url+"/feed.atom")
	}
	require.Len(t, contentsOf(t, db).Versions, 2)
	require.Contains(t, done(t, "", "entries", "--db", db, "--search", "xylosecret"), "urn:1")
	require.NotEmpty(t, holds(t, data, "xylosecret"))

	status, _, stderr := call(t.Context(), "", "erase", "--db", db, "urn:none")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "there is no entry with the id urn:none")
	done(t, "", "erase", "--db", db, "urn:1")
	require.Empty(t, holds(t, data, "xylosecret"))
	require.Contains(t, done(t, "", "entries", "--db", db, "--search", "xylosecret"), "No entries match")
	require.Contains(t, done(t, "", "entries", "--db", db, "--search", "something"), "urn:2")

	done(t, "", "sync", "--allow-private", "--db", db, url+"/feed.atom")
	require.Empty(t, holds(t, data, "xylosecret"))
	lines := done(t, "", "export", "--raw", "--db", db)
	require.Contains(t, lines, `"id":"urn:1","deleted":`)
	require.NotContains(t, lines, "ylosecret")
	copied := filepath.Join(data, "copy.db")
	done(t, lines, "import", "--db", copied)
	done(t, "", "sync", "--allow-private", "--all", "--db", copied)
	require.Empty(t, holds(t, data, "xylosecret"))
}

func TestEraseFromPostgreSQL(t *testing.T) {
	t.Parallel()
	db := postgres(t).Database(t)
	dir, url := serveDirectory(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.atom"), fmt.Appendf(nil, feedWithSecret, 1, 1), 0o600))
	done(t, "", "sync", "--allow-private", "--db", db, url+"/feed.atom")
	done(t, "", "erase", "--db", db, "urn:1")
	require.Len(t, contentsOf(t, db).Records, 2)
	require.NotContains(t, done(t, "", "export", "--raw", "--db", db), "ylosecret")
	done(t, "", "sync", "--allow-private", "--all", "--db", db)
	require.NotContains(t, done(t, "", "export", "--raw", "--db", db), "ylosecret")
}

// An erasure that ended between the published feed and the mirror continues when it is run
// again.
func TestEraseAgain(t *testing.T) {
	data, db, out := mirrorOfSecret(t)
	done(t, done(t, "", "export", "--raw", "--db", db), "publish", "--out", out, "--base", "https://example.org/")
	done(t, "", "erase", "--out", out, "urn:1")
	require.Empty(t, holds(t, out, "xylosecret"))
	require.NotEmpty(t, holds(t, data, "xylosecret"))
	status, _, stderr := call(t.Context(), "", "erase", "--out", out, "--db", db, "urn:1", "urn:2")
	require.Equal(t, terminal.ExitOK, status, stderr)
	require.Contains(t, said(stderr), "erased from https://example.org/feed.atom: 1 entry")
	require.Contains(t, said(stderr), "pub: there is no entry with the id urn:1")
	require.Contains(t, said(stderr), "feeds.db: 2 entries")
	require.Empty(t, holds(t, data, "xylosecret"))
	require.Empty(t, holds(t, out, "something else"))
	done(t, "", "erase", "--out", out, "--db", db, "urn:1", "urn:2")
	status, _, stderr = call(t.Context(), "", "erase", "--out", out, "--db", db, "urn:none")
	require.Equal(t, terminal.ExitFailed, status, stderr)
}

// An entry that was never mirrored is erased from what is published, and keeps no other
// from being erased; one that is in neither place is an error in the end.
func TestEraseNeverMirrored(t *testing.T) {
	data, db, out := mirrorOfSecret(t)
	done(t, `{"id":"urn:own","title":"Mysecret"}`+"\n"+`{"id":"urn:last","title":"Last"}`+"\n", "publish", "--out", out, "--base", "https://example.org/")
	status, _, stderr := call(t.Context(), "", "erase", "--out", out, "--db", db, "urn:own", "urn:1", "urn:none")
	require.Equal(t, terminal.ExitFailed, status, stderr)
	require.Contains(t, said(stderr), "feeds.db: there is no entry with the id urn:own")
	require.Contains(t, said(stderr), "feedhistory: there is no entry with the id urn:none")
	require.Contains(t, said(stderr), "feeds.db: 1 entry")
	require.Empty(t, holds(t, data, "mysecret"))
	require.Empty(t, holds(t, data, "xylosecret"))
	done(t, "", "erase", "--out", out, "--db", db, "urn:last")

	status, _, stderr = call(t.Context(), "", "erase", "--db", db, "urn:2", "urn:none")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, said(stderr), "there is no entry with the id urn:none")
	require.NotEmpty(t, holds(t, data, "something else"), "nothing is erased")
}

// An erased entry is in no format any more, and the command reports another feed of the
// directory that still has it.
func TestEraseFormats(t *testing.T) {
	out := filepath.Join(t.TempDir(), "pub")
	lines := `{"id":"urn:1","title":"Xylosecret"}` + "\n" + `{"id":"urn:2","title":"Two"}` + "\n"
	publish := func(flags ...string) {
		done(t, lines, append([]string{"publish", "--out", out, "--base", "https://example.org/"}, flags...)...)
	}
	publish()
	publish("--format", "rss", "--size", "1")
	done(t, "", "erase", "--out", out, "urn:1")
	require.Empty(t, holds(t, out, "xylosecret"))

	publish("--name", "other.atom")
	status, _, stderr := call(t.Context(), "", "erase", "--out", out, "urn:1")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "other.atom still has the entry urn:1")
	done(t, "", "erase", "--out", out, "--name", "other.atom", "urn:1")
	require.Empty(t, holds(t, out, "xylosecret"))
	require.NoError(t, os.Remove(filepath.Join(out, "other.atom")))
	status, _, stderr = call(t.Context(), "", "erase", "--out", out, "urn:2", "urn:3")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "there is no entry with the id urn:3")
}

// No published document has an erased entry any more. The documents that had it have new
// addresses, which the command prints.
func TestErasePublished(t *testing.T) {
	out := filepath.Join(t.TempDir(), "feeds")
	var lines strings.Builder
	for n := range 9 {
		title := fmt.Sprint("Entry ", n)
		if n == 4 {
			title = "Xylosecret"
		}
		fmt.Fprintf(&lines, `{"id":"urn:%d","title":"%s","updated":"2003-01-0%dT00:00:00Z"}`+"\n", n, title, n+1)
	}
	done(t, lines.String(), "publish", "--out", out, "--base", "https://example.org/feeds/", "--size", "2")
	before, err := documentsIn(os.DirFS(out))
	require.NoError(t, err)
	require.Len(t, before, 5)
	status, _, stderr := call(t.Context(), "", "erase", "--out", out, "urn:none")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "there is no entry with the id urn:none; nothing is erased")

	status, _, stderr = call(t.Context(), "", "erase", "--out", out, "urn:4")
	require.Equal(t, terminal.ExitOK, status, stderr)
	require.Empty(t, holds(t, out, "xylosecret"))
	require.Empty(t, holds(t, out, "urn:4"))
	after, err := documentsIn(os.DirFS(out))
	require.NoError(t, err)
	require.Len(t, after, 5)
	text := strings.Join(strings.Fields(stderr), " ")
	gone := 0
	for _, name := range before {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			require.Contains(t, text, "https://example.org/feeds/"+name+" is gone")
			gone++
		}
	}
	require.Equal(t, 2, gone)
	require.Equal(t, 2, strings.Count(text, " is new"))
	status, _, stderr = call(t.Context(), "", "erase", "--out", t.TempDir(), "urn:4")
	require.Equal(t, terminal.ExitFailed, status)
	require.Contains(t, stderr, "nothing is published there: no feed.atom, no feed.rss")
}

// The entry also disappears from the feeds that a history server has republished, and
// nothing remains of a feed that was removed or moved.
func TestEraseRepublished(t *testing.T) {
	dir, url := serveDirectory(t)
	data := t.TempDir()
	db := filepath.Join(data, "feeds.db")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "feed.atom"), fmt.Appendf(nil, feedWithSecret, 1, 1), 0o600))
	for _, verb := range []string{"erase", "rm", "move"} {
		for _, served := range []string{db + ".published", db + ".published.private", filepath.Join(data, "elsewhere")} {
			done(t, "", "sync", "--allow-private", "--db", db, url+"/feed.atom")
			sub := filepath.Join(served, "5282ccb9", republish.Name(url+"/feed.atom"))
			other := filepath.Join(served, "5282ccb9", republish.Name(url+"/other.atom"))
			for _, dir := range []string{filepath.Join(sub, "index"), sub[:len(sub)-20], other} {
				require.NoError(t, os.MkdirAll(dir, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "index.atom"), []byte("xylosecret"), 0o600))
			}
			args := []string{verb, "--db", db}
			if filepath.Base(served) == "elsewhere" {
				args = append(args, "--published", served)
			}
			switch verb {
			case "erase":
				args = append(args, "urn:1")
			case "rm":
				args = append(args, url+"/feed.atom")
			case "move":
				args = append(args, url+"/feed.atom", url+"/moved.atom")
			}
			done(t, "", args...)
			require.NoFileExists(t, filepath.Join(sub, "index", "index.atom"))
			require.NoFileExists(t, filepath.Join(sub[:len(sub)-20], "index.atom"))
			require.FileExists(t, filepath.Join(other, "index.atom"))
			require.NoError(t, os.RemoveAll(served))
			require.NoError(t, os.Remove(db))
		}
	}
}
