package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Everything that the server makes is compressed and has an ETag, and is not
// sent again to clients that have it.
func TestDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2010)
	page := w.add("/blog/feed.atom")
	for _, path := range []string{"/", "/entries", page, page + "?q=fog", page + "/remove", page + "/complete.atom", page + "/index.atom",
		"/" + assets.path("style.css"), "/" + assets.path("app.js"), w.add("/tides.atom") + "/complete.atom"} {
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
	status, _, head := answer(t, s, httptestRequest(t.Context(), http.MethodHead, page+"/complete.atom", nil))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, strings.TrimSuffix(header.Get("Etag"), `-gzip"`), strings.TrimSuffix(head.Get("Etag"), `"`))
	r := httptestRequest(t.Context(), http.MethodGet, page+"/complete.atom", nil)
	r.Header.Set("If-None-Match", head.Get("Etag"))
	status, _, _ = answer(t, s, r)
	require.Equal(t, http.StatusNotModified, status)
}
