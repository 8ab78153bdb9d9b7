package publish

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateHandler = flag.Bool("update.handler", false, "write what handlers answer into testdata/handler")

// Each text file contains documents, whose names begin with a slash, and
// requests with their responses.
func TestHandler(t *testing.T) {
	names := feedtest.Glob(t, "testdata/handler/*.txtar")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) { testHandlerFile(t, name) })
	}
}

func testHandlerFile(t *testing.T, name string) {
	text := feedtest.ReadFile(t, name)
	archive := feedtest.Parse(string(text))
	talk := &conversation{handler: &Handler{FS: handlerDocuments(archive)}}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "/") {
			continue
		}
		request, want, _ := strings.Cut(f.Data, "\n\n")
		got := talk.ask(t, request)
		if *updateHandler {
			archive.Set(f.Name, request+"\n\n"+got+"\n")
		} else {
			assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), f.Name)
		}
	}
	if *updateHandler {
		require.NoError(t, os.WriteFile(name, []byte(archive.String()), 0o644))
	}
}

func handlerDocuments(a *feedtest.Archive) fs.FS {
	files := fstest.MapFS{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "/"); ok {
			files[name] = &fstest.MapFile{Data: []byte(f.Data), ModTime: time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)}
		}
	}
	return files
}

// A conversation is a sequence of requests and responses as text. The ETags of
// compressed documents depend on the compressor, so they have names in it.
type conversation struct {
	handler http.Handler
	names   []string // ETags and their names, alternating
}

var encoded = regexp.MustCompile(`(?m)^Content-Encoding: gzip$`)

func (c *conversation) ask(t *testing.T, request string) string {
	t.Helper()
	reverse := make([]string, 0, len(c.names))
	for i := 0; i < len(c.names); i += 2 {
		reverse = append(reverse, c.names[i+1], c.names[i])
	}
	request = strings.NewReplacer(reverse...).Replace(request)
	text := strings.ReplaceAll(request, "\n", "\r\n") + "\r\nHost: example.org\r\n\r\n"
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	require.NoError(t, err, request)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	if tag := w.Header().Get("Etag"); w.Header().Get("Content-Encoding") == "gzip" && w.Code == http.StatusOK {
		c.names = append(c.names, tag, fmt.Sprintf(`"gzip-of-%s"`, strings.TrimPrefix(req.URL.Path, "/")))
	}
	answer := responseText(w)
	if encoded.MatchString(answer) {
		answer = regexp.MustCompile(`(?m)^Content-Length: \d+$`).ReplaceAllString(answer, "Content-Length: (fewer)")
	}
	return strings.NewReplacer(c.names...).Replace(answer)
}

// responseText returns a response's head, and as much of its body as can be
// read at once.
func responseText(w *httptest.ResponseRecorder) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %s\n", w.Code, http.StatusText(w.Code))
	head := bytes.Buffer{}
	_ = w.Header().Write(&head)
	b.WriteString(strings.ReplaceAll(head.String(), "\r\n", "\n"))
	switch body := w.Body.String(); {
	case w.Header().Get("Content-Encoding") == "gzip" && body != "":
		b.WriteString("\n(gzip)\n")
	case len(body) > 80:
		fmt.Fprintf(&b, "\n%s…\n", strings.TrimSpace(body[:60]))
	case body != "":
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(body))
	}
	return b.String()
}

// getPath asks a handler for a path, with header fields as names and values.
func getPath(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A file that is replaced by one of the same size, within the same tick of the
// file system's clock, gets a different ETag. It has no Last-Modified yet,
// because a resolution of seconds could not tell the two apart.
func TestHandlerSeesEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testEveryChange(t, time.Now()) })
	testEveryChange(t, time.Time{}) // an output without times
}

func testEveryChange(t *testing.T, now time.Time) {
	files := fstest.MapFS{"feed.atom": {Data: []byte("<feed/>"), ModTime: now}}
	h := &Handler{FS: files}
	first := getPath(h, "/feed.atom")
	assert.Empty(t, first.Header().Get("Last-Modified"))
	files["feed.atom"] = &fstest.MapFile{Data: []byte("<FEED/>"), ModTime: now}
	second := getPath(h, "/feed.atom", "If-None-Match", first.Header().Get("Etag"))
	assert.Equal(t, http.StatusOK, second.Code)
	assert.Equal(t, "<FEED/>", second.Body.String())
	assert.Equal(t, http.StatusNotModified, getPath(h, "/feed.atom", "If-None-Match", second.Header().Get("Etag")).Code)
}

// A settled file is read once to describe it, and after that only to send it.
func TestHandlerDescribesOnce(t *testing.T) {
	files := &countingFS{FS: fstest.MapFS{
		"1.atom": {Data: []byte(archiveText(20)), ModTime: time.Unix(1e9, 0)},
	}}
	h := &Handler{FS: files}
	tag := getPath(h, "/1.atom").Header().Get("Etag")
	packed := getPath(h, "/1.atom", "Accept-Encoding", "gzip").Header().Get("Etag")
	before := files.read
	for range 10 {
		require.Equal(t, http.StatusNotModified, getPath(h, "/1.atom", "If-None-Match", tag).Code)
		require.Equal(t, http.StatusOK, getPath(h, "/1.atom", "Accept-Encoding", "gzip").Code)
		require.Equal(t, http.StatusNotModified,
			getPath(h, "/1.atom", "Accept-Encoding", "gzip", "If-None-Match", packed).Code)
	}
	assert.Equal(t, before, files.read, "bytes read")
}

// A countingFS counts the bytes that are read.
type countingFS struct {
	fs.FS
	read int64
}

func (c *countingFS) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingFile{f, f.(io.Seeker), c}, nil
}

type countingFile struct {
	fs.File
	io.Seeker
	fs *countingFS
}

func (f *countingFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.fs.read += int64(n)
	return n, err
}

// archiveText is a closed archive of n entries of about 4 KB.
func archiveText(n int) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">` +
		`<id>urn:feed</id><title>Feed</title><fh:archive/><link rel="next-archive" href="2.atom"/>`)
	for i := range n {
		fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>Entry %d</title><updated>2003-01-01T00:00:00Z</updated>"+
			"<content type=\"html\">", i, i)
		for j := range 100 {
			fmt.Fprintf(&b, "&lt;p>Paragraph %d of %d.&lt;/p> ", j, i*j)
		}
		b.WriteString("</content></entry>\n")
	}
	b.WriteString("</feed>\n")
	return b.String()
}

// A compressed answer contains the document, even if many ask at once, and if
// the cache holds next to nothing.
func TestHandlerCompresses(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 10 {
		files[fmt.Sprint(i)] = &fstest.MapFile{Data: []byte(archiveText(i + 1)), ModTime: time.Unix(1e9, 0)}
	}
	for _, memory := range []int64{0, 1, 4000} {
		h := &Handler{FS: files, Memory: memory}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				w := getPath(h, fmt.Sprintf("/%d", i%10), "Accept-Encoding", "gzip")
				z, err := gzip.NewReader(w.Body)
				if assert.NoError(t, err) {
					text, err := io.ReadAll(z)
					assert.NoError(t, err)
					assert.Equal(t, archiveText(i%10+1), string(text))
				}
			})
		}
		all.Wait()
	}
	plain := getPath(&Handler{FS: files, Memory: -1}, "/1", "Accept-Encoding", "gzip")
	assert.Empty(t, plain.Header().Get("Content-Encoding"))
	assert.Empty(t, plain.Header().Get("Vary"))
}

// No link leads out of an os.Root, and no error says more than a status.
func TestHandlerFailures(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	public := filepath.Join(dir, "public")
	require.NoError(t, os.Mkdir(public, 0o700))
	if err := os.Symlink("../secret", filepath.Join(public, "link")); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(public)
	require.NoError(t, err)
	defer root.Close()
	h := &Handler{FS: root.FS()}
	assert.Equal(t, http.StatusNotFound, getPath(h, "/link").Code)
	assert.Equal(t, http.StatusNotFound, getPath(h, "/"+strings.Repeat("x", 5000)).Code)

	var log bytes.Buffer
	h = &Handler{FS: brokenFS{}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := getPath(h, "/feed.atom")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.NotContains(t, w.Body.String(), "disk")
	assert.Contains(t, log.String(), "disk")
	assert.Equal(t, http.StatusForbidden, getPath(h, "/forbidden").Code)
}

type brokenFS struct{}

func (brokenFS) Open(name string) (fs.File, error) {
	if name == "forbidden" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return nil, errors.New("the disk is broken")
}

// A file that cannot seek is served, too.
func TestHandlerWithoutSeeking(t *testing.T) {
	h := &Handler{FS: streamFS{fstest.MapFS{"1.atom": {Data: []byte(archiveText(3)), ModTime: time.Unix(1e9, 0)}}}}
	for range 2 {
		assert.Equal(t, archiveText(3), getPath(h, "/1.atom").Body.String())
		assert.Equal(t, "<feed", getPath(h, "/1.atom", "Range", "bytes=0-4").Body.String())
	}
}

type streamFS struct{ fs.FS }

func (s streamFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	return struct{ fs.File }{f}, err
}

// While the feed grows, its edits and archives included, readers walk it and
// always find it whole.
func TestHandlerBesidePublisher(t *testing.T) {
	s := newServed(t, Dir{Path: t.TempDir()}, feedhistory.FormatAtom)
	appendOne := func(i int) {
		at := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		title := feedhistory.Text{Body: fmt.Sprint(i)}
		e, err := compose.Draft{ID: fmt.Sprint("urn:", i%40), Updated: at, Title: title}.Entry()
		assert.NoError(t, err)
		assert.NoError(t, s.Append(t.Context(), e))
	}
	appendOne(0)
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 1; i < 60; i++ {
			appendOne(i)
		}
	}()
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		h := s.fetch(t)
		for _, e := range h.Entries { // every earlier entry is there, too
			var n int
			_, err := fmt.Sscan(e.Title().Plain(), &n)
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, len(h.Entries), min(n+1, 40))
		}
	}
	assert.Len(t, s.fetch(t).Entries, 40)
}

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
