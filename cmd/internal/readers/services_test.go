package readers_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// service imports from a service, as ann, whose answers are by path and query.
func service(t *testing.T, kind, mark string, answers map[string]string, feeds ...string) *result {
	t.Helper()
	site := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		cookie, _ := r.Cookie("newsblur_sessionid")
		switch _ = r.ParseForm(); {
		case r.URL.Path == "/api/login" && r.Method == http.MethodPost && r.PostForm.Get("username")+":"+r.PostForm.Get("password") == "ann:secret":
			http.SetCookie(w, &http.Cookie{Name: "newsblur_sessionid", Value: "s", Path: "/"})
			_, _ = fmt.Fprint(w, `{"authenticated": true, "code": 1}`)
			return
		case r.URL.Path == "/api/login":
			_, _ = fmt.Fprint(w, `{"authenticated": false, "code": -1, "errors": {"username": ["That username is not registered."]}}`)
			return
		case kind == "feedbin" && (!ok || user+password != "annsecret"), kind == "newsblur" && cookie == nil:
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		text, ok := answers[strings.TrimPrefix(r.URL.Path+"?"+r.URL.Query().Get("page"), "/v2")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, text)
	}))
	s, err := readers.NewSource(kind, append([]string{site.URL}, feeds...))
	require.NoError(t, err)
	login := func(password string) *readers.Server {
		r, _ := http.NewRequest(http.MethodGet, site.URL, nil)
		r.SetBasicAuth("ann", password)
		return &readers.Server{URL: site.URL, Tries: 1, Header: r.Header, Transport: plain(t)}
	}
	require.ErrorContains(t, imported(t, s, login("wrong"), "").err, "rejected the credentials")
	return imported(t, s, login("secret"), mark)
}

// The answers have the form of Feedbin's documentation of its API, version 2.
func TestFeedbin(t *testing.T) {
	var full []string
	for n := range 100 {
		full = append(full, fmt.Sprintf(`{"id": %d, "feed_id": 47, "title": "Entry %[1]d", "url": "http://a.example/%[1]d", "author": null, "summary": "", "content": null, "published": "2013-02-03T01:00:19.000000Z"}`, 1000+n))
	}
	answers := map[string]string{
		"/subscriptions.json?": `[{"id": 525, "created_at": "2013-03-12T11:30:25.209432Z", "feed_id": 47, "title": "A", "feed_url": "http://a.example/feed", "site_url": "http://a.example/"},
			{"id": 526, "feed_id": 48, "title": "B", "feed_url": "http://b.example/feed"}]`,
		"/taggings.json?":          `[{"id": 4, "feed_id": 47, "name": "Tech"}, {"id": 5, "feed_id": 47, "name": "News"}]`,
		"/unread_entries.json?":    `[1001, 2077]`,
		"/starred_entries.json?":   `[1002]`,
		"/feeds/47/entries.json?1": "[" + strings.Join(full, ",") + "]",
		"/feeds/48/entries.json?1": `[{"id": 2077, "feed_id": 48, "title": "Tom &amp; <i>Ann</i>", "url": "http://b.example/1", "author": "Ann", "content": "<p>Text</p>", "summary": "Text", "published": "2013-02-03T01:00:19.000000Z",
			"enclosure": {"enclosure_url": "http://b.example/1.mp3", "enclosure_type": "audio/mpeg", "enclosure_length": "54103635", "itunes_duration": "01:51:35"}}]`,
	}
	r := service(t, "feedbin", "", answers)
	require.NoError(t, r.err)
	require.Len(t, r.entries, 101)
	marks := marked(t, r, "http://a.example/feed")
	require.Equal(t, "R RS", marks["http://a.example/1000"]+" "+marks["http://a.example/1002"])
	require.NotContains(t, marks, "http://a.example/1001")
	require.Empty(t, marked(t, r, "http://b.example/feed"))
	require.Equal(t, [][]string{{"Tech"}, {"News"}}, r.folders(t, "http://a.example/feed"))
	e, err := r.entries["Tom & Ann"].Entry()
	require.NoError(t, err)
	d := compose.DraftOf(e)
	require.Equal(t, "2013-02-03 Ann <p>Text</p> 54103635", d.Published.Format("2006-01-02")+" "+d.Authors[0].Name+" "+d.Content.Body+" "+d.Links[1].Length)
	require.Len(t, service(t, "feedbin", "47 2", answers).entries, 1, "after a mark, at the end of the feed")
	require.Len(t, service(t, "feedbin", "", answers, "http://b.example/feed").entries, 1)
}

// The answers have the form of NewsBlur's documentation of its API.
func TestNewsBlur(t *testing.T) {
	story := func(feed, n int, more string) string {
		return fmt.Sprintf(`{"id": "urn:%[2]d", "story_hash": "%[1]d:abc%[2]d", "story_feed_id": %[1]d, "story_title": "Story %[2]d", "story_permalink": "http://a.example/%[2]d",
			"story_authors": "Ann", "story_content": "<p>Text</p>", "story_tags": ["news"], "story_timestamp": "170000000%[2]d", %[3]s}`, feed, n, more)
	}
	answers := map[string]string{
		"/reader/feeds?": `{"authenticated": true, "feeds": {"7": {"id": 7, "feed_title": "A", "feed_address": "http://a.example/feed", "feed_link": "http://a.example/", "active": true}},
			"flat_folders": {" ": [], "Tech": [7], "Tech - Deep": [8]}}`,
		"/reader/feed/7?1":          `{"stories": [` + story(7, 1, `"read_status": 1`) + "," + story(7, 2, `"read_status": 0`) + "]}",
		"/reader/feed/7?2":          `{"stories": [` + story(7, 3, `"read_status": 0, "starred": true, "starred_timestamp": 1700000100, "user_tags": ["later"]`) + "]}",
		"/reader/feed/7?3":          `{"stories": []}`,
		"/reader/starred_stories?1": `{"stories": [` + story(7, 4, `"user_tags": ["old"], "starred_timestamp": 1600000000`) + "," + story(9, 5, `"user_tags": []`) + "]}",
		"/reader/starred_stories?2": `{"stories": []}`,
	}
	r := service(t, "newsblur", "", answers)
	require.NoError(t, r.err)
	require.Len(t, r.entries, 4, "the feed of a saved story may be unknown")
	require.Equal(t, map[string]string{"urn:1": "R", "urn:3": "S later", "urn:4": "RS old"}, marked(t, r, "http://a.example/feed"))
	require.Equal(t, [][]string{{"Tech"}}, r.folders(t, "http://a.example/feed"))
	require.EqualValues(t, 1700000002, r.entries["Story 2"].Content.Published.Unix())
	require.Len(t, service(t, "newsblur", "7 2", answers, "http://a.example/feed").entries, 2, "after a mark")
}

// A line of newsboat's list has a feed, tags and a title.
func TestNewsboatURLs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	require.NoError(t, os.WriteFile(file, []byte(`# my feeds
http://a.example/feed "R & D" daily "~My A"
http://b.example/feed

---
"query:Unread:unread = \"yes\"" daily
exec:~/bin/feed daily
https://c.example/feed ! "!hidden"
`), 0o600))
	r := imported(t, source(t, "newsboat", file), nil, "")
	require.NoError(t, r.err)
	f, err := r.store.Feed(t.Context(), "http://a.example/feed")
	require.NoError(t, err)
	require.Equal(t, "My A", f.Named)
	require.Equal(t, [][]string{{"R & D"}, {"daily"}}, f.Folders)
	require.Empty(t, r.folders(t, "http://b.example/feed"))
	require.Equal(t, [][]string{{"hidden"}}, r.folders(t, "https://c.example/feed"))
	require.NoError(t, os.WriteFile(file, []byte("exec:~/bin/feed\nhttp://a.example/feed\n"), 0o600))
	require.Equal(t, "newsboat", readers.Recognise(t.Context(), file))
}

// FreshRSS itself, whose sources are in the folder that FEEDHISTORY_FRESHRSS names, takes marks,
// labels and folders, and gives them back.
func TestRealFreshRSS(t *testing.T) {
	sources := os.Getenv("FEEDHISTORY_FRESHRSS")
	if sources == "" {
		t.Skip("FEEDHISTORY_FRESHRSS names no folder")
	}
	dir, url := t.TempDir(), "http://a.example/feed"
	root := filepath.Join(dir, "freshrss")
	require.NoError(t, os.CopyFS(root, os.DirFS(sources)))
	require.NoError(t, os.RemoveAll(filepath.Join(root, "data/users/ann")))
	_ = os.Remove(filepath.Join(root, "data/config.php"))
	_ = os.Remove(filepath.Join(root, "data/applied_migrations.txt"))
	run := func(script string, args ...string) {
		cmd := exec.Command("php", append([]string{"cli/" + script + ".php"}, args...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
	}
	run("do-install", "--default-user", "ann", "--auth-type", "none", "--db-type", "sqlite", "--environment", "production", "--base-url", "http://localhost/", "--language", "en", "--title", "x")
	run("create-user", "--user", "ann", "--password", "password")

	mine := mirror.NewMemory()
	now := time.Now().UTC()
	_, err := (&mirror.Recall{Mirror: &mirror.Mirror{Store: mine}, Name: "x"}).Entries(t.Context(), url, "A", []mirror.KeptEntry{
		{Draft: compose.Draft{ID: "urn:1", Title: feedhistory.Text{Body: "One"}, Updated: now}, Marks: mirror.Marks{Read: now, Labels: []string{"R & D", "later"}}},
		{Draft: compose.Draft{ID: "urn:2", Title: feedhistory.Text{Body: "Two"}, Updated: now}, Marks: mirror.Marks{Starred: now}},
		{Draft: compose.Draft{ID: "urn:3", Title: feedhistory.Text{Body: "Three"}, Updated: now}},
	})
	require.NoError(t, err)
	var list, items bytes.Buffer
	require.NoError(t, readers.WriteOPML(&list, now, []readers.Outline{{Text: "A", URL: url, Folders: [][]string{{"Q & A"}}}}))
	require.NoError(t, (&readers.Export{Store: mine}).Write(t.Context(), &items, "greader", mine.Feeds(t.Context(), mirror.FeedQuery{})))
	for name, text := range map[string][]byte{"list.opml": list.Bytes(), "items.json": items.Bytes()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	run("import-for-user", "--user", "ann", "--filename", filepath.Join(dir, "list.opml"))
	run("import-for-user", "--user", "ann", "--filename", filepath.Join(dir, "items.json"))
	file := filepath.Join(dir, "ann.sqlite")
	run("export-sqlite-for-user", "--user", "ann", "--filename", file)
	r := imported(t, source(t, "freshrss", file), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, 3)
	require.Equal(t, map[string]string{"urn:1": "R R & D,later", "urn:2": "S"}, marked(t, r, url))
	require.Equal(t, [][]string{{"Q & A"}}, r.folders(t, url))
}
