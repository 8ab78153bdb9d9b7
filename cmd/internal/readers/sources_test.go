package readers_test

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A result is what an import has done.
type result struct {
	store   mirror.Marker
	entries map[string]*mirror.Record // by title
	sum     readers.Counts
	damaged []string
	marks   []string
	err     error
}

// imported imports a source into an empty mirror.
func imported(t *testing.T, s *readers.Source, server *readers.Server, mark string) *result {
	t.Helper()
	r := &result{store: mirror.NewMemory()}
	r.into(t, s, server, mark)
	return r
}

func (r *result) into(t *testing.T, s *readers.Source, server *readers.Server, mark string) {
	t.Helper()
	i := &readers.Importer{
		Recall:  &mirror.Recall{Mirror: &mirror.Mirror{Store: r.store}, Name: s.Kind},
		Wanted:  s.Wants,
		Damaged: func(err error) { r.damaged = append(r.damaged, err.Error()) },
		Stored:  func(mark string) error { r.marks = append(r.marks, mark); return nil },
		Subscribe: func(ctx context.Context, feed readers.Outline) error {
			_, err := database.Subscribe(ctx, r.store, feed)
			return err
		},
	}
	r.err = i.Run(t.Context(), func(yield func(readers.Item) error) error { return s.Read(t.Context(), server, mark, yield) })
	r.sum, r.entries = readers.Counts{}, map[string]*mirror.Record{}
	for _, tally := range i.Feeds {
		r.sum.Add(tally.Counts)
	}
	for rec, err := range r.store.Entries(t.Context(), mirror.Query{}) {
		require.NoError(t, err)
		require.NotContains(t, r.entries, rec.Content.Title)
		r.entries[rec.Content.Title] = rec
	}
}

// source returns a source, whose kind is recognised.
func source(t *testing.T, kind string, args ...string) *readers.Source {
	t.Helper()
	require.Equal(t, kind, readers.Recognise(t.Context(), args[0]))
	s, err := readers.NewSource(kind, args)
	require.NoError(t, err)
	return s
}

// folders returns the folders of a feed.
func (r *result) folders(t *testing.T, feed string) [][]string {
	t.Helper()
	f, err := r.store.Feed(t.Context(), feed)
	require.NoError(t, err)
	return f.Folders
}

func execute(t *testing.T, file, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(statements)
	require.NoError(t, err)
}

const newsboatTables = `
CREATE TABLE rss_feed (rssurl VARCHAR(1024) PRIMARY KEY NOT NULL, url VARCHAR(1024) NOT NULL, title VARCHAR(1024) NOT NULL);
CREATE TABLE rss_item (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, guid VARCHAR(64) NOT NULL, title VARCHAR(1024) NOT NULL,
	author VARCHAR(1024) NOT NULL, url VARCHAR(1024) NOT NULL, feedurl VARCHAR(1024) NOT NULL, pubDate INTEGER NOT NULL,
	content VARCHAR(65535) NOT NULL, unread INTEGER(1) NOT NULL, enclosure_url VARCHAR(1024), enclosure_type VARCHAR(1024),
	deleted INTEGER(1) NOT NULL DEFAULT 0, content_mime_type VARCHAR(255) NOT NULL DEFAULT "");
INSERT INTO rss_feed VALUES ('http://a.example/feed', 'http://a.example/', 'A'), ('query:All:x', '', 'Q'), ('http://c.example/feed', '', 'No items');
`

func TestNewsboat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache.db")
	execute(t, file, newsboatTables+`
INSERT INTO rss_item VALUES
	(1, 'urn:1', 'One & only', 'Ann', 'http://a.example/1', 'http://a.example/feed', 1700000000, '<p>One</p>', 1, 'http://a.example/1.mp3', 'audio/mpeg', 0, 'text/html'),
	(2, 'http://a.example/2Tue, 02 Jan 2024 10:00:00 GMT', 'Two', '', 'http://a.example/2', 'http://a.example/feed', 1704189600, 'a < b', 0, '', '', 1, 'text/plain'),
	(3, 'Three', 'Three', '', '', 'http://a.example/feed', 1704189601, '', 0, NULL, NULL, 0, ''),
	(4, '', '', '', '', 'http://a.example/feed', 0, '', 0, '', '', 0, ''),
	(5, 'urn:5', 'Lost', '', '', '', 0, '', 0, '', '', 0, '')`)
	r := imported(t, source(t, "newsboat", file), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, 3)
	require.Equal(t, []string{
		"rss_item, row 4: it has neither an id nor a link nor a title", "rss_item, row 5: it names no feed",
	}, r.damaged)
	one, err := r.entries["One & only"].Entry()
	require.NoError(t, err)
	require.Equal(t, "urn:1", one.ID)
	require.Equal(t, "newsboat", one.KeptBy)
	require.Equal(t, "<p>One</p>", one.Content().Body)
	require.EqualValues(t, 1700000000, one.Published.Unix())
	file1, _ := one.Links.Rel("enclosure")
	require.Equal(t, "http://a.example/1.mp3 audio/mpeg", file1.Href+" "+file1.Type)
	two := r.entries["Two"]
	require.Equal(t, "http://a.example/2 newsboat (deleted there)", two.ID+" "+two.Copy.Source)
	e, err := two.Entry()
	require.NoError(t, err)
	require.Equal(t, "a < b", e.Content().Plain())
	require.Contains(t, r.entries["Three"].ID, "urn:sha256:")
	f, err := r.store.Feed(t.Context(), "http://c.example/feed")
	require.NoError(t, err)
	require.Equal(t, "No items", f.Title)
	require.Equal(t, "3", r.marks[len(r.marks)-1])

	r.into(t, source(t, "newsboat", file), nil, "")
	require.Equal(t, readers.Counts{Same: 3}, r.sum)
	require.Len(t, imported(t, source(t, "newsboat", file), nil, "2").entries, 1, "after a mark")
	require.Empty(t, imported(t, source(t, "newsboat", file, "http://c.example/feed"), nil, "").entries, "only one feed")
}

// marked says which entries of a feed are marked: R for read, S for starred, and the labels.
func marked(t *testing.T, r *result, feed string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range feedtest.All(t, r.store.Marks(t.Context(), mirror.MarksQuery{Feed: feed})) {
		text := ""
		if !m.Read.IsZero() {
			text += "R"
		}
		if !m.Starred.IsZero() {
			text += "S"
		}
		all[m.ID] = strings.TrimSpace(text + " " + strings.Join(m.Labels, ","))
	}
	return all
}

// Marks come with the entries of each reader, also of entries that are here already.
func TestMarks(t *testing.T) {
	const feed = "http://a.example/feed"
	cache := filepath.Join(t.TempDir(), "cache.db")
	execute(t, cache, newsboatTables+`
ALTER TABLE rss_item ADD COLUMN flags VARCHAR(52);
INSERT INTO rss_item VALUES
	(1, 'urn:1', 'One', '', 'http://a.example/1', 'http://a.example/feed', 1700000000, 'x', 0, '', '', 0, 'text/html', 'as'),
	(2, 'urn:2', 'Two', '', 'http://a.example/2', 'http://a.example/feed', 1700000001, 'x', 1, '', '', 0, 'text/html', ''),
	(3, 'urn:3', 'Three', '', 'http://a.example/3', 'http://a.example/feed', 1700000002, 'x', 0, '', '', 0, 'text/html', NULL)`)
	r := imported(t, source(t, "newsboat", cache), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, map[string]string{"urn:1": "R a,s", "urn:3": "R"}, marked(t, r, feed))

	user := filepath.Join(t.TempDir(), "ann.sqlite")
	execute(t, user, `
CREATE TABLE category (id INTEGER PRIMARY KEY, name VARCHAR(191) NOT NULL);
CREATE TABLE feed (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, url VARCHAR(32768) NOT NULL, name VARCHAR(191) NOT NULL, category INTEGER);
CREATE TABLE tag (id INTEGER PRIMARY KEY, name VARCHAR(191) NOT NULL);
CREATE TABLE entrytag (id_tag INTEGER, id_entry BIGINT);
INSERT INTO category VALUES (1, 'Uncategorized'), (2, 'R &amp; D');
INSERT INTO tag VALUES (4, 'later'), (5, 'best');
INSERT INTO entrytag VALUES (4, 1), (5, 1);
CREATE TABLE entry (id BIGINT NOT NULL, guid VARCHAR(767) NOT NULL, title VARCHAR(8192) NOT NULL, author VARCHAR(1024), content TEXT,
	link VARCHAR(16383) NOT NULL, date BIGINT, is_read BOOLEAN NOT NULL DEFAULT 0, is_favorite BOOLEAN NOT NULL DEFAULT 0, id_feed INTEGER, tags VARCHAR(2048), PRIMARY KEY (id));
INSERT INTO feed VALUES (7, 'http://a.example/feed', 'A', 2), (8, 'http://b.example/feed', 'B', 1);
INSERT INTO entry VALUES (1, 'urn:1', 'One', '', '', 'http://a.example/1', 1700000000, 0, 1, 7, ''), (2, 'urn:2', 'Two', '', '', 'http://a.example/2', 1700000001, 1, 0, 7, '')`)
	r.into(t, source(t, "freshrss", user), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, map[string]string{"urn:1": "RS a,s,best,later", "urn:2": "R", "urn:3": "R"}, marked(t, r, feed), "nothing that was marked is forgotten")
	require.Equal(t, [][]string{{"R & D"}}, r.folders(t, feed))
	require.Empty(t, r.folders(t, "http://b.example/feed"))

	takeout := filepath.Join(t.TempDir(), "starred.json")
	require.NoError(t, os.WriteFile(takeout, []byte(`{"items": [
		{"id": "x", "originId": "urn:1", "title": "One", "alternate": [{"href": "http://a.example/1"}], "origin": {"streamId": "feed/http://a.example/feed"},
			"categories": ["user/123/state/com.google/starred", "user/123/label/News"]},
		{"id": "y", "originId": "urn:2", "title": "Two", "alternate": [{"href": "http://a.example/2"}], "origin": {"streamId": "feed/http://a.example/feed"}, "unread": false},
		{"id": "z", "originId": "urn:3", "title": "Three", "alternate": [{"href": "http://a.example/3"}], "origin": {"streamId": "feed/http://a.example/feed"}, "unread": true,
			"categories": [{"id": "user/123/tag/global.saved", "label": ""}]}]}`), 0o600))
	r = imported(t, source(t, "google-reader", takeout), nil, "")
	require.NoError(t, r.err)
	want := map[string]string{"urn:1": "S News", "urn:2": "R", "urn:3": "S"}
	require.Equal(t, want, marked(t, r, feed))

	// A takeout comes as a zip, among other files.
	text, err := os.ReadFile(takeout)
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "takeout.zip")
	f, err := os.Create(archive)
	require.NoError(t, err)
	z := zip.NewWriter(f)
	for _, file := range []struct{ name, text string }{{"Reader/notes.txt", "no takeout"}, {"Reader/starred.json", string(text)}, {"Reader/liked.json", `{"items": [{"id": "y", "originId": "urn:4", "title": "Four", "unread": false, "origin": {"streamId": "feed/http://a.example/feed"}}]}`}} {
		part, err := z.Create(file.name)
		require.NoError(t, err)
		_, err = io.WriteString(part, file.text)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(z.Close(), f.Close()))
	fromZip := imported(t, source(t, "google-reader", archive), nil, "")
	require.NoError(t, fromZip.err)
	require.Equal(t, map[string]string{"urn:1": "S News", "urn:2": "R", "urn:3": "S", "urn:4": "R"}, marked(t, fromZip, feed))
	rest := imported(t, source(t, "google-reader", archive), nil, "2")
	require.NoError(t, rest.err)
	require.Equal(t, map[string]string{"urn:3": "S", "urn:4": "R"}, marked(t, rest, feed), "a mark counts the items of all files")

	// And out again, with the labels.
	var out bytes.Buffer
	require.NoError(t, (&readers.Export{Store: r.store}).Write(t.Context(), &out, "greader", r.store.Feeds(t.Context(), mirror.FeedQuery{})))
	exported := filepath.Join(t.TempDir(), "exported.json")
	require.NoError(t, os.WriteFile(exported, out.Bytes(), 0o600))
	r = imported(t, source(t, "google-reader", exported), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, map[string]string{"http://a.example/1": "S News", "http://a.example/2": "R", "http://a.example/3": "S"}, marked(t, r, feed), "its ids are a reader's own")
}

// The rows of a damaged page are skipped and named; those before and after it come.
func TestDamagedCache(t *testing.T) {
	const rows, page = 600, 4096
	file := filepath.Join(t.TempDir(), "cache.db")
	execute(t, file, newsboatTables+fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO rss_item SELECT i, 'urn:' || i, 'Entry ' || i, '', 'http://a.example/' || i, 'http://a.example/feed', 1700000000 + i, '<p>Text</p>', 0, '', '', 0, '' FROM n`, rows))
	sound, err := os.ReadFile(file)
	require.NoError(t, err)
	for damaged, want := range map[string]string{"Entry 300": "and those up to %d are lost", "Entry 600": "and those after it are lost"} {
		text := slices.Clone(sound)
		at := strings.Index(string(text), damaged) / page * page
		require.Positive(t, at)
		copy(text[at:], bytes.Repeat([]byte{0xa5}, page))
		require.NoError(t, os.WriteFile(file, text, 0o600))
		r := imported(t, source(t, "newsboat", file), nil, "")
		require.NoError(t, r.err)
		require.Len(t, r.damaged, 2)
		require.Contains(t, r.damaged[0], file+" is damaged, so rows may be missing: Tree ")
		from, to := 0, rows
		_, _ = fmt.Sscanf(r.damaged[1], "rss_item, row %d: this row "+want, &from, &to)
		require.Contains(t, r.damaged[1], "are lost: database disk image is malformed")
		require.Len(t, r.entries, rows-(to-from+1))
		require.Contains(t, r.entries, fmt.Sprint("Entry ", from-1))
		require.NotContains(t, r.entries, damaged)
	}
	text := slices.Clone(sound)
	key := strings.LastIndex(string(text[:strings.Index(string(text), "Entry 300")]), "\x82\x2c")
	copy(text[key:], "\xbf\x7f") // 8191 instead of 300
	require.NoError(t, os.WriteFile(file, text, 0o600))
	r := imported(t, source(t, "newsboat", file), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.damaged, 2)
	require.Equal(t, "rss_item, row 8191: the rows are not in order", r.damaged[1])
	require.Len(t, r.entries, rows-1)
	require.NotContains(t, r.entries, "Entry 300")
}

// Newsboat itself fills a cache, which is imported while it runs.
func TestNewsboatItself(t *testing.T) {
	feedtest.Program(t, "FEEDHISTORY_NEWSBOAT", "newsboat")
	var text strings.Builder
	text.WriteString(`<rss version="2.0"><channel><title>Model</title><link>http://a.example/</link><description/>`)
	for n := range 30 {
		guid := fmt.Sprintf(`<guid isPermaLink="false">urn:%d</guid>`, n)
		if n%3 == 0 {
			guid = ""
		}
		fmt.Fprintf(&text, `<item>%s<title>Entry %d</title><link>http://a.example/%d</link><pubDate>%s</pubDate><description>&lt;p&gt;Text&lt;/p&gt;</description></item>`,
			guid, n, n, time.Unix(1700000000+int64(n)*86400, 0).UTC().Format(time.RFC1123Z))
	}
	text.WriteString(`</channel></rss>`)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text.String())) }))
	defer site.Close()
	dir := t.TempDir()
	cache, urls, config := filepath.Join(dir, "cache.db"), filepath.Join(dir, "urls"), filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(urls, []byte(site.URL+"/feed\n"), 0o600))
	require.NoError(t, os.WriteFile(config, []byte("max-items 0\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), "newsboat", "-r", "-u", urls, "-c", cache, "-C", config)
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+dir, "no_proxy=*")
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, terminal)
	}()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = terminal.Close()
		<-read
	}()
	var r *result
	require.Eventually(t, func() bool {
		if readers.Recognise(t.Context(), cache) != "newsboat" {
			return false
		}
		r = imported(t, source(t, "newsboat", cache), nil, "")
		return r.err == nil && len(r.entries) == 30
	}, time.Minute, 10*time.Millisecond)
	require.Nil(t, cmd.ProcessState, "newsboat still runs")
	m := &mirror.Mirror{Store: r.store, Client: &feedhistory.Client{AllowPrivate: true}}
	defer m.Client.CloseIdle()
	changes, err := m.Update(t.Context(), site.URL+"/feed")
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Zero(t, changes.Added, "the feed's own copies replace newsboat's")
	require.Equal(t, 30, changes.Changed)
	r.into(t, source(t, "newsboat", cache), nil, "")
	require.Equal(t, readers.Counts{Same: 30}, r.sum)
}

func TestFreshRSS(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ann.sqlite")
	execute(t, file, `
CREATE TABLE feed (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, url VARCHAR(32768) NOT NULL, name VARCHAR(191) NOT NULL);
CREATE TABLE entry (id BIGINT NOT NULL, guid VARCHAR(767) NOT NULL, title VARCHAR(8192) NOT NULL, author VARCHAR(1024), content TEXT,
	link VARCHAR(16383) NOT NULL, date BIGINT, hash BINARY(16), id_feed INTEGER, tags VARCHAR(2048), attributes TEXT, PRIMARY KEY (id));
INSERT INTO feed VALUES (7, 'http://a.example/feed?a=1&amp;b=2', 'A &amp; B');
INSERT INTO entry VALUES
	(1700000000000001, 'urn:1', 'One &amp; only', 'Ann; Bob', '<p>One</p>', 'http://a.example/?p=1&amp;x=2', 1700000000, x'00ff', 7, '#news #more',
		'{"enclosures":[{"url":"http://a.example/1.mp3","type":"audio/mpeg","length":12}]}'),
	(1700000000000002, '0123456789abcdef0123456789abcdef', 'No id', '', '', 'http://a.example/2', 1700000001, NULL, 7, '', NULL),
	(1700000000000003, 'urn:3', 'Lost', '', '', 'http://a.example/3', 1700000001, NULL, 8, '', NULL)`)
	r := imported(t, source(t, "freshrss", file), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, []string{"entry, row 1700000000000003: there is no feed 8"}, r.damaged)
	one := r.entries["One & only"]
	require.Equal(t, "http://a.example/feed?a=1&b=2 urn:1 http://a.example/?p=1&x=2", one.Feed+" "+one.ID+" "+one.Content.Link)
	e, err := one.Entry()
	require.NoError(t, err)
	d := compose.DraftOf(e)
	require.Equal(t, []feedhistory.Person{{Name: "Ann"}, {Name: "Bob"}}, d.Authors)
	require.Equal(t, []compose.Category{{Term: "news"}, {Term: "more"}}, d.Categories)
	require.Len(t, d.Links, 2)
	require.Equal(t, "http://a.example/2", r.entries["No id"].ID)
}

func TestMiniflux(t *testing.T) {
	m := (&readertest.Miniflux{}).Serve(t)
	feed := m.Subscribe("http://a.example/feed")
	m.Subscribe("http://b.example/feed")
	const entries = 250
	for n := range entries {
		m.Poll(feed, fmt.Sprint("urn:", n), readertest.Entry{
			URL: fmt.Sprint("http://a.example/", n), Title: fmt.Sprint("Entry ", n), Content: "<p>Text</p>", PublishedAt: time.Unix(1700000000+int64(n), 0).UTC(),
			Status: map[bool]string{true: "read", false: "unread"}[n < 10], Starred: n == 20,
		})
	}
	server := func() *readers.Server {
		return &readers.Server{URL: m.URL, Wait: time.Millisecond, Header: http.Header{"Authorization": {"Bearer " + m.Token}}, Transport: plain(t)}
	}
	s, err := readers.NewSource("miniflux", []string{m.URL})
	require.NoError(t, err)
	r := &result{store: mirror.NewMemory()}
	_, err = (&mirror.Recall{Mirror: &mirror.Mirror{Store: r.store}, Name: "newsboat"}).Entries(t.Context(), "http://a.example/feed", "", []mirror.KeptEntry{
		{Draft: compose.Draft{ID: "urn:7", Title: feedhistory.Text{Body: "Entry 7, as newsboat has it"}}},
	})
	require.NoError(t, err)
	m.Break(func(n int, _ *http.Request) *readertest.Fault {
		if n == 3 {
			return &readertest.Fault{Status: http.StatusBadGateway}
		}
		return nil
	})
	r.into(t, s, server(), "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, entries, "Miniflux's hash tells that entry 7 is the one of newsboat")
	require.Equal(t, "http://a.example/9", r.entries["Entry 9"].ID)
	marks := marked(t, r, "http://a.example/feed")
	require.Len(t, marks, 11)
	require.Equal(t, "R S", marks["urn:7"]+" "+marks["http://a.example/20"])
	require.EqualValues(t, 1700000009, r.entries["Entry 9"].Content.Published.Unix())
	_, err = r.store.Feed(t.Context(), "http://b.example/feed")
	require.NoError(t, err, "a feed without entries")
	r.into(t, s, server(), "")
	require.Equal(t, readers.Counts{Same: entries}, r.sum)

	bad := server()
	bad.Header = http.Header{"Authorization": {"Bearer wrong"}}
	require.ErrorContains(t, imported(t, s, bad, "").err, "the reader rejected the credentials")
	require.Len(t, imported(t, s, server(), "1 200").entries, 50, "after a mark")
}

// Miniflux lists the feeds with errors first. An import that was cut short continues with the
// feeds it has not read, wherever they are in the list.
func TestMinifluxInterrupted(t *testing.T) {
	m := (&readertest.Miniflux{}).Serve(t)
	for _, url := range []string{"http://a.example/feed", "http://127.0.0.1:1/feed"} {
		feed := m.Subscribe(url)
		m.Poll(feed, url, readertest.Entry{URL: url + "/1", Title: "Entry of " + url})
	}
	header := http.Header{"X-Auth-Token": {m.Token}}
	failing := &readers.Server{URL: m.URL, Header: header, Transport: plain(t), Tries: 1}
	_, err := failing.Call(t.Context(), http.MethodPut, "v1/feeds/2/refresh", nil, nil, nil)
	require.Error(t, err, "its address does not answer")
	s, err := readers.NewSource("miniflux", []string{m.URL})
	require.NoError(t, err)
	n := 0
	m.Break(func(int, *http.Request) *readertest.Fault {
		if n++; n == 3 { // the entries of the second feed
			return &readertest.Fault{Status: http.StatusBadRequest}
		}
		return nil
	})
	r := imported(t, s, &readers.Server{URL: m.URL, Header: header, Transport: plain(t)}, "")
	require.Error(t, r.err)
	require.Len(t, r.marks, 1)
	r.into(t, s, &readers.Server{URL: m.URL, Header: header, Transport: plain(t)}, r.marks[0])
	require.NoError(t, r.err)
	require.Len(t, r.entries, 2)
}

// plain returns a transport that ends with the test.
func plain(t *testing.T) *http.Transport {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// A greader is a server with the Google Reader API.
type greader struct {
	items    int
	numbered bool // it gives items by their numbers only, as Miniflux does
}

func (g *greader) item(n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("tag:google.com,2005:reader/item/%016x", n), "title": fmt.Sprint("Entry &amp; ", n), "published": 1700000000 + n,
		"alternate": []any{map[string]any{"href": fmt.Sprint("http://a.example/", n), "type": "text/html"}},
		"summary":   map[string]any{"content": "<p>Text</p>"}, "author": "Ann", "origin": map[string]any{"streamId": "feed/52", "title": "A"},
		"enclosure": []any{map[string]any{"href": "http://a.example/1.mp3", "type": "audio/mpeg", "length": 5}},
	}
}

func (g *greader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	if strings.HasSuffix(r.URL.Path, "/accounts/ClientLogin") {
		if r.FormValue("Email") != "ann" || r.FormValue("Passwd") != "pass:word" {
			http.Error(w, "Error=BadAuthentication", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("SID=x\nLSID=y\nAuth=ann/token\n"))
		return
	}
	if r.Header.Get("Authorization") != "GoogleLogin auth=ann/token" {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("c"))
	end := min(from+100, g.items)
	next := map[string]any{}
	if end < g.items {
		next["continuation"] = strconv.Itoa(end)
	}
	switch path := r.URL.Path[strings.Index(r.URL.Path, "/reader/"):]; {
	case path == "/reader/api/0/subscription/list":
		answer(map[string]any{"subscriptions": []any{map[string]any{"id": "feed/52", "title": "A", "url": "http://a.example/feed",
			"categories": []any{map[string]any{"id": "user/-/label/News", "label": "News"}, map[string]any{"id": "user/-/label/Uncategorized", "label": "Uncategorized"}}}}})
	case path == "/reader/api/0/stream/contents/feed/52" && !g.numbered:
		items := []any{}
		for n := from; n < end; n++ {
			items = append(items, g.item(n))
		}
		next["items"] = items
		answer(next)
	case path == "/reader/api/0/stream/items/ids" && r.URL.Query().Get("s") == "feed/52":
		refs := []any{}
		for n := from; n < end; n++ {
			refs = append(refs, map[string]any{"id": strconv.Itoa(n)})
		}
		next["itemRefs"] = refs
		answer(next)
	case path == "/reader/api/0/token":
		_, _ = w.Write([]byte("for POST"))
	case path == "/reader/api/0/stream/items/contents" && r.Method == http.MethodPost:
		if _ = r.ParseForm(); r.PostForm.Get("T") != "for POST" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		items := []any{}
		for _, id := range r.Form["i"] {
			n, _ := strconv.Atoi(id)
			items = append(items, g.item(n))
		}
		answer(map[string]any{"items": items})
	default:
		answer([]any{}) // as Miniflux answers
	}
}

func TestGreader(t *testing.T) {
	for name, numbered := range map[string]bool{"contents": false, "numbers": true} {
		t.Run(name, func(t *testing.T) {
			site := httptest.NewServer(&greader{items: 230, numbered: numbered})
			defer site.Close()
			s, err := readers.NewSource("freshrss", []string{site.URL})
			require.NoError(t, err)
			r, _ := http.NewRequest(http.MethodGet, site.URL, nil)
			r.SetBasicAuth("ann", "pass:word")
			server := &readers.Server{URL: site.URL, Wait: time.Millisecond, Header: r.Header, Transport: plain(t)}
			got := imported(t, s, server, "")
			require.NoError(t, got.err)
			require.Len(t, got.entries, 230)
			e := got.entries["Entry & 7"]
			require.Equal(t, "http://a.example/feed http://a.example/7", e.Feed+" "+e.ID)
			require.Equal(t, [][]string{{"News"}}, got.folders(t, "http://a.example/feed"))
			require.Len(t, imported(t, s, &readers.Server{URL: site.URL, Header: server.Header, Transport: plain(t)}, "feed/51 100").entries, 230, "the feed of the mark is gone")
			r.SetBasicAuth("ann", "wrong")
			require.ErrorContains(t, imported(t, s, &readers.Server{URL: site.URL, Header: r.Header, Transport: plain(t), Login: "--user"}, "").err, "rejected the credentials")
		})
	}
}

func TestTakeout(t *testing.T) {
	item := `{"id":"tag:google.com,2005:reader/item/1","title":"One","published":1200000000,"updated":1200000001,
		"alternate":[{"href":"http://a.example/1","type":"text/html"}],"content":{"direction":"ltr","content":"<p>One</p>"},
		"origin":{"streamId":"feed/http://a.example/feed","title":"A"}}`
	feedly := `{"id":"x","originId":"urn:2","fingerprint":"f","title":"Two","published":1200000000000,"alternate":[{"href":"http://a.example/2"}],
		"summary":{"content":"Two"},"origin":{"streamId":"feed/http://a.example/feed","title":"A"}}`
	feedly += `,{"id":"y","guid":"2a20df9cf13f061a2d38f16d28d11d599d9f042d","title":"Made","alternate":[{"href":"http://a.example/4"}],
		"origin":{"streamId":"feed/2","feedUrl":"http://a.example/feed"}}`
	damaged := `{"title":7,"origin":{}},{"title":"No feed","alternate":[{"href":"http://a.example/3"}]}`
	for name, text := range map[string]string{
		"an object": `{"direction":"ltr","id":"user/1/state/com.google/starred","items":[` + item + "," + feedly + "," + damaged + `],"continuation":"x"}`,
		"a list":    "[" + item + "," + feedly + "," + damaged + "]",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "starred.json")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			r := imported(t, source(t, "google-reader", file), nil, "")
			require.NoError(t, r.err)
			require.Len(t, r.damaged, 2)
			require.Equal(t, "http://a.example/1", r.entries["One"].ID)
			require.Equal(t, "urn:2", r.entries["Two"].ID)
			require.Equal(t, "http://a.example/4", r.entries["Made"].ID, "FreshRSS has made the id")
			require.Equal(t, 2008, r.entries["Two"].Content.Published.Year())
			require.Len(t, imported(t, source(t, "google-reader", file), nil, "1").entries, 2, "after a mark")
			require.NoError(t, os.WriteFile(file, []byte(text[:len(text)-20]), 0o600))
			cut := imported(t, source(t, "google-reader", file), nil, "")
			require.ErrorContains(t, cut.err, "after item")
			require.Len(t, cut.entries, 3, "what came before is there")
		})
	}
	file := filepath.Join(t.TempDir(), "export.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"feed","feed":"http://a.example/feed"}`), 0o600))
	require.Empty(t, readers.Recognise(t.Context(), file))
}

func document(self string, n, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>Saved</title><link rel="self" href="%s"/><updated>%s</updated>`,
		self, time.Unix(1700000000+int64(n)*3600, 0).UTC().Format(time.RFC3339))
	for i := n; i >= 0 && i > n-size; i-- {
		fmt.Fprintf(&b, `<entry><id>urn:%d</id><title>Entry %d</title><updated>%s</updated><link href="%d.html"/></entry>`,
			i, i, time.Unix(1700000000+int64(i)*3600, 0).UTC().Format(time.RFC3339), i)
	}
	return b.String() + "</feed>"
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("b/2.xml", document("http://a.example/feed", 4, 3))
	write("b/1.atom", document("http://a.example/feed", 1, 3))
	write("nobody.xml", `<rss version="2.0"><channel><item><guid>x</guid></item></channel></rss>`)
	write("notes.txt", "no feed")
	write("broken.xml", "no feed")
	r := imported(t, source(t, "directory", dir), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, 5)
	require.Len(t, r.damaged, 2)
	require.Equal(t, "directory", r.entries["Entry 3"].Copy.Source)
	require.Equal(t, "http://a.example/3.html", r.entries["Entry 3"].Content.Link)
	r = imported(t, source(t, "directory", filepath.Join(dir, "nobody.xml"), "http://n.example/feed"), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, 1)
}

// A repository has 300 versions of a feed, whose window is ten entries.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	const versions = 300
	dir := t.TempDir()
	git := func(stdin string, args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("", "init", "-q", "-b", "main")
	var stream strings.Builder
	for n := range versions {
		text := document("http://a.example/feed.xml", n, 10)
		if n == 7 {
			text = "<feed broken"
		}
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A <a@a.example> %d +0000\ndata 1\nx\nM 100644 inline public/feed.xml\ndata %d\n%s\n", 1700000000+n*3600, len(text), text)
	}
	git(stream.String(), "fast-import", "--quiet")
	git("", "reset", "-q", "--hard")
	git("", "config", "log.showSignature", "true")
	s := source(t, "git", dir, "public/feed.xml")
	r := imported(t, s, nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.damaged, 1)
	require.Contains(t, r.damaged[0], "public/feed.xml at ")
	require.Len(t, r.entries, versions)
	require.Equal(t, "http://a.example/299.html", r.entries["Entry 299"].Content.Link)
	require.Equal(t, "git", r.entries["Entry 0"].Copy.Source)
	f, err := r.store.Feed(t.Context(), "http://a.example/feed.xml")
	require.NoError(t, err)
	require.Equal(t, "partial Saved", f.Verdict.String()+" "+f.Title)
	r.into(t, s, nil, "")
	require.Zero(t, r.sum.Added+r.sum.Changed)
	inside, err := readers.NewSource("git", []string{filepath.Join(dir, "public"), "feed.xml", "http://b.example/"})
	require.NoError(t, err)
	require.Len(t, imported(t, inside, nil, "").entries, versions)
	missing, err := readers.NewSource("git", []string{dir, "other.xml"})
	require.NoError(t, err)
	require.ErrorContains(t, imported(t, missing, nil, "").err, "no commit has the file other.xml")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"newsboat"}, {"nonsense", "x"}, {"git", "repository"}, {"miniflux", "file"}, {"newsboat", "http://a.example/"}, {"", "missing"},
		{"directory", "x", "http://a.example/", "http://b.example/"}, {"newsboat", "cache.db", "not a feed"},
	} {
		_, err := readers.NewSource(args[0], args[1:])
		require.Error(t, err, "%q", args)
	}
	_, err := readers.NewSource("opml", []string{"feeds.opml"})
	require.NoError(t, err)
}
