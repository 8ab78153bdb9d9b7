package database

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// newDownloader returns a downloader into a new directory, with the results in a list.
func newDownloader(t *testing.T) (d *Downloader, results *[]DownloadResult) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "records.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	root, err := os.OpenRoot(filepath.Join(dir, "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	results = new([]DownloadResult)
	d = &Downloader{
		Root: root, Downloads: &Downloads{DB: db}, Client: &feedhistory.Client{AllowPrivate: true}, Parallel: 4, MaxBytes: 10 << 30,
		ClientFor: func(string) *feedhistory.Client { return nil },
		Each:      func(r DownloadResult) { *results = append(*results, r) }, Read: func(int) {},
	}
	t.Cleanup(d.Client.CloseIdle)
	require.NoError(t, d.Downloads.Open(t.Context()))
	return d, results
}

// A download that was cut short goes on where it was cut, if the file is the same; else it
// begins again.
func TestResume(t *testing.T) {
	text := []byte(strings.Repeat(rand.Text(), 5000))
	for name, test := range map[string]struct {
		tag  func(request int) string
		want []string // the Range of each request
	}{
		"same":    {func(int) string { return `"one"` }, []string{"", "bytes=65536-"}},
		"changed": {func(n int) string { return []string{`"one"`, `"two"`}[n] }, []string{"", "bytes=65536-"}},
		"weak":    {func(int) string { return `W/"one"` }, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var ranges feedtest.List[string]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := ranges.Add(r.Header.Get("Range"))
				w.Header().Set("ETag", test.tag(n-1))
				if n == 1 {
					w.Header().Set("Content-Length", "130000")
					_, _ = w.Write(text[:65536])
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				http.ServeContent(w, r, "a.mp3", time.Time{}, strings.NewReader(string(text)))
			}))
			defer server.Close()
			d, results := newDownloader(t)
			file := File{Feed: "f", URL: server.URL + "/a.mp3?x", Name: "a.mp3"}
			require.NoError(t, d.Download(t.Context(), []File{file}))
			require.ErrorIs(t, (*results)[0].Err, ErrCut)
			require.NoError(t, d.Download(t.Context(), []File{file}))
			require.NoError(t, (*results)[1].Err)
			saved, err := d.Root.ReadFile("a.mp3")
			require.NoError(t, err)
			require.Equal(t, text, saved)
			require.Equal(t, test.want, ranges.All())
			taken, err := d.Downloads.Taken(t.Context(), file)
			require.NoError(t, err)
			sum := sha256.Sum256(text)
			require.Equal(t, Saved{"a.mp3", int64(len(text)), "sha256:" + hex.EncodeToString(sum[:])}, taken)
		})
	}
}

// A file is checked against the length that its server announces: a resumed part to which
// another download has added is no file.
func TestAnnouncedLength(t *testing.T) {
	text := strings.Repeat("x", 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "a.mp3", time.Time{}, strings.NewReader(text))
	}))
	defer server.Close()
	d, results := newDownloader(t)
	file := File{Feed: "f", URL: server.URL + "/a.mp3", Name: "a.mp3"}
	require.NoError(t, d.Downloads.Begin(t.Context(), file, `"one"`))
	part, err := d.Root.Create(partName(file))
	require.NoError(t, err)
	_, err = part.WriteString(text[:500])
	require.NoError(t, err)
	d.Read = func(int) { // another process writes to the part
		d.Read = func(int) {}
		_, err := part.WriteAt([]byte("more"), 1000)
		require.NoError(t, err)
	}
	require.NoError(t, d.Download(t.Context(), []File{file}))
	require.NoError(t, part.Close())
	require.ErrorContains(t, (*results)[0].Err, "the server announced 1000 bytes, and sent 1004")
	require.NoError(t, d.Download(t.Context(), []File{file}))
	saved, err := d.Root.ReadFile("a.mp3")
	require.NoError(t, err)
	require.Equal(t, text, string(saved))
	require.NoError(t, d.Root.WriteFile("a.mp3", nil, 0o600))
	file.Old = "a.mp3"
	require.NoError(t, d.Download(t.Context(), []File{file}))
	saved, err = d.Root.ReadFile("a.mp3")
	require.NoError(t, err)
	require.Equal(t, text, string(saved))
}

// A copy with other bytes of the same number is noticed by those who read it, and a longer
// one; a shorter one by everybody. A record of an earlier version has no digest.
func TestDamage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("episode")) }))
	defer server.Close()
	d, results := newDownloader(t)
	file := File{Feed: "f", URL: server.URL + "/a.mp3", Name: "a.mp3"}
	require.NoError(t, d.Download(t.Context(), []File{file}))
	require.NoError(t, (*results)[0].Err)
	saved, err := d.Downloads.Taken(t.Context(), file)
	require.NoError(t, err)
	for _, test := range []struct{ text, seen, read string }{
		{"episode", "", ""}, {"apisode", "", "is not the file that was downloaded"}, {"episode and tags", "", "has 16 of 7 bytes"}, {"epi", "has 3 of 7 bytes", "has 3 of 7 bytes"},
	} {
		require.NoError(t, d.Root.WriteFile("a.mp3", []byte(test.text), 0o600))
		for read, want := range map[bool]string{false: test.seen, true: test.read} {
			damage, err := saved.Damage(d.Root, read)
			require.NoError(t, err)
			require.Equal(t, want, damage, test.text)
		}
	}
	require.NoError(t, d.Root.WriteFile("a.mp3", []byte("apisode"), 0o600))
	old := Saved{File: "a.mp3", Size: 7}
	require.NoError(t, d.Downloads.Take(t.Context(), file, old))
	saved, err = d.Downloads.Taken(t.Context(), file)
	require.NoError(t, err)
	require.Equal(t, old, saved)
	damage, err := saved.Damage(d.Root, true)
	require.NoError(t, err)
	require.Empty(t, damage)
	require.NoError(t, d.Root.Remove("a.mp3"))
	damage, err = saved.Damage(d.Root, true)
	require.NoError(t, err)
	require.Empty(t, damage, "moved or deleted")
}

// A file whose URL is signed again is the same file; another of its entry, and another
// entry's, are not. The record of an earlier version is found by its URL.
func TestResignedURLs(t *testing.T) {
	d, _ := newDownloader(t)
	const first, again = "https://e.org/dl?token-time=1700000000&token-hash=abcd", "https://e.org/dl?token-time=1700086400&token-hash=efgh"
	require.NoError(t, d.Downloads.Take(t.Context(), File{Feed: "f", URL: first, Of: "e1 1"}, Saved{File: "1.mp3"}))
	require.NoError(t, d.Downloads.Take(t.Context(), File{Feed: "f", URL: first + "&x"}, Saved{File: "old.mp3"}))
	for f, want := range map[File]string{
		{Feed: "f", URL: again, Of: "e1 1"}:        "1.mp3",
		{Feed: "f", URL: again, Of: "e1 2"}:        "",
		{Feed: "f", URL: again, Of: "e2 1"}:        "",
		{Feed: "g", URL: again, Of: "e1 1"}:        "",
		{Feed: "f", URL: first + "&x", Of: "e1 1"}: "old.mp3",
		{Feed: "f", URL: again + "&x", Of: "e1 1"}: "",
	} {
		saved, err := d.Downloads.Taken(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, want, saved.File, f)
	}
}

// A credential goes to the origin of its feed only, whatever redirects say; a host that
// asks for a pause gets no further request.
func TestManners(t *testing.T) {
	var asked feedtest.List[string]
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add("other " + r.Header.Get("Authorization") + r.Header.Get("X-Key"))
	}))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add("own " + r.Header.Get("Authorization") + r.Header.Get("X-Key"))
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "100")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer own.Close()
	d, results := newDownloader(t)
	login := d.Client.Clone()
	login.Credentials = []feedhistory.Credential{{Origin: own.URL, Header: http.Header{"Authorization": {"Bearer t"}, "X-Key": {"k"}}}}
	d.ClientFor = func(string) *feedhistory.Client { return login }
	require.NoError(t, d.Download(t.Context(), []File{{Feed: "f", URL: own.URL + "/a", Name: "a"}, {Feed: "f", URL: own.URL + "/busy", Name: "b"}, {Feed: "f", URL: own.URL + "/c", Name: "c"}}))
	require.Equal(t, []string{"own Bearer tk", "other ", "own Bearer tk"}, asked.All())
	require.NoError(t, (*results)[0].Err)
	require.ErrorContains(t, (*results)[2].Err, "asks for a pause")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Download(ctx, []File{{URL: own.URL}}), context.Canceled)
}

// No name leads out of the directory, and each is one on every file system.
func TestNames(t *testing.T) {
	for title, want := range map[string]string{
		"a/../../b": "a_.._.._b.mp3", "..": "untitled.mp3", "CON": "_CON.mp3", "a:b?": "a_b_.mp3", ".hidden": "_.hidden.mp3", "end. ": "end.mp3", "tab\tnew\nline\u202e": "tab new line.mp3",
	} {
		require.Equal(t, want, Expand("{title}", File{URL: "https://example.org/x.mp3?y"}, "", title), title)
	}
	require.Equal(t, "2003-12-13/a.m4a", Expand("{date}/{title}", File{Time: time.Date(2003, 12, 13, 0, 0, 0, 0, time.UTC), URL: "https://example.org/", Type: "audio/mp4"}, "", "a"))
	for _, test := range []struct{ address, kind, want string }{
		{"a.exe", "audio/mpeg", "t.mp3"}, {"a.lnk", "audio/x-m4a", "t.m4a"}, {"a.sh", "video/mp4", "t.mp4"}, {"a.html", "audio/mpeg; x=y", "t.mp3"}, {"a.MP3", "audio/mpeg", "t.MP3"},
		{"a.m4b", "audio/mp4", "t.m4b"}, {"a.exe", "", "t.bin"}, {"a.exe", "audio/odd", "t.bin"}, {"a.mp3", "audio/odd", "t.mp3"}, {"a.mp3", "application/octet-stream", "t.mp3"},
		{"a.html", "", "t.bin"}, {"a.html", "text/html", "t.html"}, {"a.desktop", "image/png", "t.png"}, {"a", "", "t.bin"}, {"a.zip", "application/zip", "t.zip"}, {"a.scr", "application/x-msdownload", "t.bin"},
	} {
		require.Equal(t, test.want, Expand("{title}", File{URL: "https://example.org/" + test.address, Type: test.kind}, "", "t"), test)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := Expand("{feed}/{title}", File{URL: rapid.String().Draw(t, "url")}, rapid.String().Draw(t, "feed"), rapid.String().Draw(t, "title"))
		require.True(t, filepath.IsLocal(name), name)
		for _, part := range strings.Split(name, "/") {
			require.LessOrEqual(t, len(part), 200)
			require.NotContains(t, part, `\`)
			require.False(t, strings.HasPrefix(part, "."), name)
		}
	})
}

// Tags are written into a file's own, and the file is the same otherwise; a file that is none
// stays as it is.
func TestTags(t *testing.T) {
	ffmpeg, err := exec.LookPath(Tagger)
	if err != nil {
		t.Skip(err)
	}
	site := t.TempDir()
	for name, codec := range map[string]string{"1.mp3": "libmp3lame", "1.m4a": "aac", "1.ogg": "libvorbis", "1.opus": "libopus", "1.flac": "flac"} {
		said, err := exec.Command(ffmpeg, "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", codec, "-metadata", "genre=Talk", "-metadata", "title=Old", filepath.Join(site, name)).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	require.NoError(t, os.WriteFile(filepath.Join(site, "2.mp3"), []byte("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"), 0o600))
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	defer server.Close()
	d, results := newDownloader(t)
	var files []File
	for _, name := range []string{"1.mp3", "1.m4a", "1.ogg", "1.opus", "1.flac", "2.mp3"} {
		files = append(files, File{URL: server.URL + "/" + name, Name: name, Tags: Tags{Title: "Folge 1: \"Äpfel\"=x", Album: "Pod", Artist: "Ann", Date: "2003-12-13"}})
	}
	require.NoError(t, d.Download(t.Context(), files))
	require.Len(t, *results, 6)
	for _, r := range *results {
		require.NoError(t, r.Err)
		file := filepath.Join(d.Root.Name(), r.Saved)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, r.Bytes, info.Size())
		saved, err := d.Downloads.Taken(t.Context(), r.File)
		require.NoError(t, err)
		damage, err := saved.Damage(d.Root, true)
		require.NoError(t, err)
		require.Empty(t, damage)
		if r.Saved == "2.mp3" {
			require.Len(t, r.Differs, 1)
			require.Contains(t, r.Differs[0], "its tags could not be written: ")
			require.EqualValues(t, 38, r.Bytes)
			continue
		}
		require.Empty(t, r.Differs, r.Saved)
		said, err := exec.Command(ffmpeg, "-v", "error", "-i", file, "-map_metadata", map[bool]string{true: "0:s:a:0", false: "0"}[strings.HasSuffix(file, ".ogg") || strings.HasSuffix(file, ".opus")], "-f", "ffmetadata", "-").Output()
		require.NoError(t, err)
		text := strings.ToLower(string(said))
		for _, tag := range []string{`title=folge 1: "äpfel"\=x`, "album=pod", "artist=ann", "date=2003", "genre=talk"} {
			require.Contains(t, text, tag, r.Saved)
		}
		decoded := func(name string) string {
			out, err := exec.Command(ffmpeg, "-v", "error", "-i", name, "-map", "0:a", "-f", "md5", "-").Output()
			require.NoError(t, err)
			return string(out)
		}
		require.Equal(t, decoded(filepath.Join(site, r.Saved)), decoded(file), "the sound is the same")
	}
	entries, err := os.ReadDir(d.Root.Name())
	require.NoError(t, err)
	require.Len(t, entries, 6)
}
