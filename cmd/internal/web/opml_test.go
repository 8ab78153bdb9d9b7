package web

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/opml"
)

// upload adds the feeds of a list. It returns the page that follows, with its status or
// that of the redirect there.
func (w *world) upload(list string) (status int, body string) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	file, err := form.CreateFormFile("opml", "feeds.opml")
	require.NoError(w.t, err)
	_, err = io.WriteString(file, list)
	require.NoError(w.t, err)
	require.NoError(w.t, form.Close())
	r := httptestRequest(w.t.Context(), http.MethodPost, "/feeds", &b)
	r.Header.Set("Content-Type", form.FormDataContentType())
	status, body, header := answer(w.t, w.Server, r)
	if status == http.StatusSeeOther {
		body = w.page(header.Get("Location"), http.StatusOK)
	}
	return status, body
}

// Folders and own titles come in and go out again, also of a feed that is here already.
func TestOPMLFolders(t *testing.T) {
	w := newWorld(t, nil)
	w.add("/news.rss")
	_, body := w.upload(`<opml version="2.0"><body>
		<outline text="Sea"><outline text="Tide &amp; time">
			<outline text="My tides" xmlUrl="` + w.feedURL("/tides.atom") + `"/></outline>
			<outline text="My news" xmlUrl="` + w.feedURL("/news.rss") + `"/></outline>
		<outline text="News"><outline text="My news" xmlUrl="` + w.feedURL("/news.rss") + `"/></outline>
		<outline text="Bad" xmlUrl="ftp://example.org/"/></body></opml>`)
	require.Contains(t, body, "1 added, 1 here already, 1 cannot be read: ftp://example.org/")
	w.settle(w.feedURL("/tides.atom"), 0)
	body = w.page("/", http.StatusOK)
	for _, part := range []string{"<bdi>My tides</bdi>", "<bdi>My news</bdi>", `<bdi>Sea › Tide &amp; time</bdi>`, `href="?folder=Sea%2FTide`} {
		require.Contains(t, body, part)
	}
	requireSound(t, body)
	body = w.page("/?folder=Sea%2FTide+%26+time", http.StatusOK)
	require.Contains(t, body, "My tides")
	require.NotContains(t, body, "My news")
	require.Contains(t, w.page("/?folder=Sea", http.StatusOK), "My news", "a folder has the feeds of those in it")
	require.NotContains(t, w.page("/?folder=Se", http.StatusOK), "My news")
	require.Contains(t, w.page("/?q=tide", http.StatusOK), "My tides")

	_, text, _ := w.get("/feeds.opml")
	feeds, err := opml.Read(strings.NewReader(text))
	require.NoError(t, err)
	for i := range feeds {
		feeds[i].Site = ""
	}
	require.ElementsMatch(t, []opml.Outline{
		{Text: "My tides", URL: w.feedURL("/tides.atom"), Folders: [][]string{{"Sea", "Tide & time"}}},
		{Text: "My news", URL: w.feedURL("/news.rss"), Folders: [][]string{{"Sea"}, {"News"}}},
	}, feeds)
}
