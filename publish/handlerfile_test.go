package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

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
		assert.LessOrEqual(t, h.compressed.size, h.compressed.Half)
	}
	plain := getPath(&Handler{FS: files, Memory: -1}, "/1", "Accept-Encoding", "gzip")
	assert.Empty(t, plain.Header().Get("Content-Encoding"))
	assert.Empty(t, plain.Header().Get("Vary"))
}

func TestCache(t *testing.T) {
	c := Cache[string, int]{Half: 4}
	for i := range 100 {
		c.Put(fmt.Sprint(i), i)
		_, used := c.Get("0")
		assert.True(t, used, "what is used stays")
		assert.LessOrEqual(t, len(c.young)+len(c.old), 8)
	}
	_, ok := c.Get("50")
	assert.False(t, ok)
	c.putSized("large", 1, 5)
	_, ok = c.Get("large")
	assert.False(t, ok)
	c.Put("99", 7)
	v, _ := c.Get("99")
	assert.Equal(t, 7, v)
	c.Drop("99")
	_, ok = c.Get("99")
	assert.False(t, ok)
	var usual Cache[int, int]
	for i := range 2000 {
		usual.Put(i, i)
	}
	for i := range 2000 {
		_, ok := usual.Get(i)
		assert.True(t, ok)
	}
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

func TestWeights(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "*": true, "br": false,
		"gzip;q=0": false, "gzip; q=0.0": false, "*;q=0": false, "gzip;q=0, *": false,
		"identity;q=0.9, gzip;q=0.8": false, "identity;q=0.5, gzip ; Q=0.5": true,
		"gzip;q=x": false, "gzip;q=2": false, "gzip;q=-1": false, "gzip;q=NaN": false,
		",, ;q=1, gzip": true, "gzip;a=b;q=0": false, "identity": false, "identity, *;q=0.5": false,
	} {
		h := http.Header{}
		if header != "" {
			h.Set("Accept-Encoding", header)
		}
		assert.Equal(t, want, AcceptsGzip(h), header)
	}
	for header, want := range map[string]int{
		"": 0, "*/*": 0, "application/rss+xml": 1, "application/rss+xml, */*;q=0.1": 1,
		"application/atom+xml;q=0.8, application/rss+xml;q=0.9": 1, "application/*": 0, "text/html": 0,
		"application/*;q=0.9, application/atom+xml;q=0.2": 1, "application/rss+xml;q=0": 0,
		"application/atom+xml;q=0, */*": 1,
	} {
		assert.Equal(t, want, prefers(http.Header{"Accept": {header}}, "application/atom+xml", "application/rss+xml"), header)
	}
}

// While the feed grows, its edits and archives included, readers walk it and
// always find it whole.
func TestHandlerBesidePublisher(t *testing.T) {
	s := newServed(t, Dir{Path: t.TempDir()}, feedhistory.Atom)
	appendOne := func(i int) {
		at := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		title := feedhistory.Text{Body: fmt.Sprint(i)}
		e, err := feedhistory.Draft{ID: fmt.Sprint("urn:", i%40), Updated: at, Title: title}.Entry()
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
