package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// A picture comes through the server: its host learns nothing about the visitor, and is asked
// once. What is no picture does not come, and no address but those of the server's own pages.
func TestPictures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var asked feedtest.List[http.Header]
	answers := map[string]string{
		"/chart": "", "/drawing": `<svg xmlns="http://www.w3.org/2000/svg"><script>harmed=1</script></svg>`,
		"/page": "<!doctype html><script>harmed=1</script>", "/large": "\x89PNG\r\n\x1a\n" + strings.Repeat("x", mostPicture),
		"/animation": "GIF89a\x01\x00\x01\x00\x00\x00\x00;", "/avif": "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00",
	}
	w.extra.Store(new(http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(r.Header.Clone())
		rw.Header().Set("Content-Type", "image/png") // whatever it is
		rw.Header().Set("Set-Cookie", "id=1")
		switch text, ok := answers["/"+r.URL.RawQuery]; {
		case !ok:
			rw.WriteHeader(http.StatusGone)
		case text == "":
			servePicture(rw, 30, 20)
		default:
			_, _ = rw.Write([]byte(text))
		}
	}))))
	get := func(place string, header ...string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/")+place, nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := w.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer
	}
	visitor := []string{"User-Agent", "visitor-agent", "Referer", w.url + "visitor-page", "Cookie", "visitor=1", "X-Forwarded-For", "192.0.2.1", "Accept-Language", "visitor"}
	for _, test := range []struct {
		name, kind string
	}{{"chart", "image/png"}, {"animation", "image/gif"}, {"avif", "image/avif"}, {"drawing", ""}, {"page", ""}, {"large", ""}, {"gone", ""}} {
		before := len(asked.All())
		place := w.pictures.path(w.feedURL("/large.atom?" + test.name))
		for range 2 {
			answer := get(place, visitor...)
			if test.kind == "" {
				require.Equal(t, http.StatusNotFound, answer.StatusCode, test.name)
				require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
				continue
			}
			require.Equal(t, http.StatusOK, answer.StatusCode, test.name)
			require.Equal(t, test.kind, answer.Header.Get("Content-Type"))
			require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "default-src 'none'; sandbox", answer.Header.Get("Content-Security-Policy"))
			require.Empty(t, answer.Header.Get("Set-Cookie"))
			require.Equal(t, http.StatusNotModified, get(place, "If-None-Match", answer.Header.Get("ETag")).StatusCode)
		}
		require.Len(t, asked.All(), before+1, "%s: once, also if it fails", test.name)
	}
	for _, header := range asked.All() {
		for name, values := range header {
			require.Contains(t, []string{"Accept", "Accept-Encoding", "User-Agent", "A-Im"}, name)
			require.NotContains(t, strings.Join(values, " "), "visitor", name)
		}
	}

	// Nobody else names pictures.
	place := w.pictures.path(w.feedURL("/large.atom?chart"))
	name, _, _ := strings.Cut(place, "?")
	for _, other := range []string{"/pictures/x?of=" + url.QueryEscape(w.feedURL("/large.atom?chart")), name, name + "?of=" + url.QueryEscape(w.feedURL("/large.atom?page"))} {
		require.Equal(t, http.StatusNotFound, get(other).StatusCode, other)
	}
}

// The server requests no picture at a private address, by its own flag.
func TestPicturesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		servePicture(w, 30, 20)
	}))
	for _, test := range []struct {
		client *feedhistory.Client
		found  bool
	}{{nil, false}, {&feedhistory.Client{}, false}, {&feedhistory.Client{AllowPrivate: true}, true}} {
		asked.Store(0)
		found, err := newPictureProxy(test.client, "/", time.Now).get(t.Context(), site.URL+"/chart.png")
		require.Equal(t, test.found, err == nil, err)
		require.Equal(t, test.found, found != nil)
		require.Equal(t, test.found, asked.Load() == 1)
		test.client.CloseIdle()
	}
}

// One switch turns pictures off, and a private server shows none to strangers.
func TestPicturesOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *Server) { s.NoPictures = true })
	w.write(2003, 2004)
	blog := w.add("/blog/feed.atom")
	body := w.page(blog+"/entry?id="+entryLink.FindStringSubmatch(w.page(blog, http.StatusOK))[1], http.StatusOK)
	require.NotContains(t, body, "<img")
	require.Contains(t, body, `<a href="http://lighthouse.example/chart.png" rel="nofollow noreferrer">[Image: The day’s chart]</a>`)
	require.Contains(t, body, "Pictures are links")
	place := newPictureProxy(nil, "/", time.Now).path("http://lighthouse.example/chart.png")
	status, _, _ := w.get(place)
	require.Equal(t, http.StatusNotFound, status)

	private := newWorld(t, func(s *Server) { s.Token, s.Private = "open sesame", true })
	r := httptest.NewRequest(http.MethodGet, private.pictures.path("http://lighthouse.example/chart.png"), nil)
	r.Host = strings.TrimSuffix(strings.TrimPrefix(private.url, "http://"), "/")
	status, _, _ = answer(t, private.Server, r)
	require.Equal(t, http.StatusUnauthorized, status)
	r.Header.Set("Authorization", "Bearer open sesame")
	status, _, header := answer(t, private.Server, r)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, header.Get("Cache-Control"), "private")
}
