package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/feedhistory/feedhistory/republish"
)

// An address is a document of a handler. All of them must answer alike, whoever writes them.
type address struct {
	http.Handler
	path string
}

func addresses(t *testing.T) map[string]address {
	var entries []*feedhistory.Entry
	for i := range 8 {
		e, err := compose.Draft{
			ID: fmt.Sprint("urn:", i), Updated: time.Date(2003, 12, 1+i, 0, 0, 0, 0, time.UTC),
			Title: feedhistory.Text{Body: strings.Repeat("Entry ", 20)},
		}.Entry()
		require.NoError(t, err)
		entries = append(entries, e)
	}
	dir := publish.Dir{Path: t.TempDir()}
	p := &publish.Publisher{Output: dir, Base: "https://example.org/", Split: compose.Split{Size: 3}, Head: &feedhistory.Document{ID: "urn:feed", Title: "Feed"}}
	require.NoError(t, p.Append(t.Context(), entries...))
	require.NoError(t, dir.Put(t.Context(), "page.html", []byte(strings.Repeat("<p>Text</p>\n", 50))))
	files := &publish.Handler{FS: dir}
	pages := &publish.Pages{Head: p.Head, Older: func(context.Context, publish.Position, int) ([]*feedhistory.Entry, bool, error) {
		return entries, false, nil
	}}
	body := serve.NewBody([]byte(strings.Repeat("<p>Text</p>\n", 50)))
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if serve.Reads(w, r) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Cache-Control", "public, max-age=60")
			body.Serve(w, r, http.StatusOK)
		}
	})
	const feed = "https://example.org/feed.atom"
	store := mirror.NewMemory()
	site := httptest.NewServer(files)
	t.Cleanup(site.Close)
	m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{AllowPrivate: true, Transport: through{site}}}
	_, err := m.Update(t.Context(), feed)
	require.NoError(t, err)
	h := &republish.Handler{Store: store, Size: 3}
	at := "/feeds/" + republish.Name(feed) + "/"
	const replay = "?start=2020-01-01&every=1d&from="
	return map[string]address{
		"published feed":    {files, "/feed.atom"},
		"published archive": {files, archiveOf(t, files, "/feed.atom")},
		"published file":    {files, "/page.html"},
		"pages":             {pages, "/log"},
		"page in memory":    {page, "/"},
		"index.atom":        {h, at + "index.atom"},
		"index.rss":         {h, at + "index.rss"},
		"archive of index":  {h, archiveOf(t, h, at+"index.atom")},
		"complete.atom":     {h, at + "complete.atom"},
		"slice.atom":        {h, at + "slice.atom?since=2003-12-03"},
		"slice.rss":         {h, at + "slice.rss?until=2003-12-05"},
		"replay.atom":       {h, at + "replay.atom" + replay},
		"archive of replay": {h, at + "replay.atom" + replay + "&archive=1"},
	}
}

type through struct{ *httptest.Server }

func (s through) RoundTrip(r *http.Request) (*http.Response, error) {
	inner := r.Clone(r.Context())
	inner.URL.Scheme, inner.URL.Host = "http", s.Listener.Addr().String()
	resp, err := http.DefaultTransport.RoundTrip(inner)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func archiveOf(t *testing.T, h http.Handler, path string) string {
	link := regexp.MustCompile(`rel="prev-archive" href="https?://[^/]+([^"]+)"`).FindStringSubmatch(ask(h, "GET", path).Body.String())
	require.NotNil(t, link, path)
	return link[1]
}

func ask(h http.Handler, method, path string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TAG is the ETag of the document, ZIP that of its compressed form, TIME its Last-Modified.
var questions = []struct {
	desc    string
	method  string
	fields  []string
	status  int
	undated int // the status of a document without Last-Modified, if another
}{
	{"plain", "GET", nil, 200, 0},
	{"head", "HEAD", nil, 200, 0},
	{"compressed", "GET", []string{"Accept-Encoding: gzip"}, 200, 0},
	{"not compressed", "GET", []string{"Accept-Encoding: gzip;q=0"}, 200, 0},
	{"known", "GET", []string{"If-None-Match: TAG"}, 304, 0},
	{"known, head", "HEAD", []string{"If-None-Match: TAG"}, 304, 0},
	{"known, weakly", "GET", []string{"If-None-Match: W/TAG"}, 304, 0},
	{"known, of many", "GET", []string{`If-None-Match: "a", "b", TAG`}, 304, 0},
	{"known, in a second field", "GET", []string{`If-None-Match: "a"`, `If-None-Match: TAG`}, 304, 0},
	{"any known", "GET", []string{"If-None-Match: *"}, 304, 0},
	{"other known", "GET", []string{`If-None-Match: "a"`}, 200, 0},
	{"known, compressed", "GET", []string{"If-None-Match: ZIP", "Accept-Encoding: gzip"}, 304, 0},
	{"the other form known", "GET", []string{"If-None-Match: TAG", "Accept-Encoding: gzip"}, 200, 0},
	{"compressed form known", "GET", []string{"If-None-Match: ZIP"}, 200, 0},
	{"expected", "GET", []string{"If-Match: TAG"}, 200, 0},
	{"expected, compressed", "GET", []string{"If-Match: ZIP", "Accept-Encoding: gzip"}, 200, 0},
	{"any expected", "GET", []string{"If-Match: *"}, 200, 0},
	{"other expected", "GET", []string{`If-Match: "x"`}, 412, 0},
	{"other expected, head", "HEAD", []string{`If-Match: "x"`}, 412, 0},
	{"other expected, range", "GET", []string{`If-Match: "x"`, "Range: bytes=0-4"}, 412, 0},
	{"weakly expected", "GET", []string{"If-Match: W/TAG"}, 412, 0},
	{"other expected, known", "GET", []string{`If-Match: "x"`, "If-None-Match: TAG"}, 412, 0},
	{"other expected, compressed", "GET", []string{`If-Match: "x"`, "Accept-Encoding: gzip"}, 412, 0},
	{"not modified", "GET", []string{"If-Modified-Since: TIME"}, 304, 200},
	{"not modified, but another tag", "GET", []string{`If-None-Match: "a"`, "If-Modified-Since: TIME"}, 200, 0},
	{"modified", "GET", []string{"If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT"}, 200, 0},
	{"unmodified", "GET", []string{"If-Unmodified-Since: TIME"}, 200, 0},
	{"not unmodified", "GET", []string{"If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT"}, 412, 200},
	{"part", "GET", []string{"Range: bytes=0-4"}, 206, 0},
	{"end", "GET", []string{"Range: bytes=-5"}, 206, 0},
	{"part of the expected", "GET", []string{"Range: bytes=0-4", "If-Match: TAG"}, 206, 0},
	{"part of the same", "GET", []string{"Range: bytes=0-4", "If-Range: TAG"}, 206, 0},
	{"part of another", "GET", []string{"Range: bytes=0-4", `If-Range: "x"`}, 200, 0},
	{"part of a weak one", "GET", []string{"Range: bytes=0-4", `If-Range: W/TAG`}, 200, 0},
	{"part of the known", "GET", []string{"Range: bytes=0-4", "If-None-Match: TAG"}, 304, 0},
	{"part, head", "HEAD", []string{"Range: bytes=0-4"}, 200, 0},
	{"beyond", "GET", []string{"Range: bytes=99999999-"}, 416, 0},
	{"in another unit", "GET", []string{"Range: lines=1-"}, 416, 0},
	{"posted", "POST", nil, 405, 0},
	{"feed of an unknown state", "GET", []string{"A-IM: feed", `If-None-Match: "a"`}, 200, 0},
	{"feed of the present state", "GET", []string{"A-IM: feed", "If-None-Match: TAG"}, 304, 0},
	{"feed expected", "GET", []string{"A-IM: feed", `If-Match: "x"`, `If-None-Match: "a"`}, 412, 0},
}

// The same question has the same answer, whoever writes the document.
func TestHeaders(t *testing.T) {
	all := addresses(t)
	time.Sleep(2100 * time.Millisecond) // a younger document has no Last-Modified, because it may still change
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			ask(a, "GET", a.path) // a stream knows its size now
			plain := ask(a, "GET", a.path)
			require.Equal(t, http.StatusOK, plain.Code, plain.Body)
			zip := ask(a, "GET", a.path, "Accept-Encoding: gzip")
			require.Equal(t, "gzip", zip.Header().Get("Content-Encoding"))
			tag, zipTag, modified := plain.Header().Get("Etag"), zip.Header().Get("Etag"), plain.Header().Get("Last-Modified")
			require.Regexp(t, `^"[!-~]+"$`, tag)
			require.NotEqual(t, tag, zipTag)
			names := strings.NewReplacer("TAG", tag, "ZIP", zipTag, "TIME", modified)
			for _, q := range questions {
				fields := make([]string, len(q.fields))
				for i, field := range q.fields {
					fields[i] = names.Replace(field)
				}
				w := ask(a, q.method, a.path, fields...)
				want := q.status
				if modified == "" && q.undated != 0 {
					want = q.undated
				}
				require.Equal(t, want, w.Code, q.desc)
				requireAnswer(t, q.desc, q.method, w, plain, zip)
			}
		})
	}
}

// requireAnswer requires what holds for each answer with a status.
func requireAnswer(t *testing.T, desc, method string, w, plain, zip *httptest.ResponseRecorder) {
	h, whole := w.Header(), plain
	if h.Get("Content-Encoding") != "" {
		whole = zip
	}
	same := func(names ...string) {
		for _, name := range names {
			require.Equal(t, whole.Header()[name], h[name], "%s: %s", desc, name)
		}
	}
	if w.Code != http.StatusMethodNotAllowed {
		require.Contains(t, strings.Join(h["Vary"], ","), "Accept-Encoding", desc)
	}
	switch w.Code {
	case http.StatusOK, http.StatusPartialContent:
		same("Etag", "Cache-Control", "Content-Type", "Last-Modified", "Link", "Content-Security-Policy")
		require.Equal(t, "bytes", h.Get("Accept-Ranges"), desc)
		body := w.Body.String()
		switch {
		case method == http.MethodHead:
			require.Empty(t, body, desc)
			same("Content-Length")
		case w.Code == http.StatusPartialContent:
			require.Len(t, body, 5, desc)
			require.Contains(t, plain.Body.String(), body, desc)
			require.NotEmpty(t, h.Get("Content-Range"), desc)
		case whole == plain:
			require.Equal(t, plain.Body.String(), body, desc)
			require.Equal(t, fmt.Sprint(len(body)), h.Get("Content-Length"), desc)
		}
	case http.StatusNotModified:
		require.Empty(t, w.Body.String(), desc)
		require.Empty(t, h.Get("Content-Type")+h.Get("Content-Length")+h.Get("Content-Encoding"), desc)
		require.NotEmpty(t, h.Get("Etag"), desc)
		require.Equal(t, plain.Header()["Cache-Control"], h["Cache-Control"], desc)
	case http.StatusPreconditionFailed:
		require.Empty(t, w.Body.String(), desc)
		require.Equal(t, "no-cache", h.Get("Cache-Control"), desc)
	case http.StatusRequestedRangeNotSatisfiable:
		require.Empty(t, h.Get("Etag")+h.Get("Cache-Control"), desc)
	case http.StatusMethodNotAllowed:
		require.Equal(t, "GET, HEAD", h.Get("Allow"), desc)
	}
}
