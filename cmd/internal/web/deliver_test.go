package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Everything that the server makes is compressed and has an ETag, and is not
// sent again to clients that have it.
func TestDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2010)
	page := w.add("/blog/feed.atom")
	for _, path := range []string{"/", "/entries", page, page + "?q=fog", page + "/remove", page + "/complete.atom", page + "/index.atom",
		assets.path("style.css"), assets.path("app.js"), w.add("/tides.atom") + "/complete.atom"} {
		ask := func(method string, header ...string) *httptest.ResponseRecorder {
			r := httptestRequest(t.Context(), method, path, nil)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			rec := httptest.NewRecorder()
			w.Server.ServeHTTP(rec, r)
			return rec
		}
		plain := ask(http.MethodGet)
		require.Equal(t, http.StatusOK, plain.Code, path)
		require.Empty(t, plain.Header().Get("Content-Encoding"))
		tag := plain.Header().Get("Etag")
		require.NotEmpty(t, tag, path)
		zipped := ask(http.MethodGet, "Accept-Encoding", "br, gzip;q=0.8")
		require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"), path)
		require.Contains(t, strings.Join(zipped.Header()["Vary"], ","), "Accept-Encoding", path)
		require.NotEqual(t, tag, zipped.Header().Get("Etag"), path)
		require.Less(t, zipped.Body.Len(), plain.Body.Len(), path)
		z, err := gzip.NewReader(zipped.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, plain.Body.String(), string(text), path)
		for _, coding := range []string{"", "identity", "gzip;q=0", "br"} {
			require.Empty(t, ask(http.MethodGet, "Accept-Encoding", coding).Header().Get("Content-Encoding"), coding)
		}

		again := ask(http.MethodGet, "If-None-Match", `"x", W/`+tag)
		require.Equal(t, http.StatusNotModified, again.Code, path)
		require.Zero(t, again.Body.Len())
		require.Empty(t, again.Header().Get("Content-Type"))
		require.Equal(t, tag, again.Header().Get("Etag"))
		require.Equal(t, http.StatusNotModified, ask(http.MethodGet, "Accept-Encoding", "gzip", "If-None-Match", zipped.Header().Get("Etag")).Code, path)

		head := ask(http.MethodHead)
		require.Equal(t, http.StatusOK, head.Code, path)
		require.Zero(t, head.Body.Len())
		require.Equal(t, tag, head.Header().Get("Etag"))
		require.Equal(t, strconv.Itoa(plain.Body.Len()), head.Header().Get("Content-Length"), path)
	}
	_, body, header := w.get("/nothing")
	require.Empty(t, header.Get("Etag"))
	require.NotEmpty(t, body)
}

// A HEAD of a large document, and the question whether it has changed, read no
// entry; nor does a page that is not requested.
func TestDeliverHead(t *testing.T) {
	w := newWorld(t, nil)
	page := w.add("/tides.atom")
	_, _, header := w.get(page + "/complete.atom")
	s := &Server{Store: brokenStore{w.Store}, Base: w.Base}
	s.once.Do(s.setUp)
	f, err := w.Store.Feed(t.Context(), w.feedURL("/tides.atom"))
	require.NoError(t, err)
	s.feeds.figures.put(f.URL, figures{version: f.Version})
	status, _, head := answer(t, s, httptestRequest(t.Context(), http.MethodHead, page+"/complete.atom", nil))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, strings.TrimSuffix(header.Get("Etag"), `-gzip"`), strings.TrimSuffix(head.Get("Etag"), `"`))
	r := httptestRequest(t.Context(), http.MethodGet, page+"/complete.atom", nil)
	r.Header.Set("If-None-Match", head.Get("Etag"))
	status, _, _ = answer(t, s, r)
	require.Equal(t, http.StatusNotModified, status)
}

// Any range of a stream is the same part of it.
func TestStreamParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var whole bytes.Buffer
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 0, 20).Draw(t, "chunks")
		for _, c := range chunks {
			whole.Write(c)
		}
		doc := &stream{
			tag: "t", mediaType: "application/octet-stream", unchanged: func() bool { return true },
			write: func(w io.Writer) error {
				for _, c := range chunks {
					if _, err := w.Write(c); err != nil {
						return err
					}
				}
				return nil
			},
		}
		var known sizes
		for range 4 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			from := rapid.IntRange(0, 900).Draw(t, "from")
			to := rapid.IntRange(from, 1000).Draw(t, "to")
			text := rapid.SampledFrom([]string{fmt.Sprintf("bytes=%d-%d", from, to), fmt.Sprintf("bytes=%d-", from), fmt.Sprintf("bytes=-%d", to), fmt.Sprintf("bytes=0-0,%d-", from), ""}).Draw(t, "range")
			if text != "" {
				r.Header.Set("Range", text)
			}
			if rapid.Bool().Draw(t, "if-range") {
				r.Header.Set("If-Range", rapid.SampledFrom([]string{`"t"`, `"u"`}).Draw(t, "tag"))
			}
			got, want := httptest.NewRecorder(), httptest.NewRecorder()
			doc.deliver(got, r, &known)
			want.Header().Set("Etag", `"t"`)
			want.Header().Set("Content-Type", doc.mediaType)
			serveContent(want, r, whole.Bytes())
			require.Equal(t, want.Code, got.Code, text)
			if !strings.Contains(want.Header().Get("Content-Type"), "multipart") {
				require.Equal(t, want.Body.String(), got.Body.String(), text)
				require.Equal(t, want.Header().Get("Content-Range"), got.Header().Get("Content-Range"))
			}
		}
	})
}

func serveContent(w http.ResponseWriter, r *http.Request, data []byte) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// A stream that breaks off, or that mixes two states of the feed, does not end
// as if it were whole.
func TestStreamBreaksOff(t *testing.T) {
	for _, header := range []string{"", "bytes=2-"} {
		for name, doc := range map[string]*stream{
			"broken":  {tag: "t", unchanged: func() bool { return true }, write: func(w io.Writer) error { _, _ = w.Write([]byte("abc")); return errors.New("broken") }},
			"changed": {tag: "t", unchanged: func() bool { return false }, write: func(w io.Writer) error { _, err := w.Write([]byte("abc")); return err }},
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Range", header)
			if header == "" {
				r.Header.Del("Range")
			}
			var known sizes
			deliver := func() { doc.deliver(httptest.NewRecorder(), r, &known) }
			if name == "changed" && header == "" {
				deliver() // a response has either state: readers can use it
			} else {
				require.PanicsWithValue(t, http.ErrAbortHandler, deliver, name+header)
			}
			_, measured := known.get("t")
			require.False(t, measured)
		}
	}
}
