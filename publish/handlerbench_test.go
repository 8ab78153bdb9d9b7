package publish

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// BenchmarkHandler serves the same files as http.FileServerFS, for comparison:
// an archive of 200 KB, and a 304. Over a connection, the client reads as
// little of the answer as it can; without one, only the handlers are measured.
func BenchmarkHandler(b *testing.B) {
	dir := b.TempDir()
	name := filepath.Join(dir, "1.atom")
	text := archiveText(55)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	modified := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(name, modified, modified); err != nil {
		b.Fatal(err)
	}
	ours := &Handler{FS: os.DirFS(dir)}
	theirs := http.FileServerFS(os.DirFS(dir))
	tag := getPath(ours, "/1.atom").Header().Get("Etag")
	since := "If-Modified-Since: " + modified.UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		name    string
		handler http.Handler
		header  string
	}{
		{"archive/ours", ours, ""},
		{"archive/http.FileServerFS", theirs, ""},
		{"archive-gzip/ours", ours, "Accept-Encoding: gzip"},
		{"304/ours", ours, "If-None-Match: " + tag},
		{"304/http.FileServerFS", theirs, since},
	} {
		b.Run("handler/"+c.name, func(b *testing.B) { benchmarkAlone(b, c.handler, c.header) })
		b.Run("connection/"+c.name, func(b *testing.B) { benchmarkServed(b, c.handler, c.header) })
	}
}

func benchmarkAlone(b *testing.B, h http.Handler, header string) {
	r := httptest.NewRequest(http.MethodGet, "/1.atom", nil)
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	w := &discardResponse{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

type discardResponse struct{ header http.Header }

func (w *discardResponse) Header() http.Header         { return w.header }
func (w *discardResponse) Write(p []byte) (int, error) { return len(p), nil }
func (w *discardResponse) WriteHeader(int)             {}

func benchmarkServed(b *testing.B, h http.Handler, header string) {
	server := feedtest.Server(b, h)
	text := "GET /1.atom HTTP/1.1\r\nHost: example.org\r\n"
	if header != "" {
		text += header + "\r\n"
	}
	text += "\r\n"
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		in := bufio.NewReaderSize(conn, 256<<10)
		for pb.Next() {
			if err := exchange(conn, in, text); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// exchange sends a request and skips the answer.
func exchange(conn net.Conn, in *bufio.Reader, request string) error {
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if _, err := fmt.Sscan(value, &length); err != nil {
				return err
			}
		}
	}
	_, err := in.Discard(length)
	return err
}
