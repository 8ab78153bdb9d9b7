package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/republish"
)

// Other parsers of XML read every document that fetch, publish, export and the history server
// write, for any document of a publisher.
func TestWrittenIsXML(t *testing.T) {
	feedtest.Required(t, "FEEDHISTORY_XMLLINT")
	t.Parallel()
	documents := map[string]string{}
	for _, file := range feedtest.Glob(t, "../../testdata/parse/*") {
		if ext := filepath.Ext(file); ext == ".atom" || ext == ".rss" {
			documents[filepath.Base(file)] = string(feedtest.ReadFile(t, file))
		}
	}
	for i, unit := range feedtest.Disputed {
		for place, document := range feedtest.Places {
			documents[fmt.Sprint(i, "-", place)] = feedtest.Repeated(document, unit, 1)
		}
	}
	names := feedtest.Sample(documents, feedtest.Count(len(documents)))
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(documents[strings.TrimPrefix(r.URL.Path, "/")]))
	}))
	db, written := filepath.Join(t.TempDir(), "feeds.db"), map[string][]byte{}
	keep := func(name, text string) {
		if text != "" {
			written[name] = []byte(text)
		}
	}
	for _, name := range names {
		url := site.URL + "/" + strings.ReplaceAll(name, " ", "%20")
		for _, format := range []string{"atom", "rss"} {
			_, text, _ := call(t.Context(), "", "fetch", "--allow-private", "--format", format, url)
			keep(name+" fetched "+format, text)
			pub := t.TempDir()
			_, _, _ = call(t.Context(), "", "publish", "--allow-private", "--from", url, "--out", pub, "--base", "https://example.org/", "--size", "1", "--format", format)
			require.NoError(t, fs.WalkDir(os.DirFS(pub), ".", func(file string, d fs.DirEntry, err error) error {
				if ext := filepath.Ext(file); ext == ".atom" || ext == ".rss" {
					keep(name+" published "+file, string(feedtest.ReadFile(t, filepath.Join(pub, file))))
				}
				return err
			}))
		}
		_, _, _ = call(t.Context(), "", "sync", "--db", db, "--allow-private", "--pace", "1ms", url)
		for _, format := range []string{"atom", "rss", "opml"} {
			_, text, _ := call(t.Context(), "", "export", "--db", db, "--format", format, url)
			keep(name+" exported "+format, text)
		}
	}
	base, _, end := history(t, "--allow-private", "--db", db, "--listen", "127.0.0.1:0", "--published", t.TempDir())
	keep("feeds.opml", pageAt(t, base+"feeds.opml"))
	for _, name := range names {
		feed := base + "feeds/" + republish.Name(site.URL+"/"+strings.ReplaceAll(name, " ", "%20"))
		for _, document := range []string{"index.atom", "index.rss", "complete.atom", "slice.rss?since=1970-01-01", "replay.atom?start=2020-01-01&every=1d", "replay.rss?start=2020-01-01&every=1d"} {
			resp, err := http.Get(feed + "/" + document)
			require.NoError(t, err)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, errors.Join(err, resp.Body.Close()))
			if resp.StatusCode == http.StatusOK { // a document without a feed has none
				keep(name+" served "+document, string(text))
			}
		}
	}
	require.Zero(t, end())
	http.DefaultClient.CloseIdleConnections()
	require.Greater(t, len(written), 5*len(names))
	feedtest.Lint(t, written)
}
