package serve_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// ids returns the ids of the entries and deletions of an answer.
func ids(t *testing.T, w *httptest.ResponseRecorder) (found []string, doc *feedhistory.Document) {
	doc, err := feedhistory.Parse(w.Body, "https://example.org/")
	require.NoError(t, err)
	for _, e := range doc.Entries {
		found = append(found, e.ID)
	}
	for _, d := range doc.Deleted {
		found = append(found, "-"+d.Ref)
	}
	return found, doc
}

// A client that asks for it gets only the entries it lacks (RFC 3229), never marked as complete,
// with the links to the rest, and with the ETag of the whole.
func TestSince(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	files := &publish.Handler{FS: dir}
	p := &publish.Publisher{Output: dir, Base: "https://example.org/", Split: compose.Split{Size: 3}, Head: &feedhistory.Document{ID: "urn:feed", Title: "Feed"}}
	day := time.Date(2003, 12, 1, 0, 0, 0, 0, time.UTC)
	add := func(n int, title string, at time.Time) {
		e, err := compose.Draft{ID: fmt.Sprint("urn:", n), Updated: at, Title: feedhistory.Text{Body: title}}.Entry()
		require.NoError(t, err)
		require.NoError(t, p.Append(t.Context(), e))
	}
	for n := range 8 {
		add(n, "entry", day.AddDate(0, 0, n))
	}
	const feed = "https://example.org/feed.atom"
	site := httptest.NewServer(files)
	defer site.Close()
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: &feedhistory.Client{AllowPrivate: true, Transport: through{site}}}
	poll := func() {
		_, err := m.Update(t.Context(), feed)
		require.NoError(t, err)
	}
	poll()
	h := &republish.Handler{Store: m.Store, Size: 3}
	at := "/feeds/" + republish.Name(feed) + "/"
	all := map[string]address{
		"published": {files, "/feed.atom"}, "index.atom": {h, at + "index.atom"}, "index.rss": {h, at + "index.rss"},
		"complete.atom": {h, at + "complete.atom"}, "slice": {h, at + "slice.atom?since=2003-12-03"}, "slice.rss": {h, at + "slice.rss?since=2003-12-03"},
	}
	tags := map[string][2]string{}
	for name, a := range all {
		tags[name] = [2]string{ask(a, "GET", a.path).Header().Get("Etag"), ask(a, "GET", a.path, "Accept-Encoding: gzip").Header().Get("Etag")}
	}
	add(8, "new", day.AddDate(0, 0, 8))
	add(5, "edited", day.AddDate(0, 0, 9))
	require.NoError(t, p.Delete(t.Context(), "urn:6", day.AddDate(0, 0, 10)))
	poll()
	for name, a := range all {
		for _, tag := range tags[name] {
			w := ask(a, "GET", a.path, "A-IM: feed", "If-None-Match: "+tag)
			require.Equal(t, http.StatusIMUsed, w.Code, name)
			require.Equal(t, "feed", w.Header().Get("IM"), name)
			require.Contains(t, w.Header().Get("Cache-Control"), "no-store", name)
			whole := ask(a, "GET", a.path)
			require.Equal(t, whole.Header()["Etag"], w.Header()["Etag"], name)
			require.NotContains(t, w.Body.String(), "<fh:complete", name)
			found, doc := ids(t, w)
			require.ElementsMatch(t, []string{"urn:8", "urn:5", "-urn:6"}, found, name)
			_, full := ids(t, whole)
			require.Equal(t, full.Links, doc.Links, name)
			require.Equal(t, full.ID, doc.ID, name)

			w = ask(a, "GET", a.path, "If-None-Match: "+tag)
			require.Equal(t, http.StatusOK, w.Code, "%s, not asked", name)
			w = ask(a, "GET", a.path, "A-IM: feed", "Range: bytes=0-4", "If-None-Match: "+tag)
			require.Equal(t, http.StatusPartialContent, w.Code, name)
			w = ask(a, "HEAD", a.path, "A-IM: feed", "If-None-Match: "+tag)
			require.Equal(t, http.StatusOK, w.Code, name)
		}
	}

	// A feed added again has the versions of another.
	tag := ask(h, "GET", at+"complete.atom").Header().Get("Etag")
	require.NoError(t, m.Store.Remove(t.Context(), feed))
	for range 5 {
		poll()
		add(9, fmt.Sprint("edited ", time.Now()), time.Now())
	}
	h = &republish.Handler{Store: m.Store, Size: 3}
	require.Equal(t, http.StatusOK, ask(h, "GET", at+"complete.atom", "A-IM: feed", "If-None-Match: "+tag).Code)
}

// Where a complete document deletes by leaving out, it is sent whole.
func TestSinceComplete(t *testing.T) {
	document := func(ids ...string) *fstest.MapFile {
		text := `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><title>F</title><updated>2020-01-01T00:00:00Z</updated><fh:complete/>` + "\n"
		for _, id := range ids {
			text += "<entry><id>" + id + "</id><title>" + strings.Repeat("T", 100) + "</title><updated>2020-01-01T00:00:00Z</updated></entry>\n"
		}
		return &fstest.MapFile{Data: []byte(text + "</feed>\n"), ModTime: time.Unix(int64(len(ids)), 0)}
	}
	files := fstest.MapFS{"feed.atom": document("urn:1", "urn:2")}
	h := &publish.Handler{FS: files}
	tag := ask(h, "GET", "/feed.atom").Header().Get("Etag")
	files["feed.atom"] = document("urn:1", "urn:2", "urn:3")
	w := ask(h, "GET", "/feed.atom", "A-IM: feed;q=0.5, gzip", "If-None-Match: "+tag, "Accept-Encoding: gzip")
	require.Equal(t, http.StatusIMUsed, w.Code)
	require.Empty(t, w.Header().Get("Content-Encoding"))
	found, doc := ids(t, w)
	require.Equal(t, []string{"urn:3"}, found)
	require.False(t, doc.Complete)
	files["feed.atom"] = document("urn:1", "urn:3", "urn:4", "urn:5")
	w = ask(h, "GET", "/feed.atom", "A-IM: feed", "If-None-Match: "+tag, "Accept-Encoding: gzip")
	require.Equal(t, http.StatusOK, w.Code)
	z, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
}
