package command

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

// A Root has the files of the directory that has its name now, and none outside.
func TestRoot(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "site")
	build := func(text string) {
		next := filepath.Join(dir, "next")
		require.NoError(t, os.Mkdir(next, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(next, "feed.atom"), []byte(text), 0o600))
		require.NoError(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(next, "link")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	root := &Root{Name: name}
	_, err := root.Stat("feed.atom")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, text := range []string{"one", "three", "a fourth"} {
		build(text)
		require.NoError(t, os.RemoveAll(name))
		require.NoError(t, os.Rename(filepath.Join(dir, "next"), name))
		for range 2 {
			info, err := root.Stat("feed.atom")
			require.NoError(t, err)
			require.EqualValues(t, len(text), info.Size())
			data, err := fs.ReadFile(root, "feed.atom")
			require.NoError(t, err)
			require.Equal(t, text, string(data))
		}
		for _, outside := range []string{"link", "../secret"} {
			_, err := root.Stat(outside)
			require.Error(t, err)
			_, err = root.Open(outside)
			require.Error(t, err)
		}
	}
}

// BenchmarkRoot serves a file of 200 KB, and answers that it has not changed, as serve does and
// as http.FileServer does.
func BenchmarkRoot(b *testing.B) {
	dir := b.TempDir()
	text := `<feed xmlns="http://www.w3.org/2005/Atom"><title>` + strings.Repeat("x", 200<<10) + `</title></feed>`
	require.NoError(b, os.WriteFile(filepath.Join(dir, "1.atom"), []byte(text), 0o600))
	modified := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(b, os.Chtimes(filepath.Join(dir, "1.atom"), modified, modified))
	since := "If-Modified-Since: " + modified.UTC().Format(http.TimeFormat) + "\r\n"
	for name, handler := range map[string]http.Handler{"serve": &publish.Handler{FS: &Root{Name: dir}}, "http.FileServer": http.FileServer(http.Dir(dir))} {
		server := feedtest.Server(b, handler)
		for what, header := range map[string]string{"plain": "", "304": since} {
			b.Run(what+"/"+name, func(b *testing.B) {
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				require.NoError(b, err)
				defer conn.Close()
				in := bufio.NewReaderSize(conn, 256<<10)
				for b.Loop() {
					_, err := io.WriteString(conn, "GET /1.atom HTTP/1.1\r\nHost: example.org\r\n"+header+"\r\n")
					require.NoError(b, err)
					answer, err := http.ReadResponse(in, nil)
					require.NoError(b, err)
					_, err = io.Copy(io.Discard, answer.Body)
					require.NoError(b, err)
				}
			})
		}
	}
}
