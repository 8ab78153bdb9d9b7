package readers_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	store   mirror.Store
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
	}, 5*time.Minute, 10*time.Millisecond)
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
CREATE TABLE category (id INTEGER PRIMARY KEY, name VARCHAR(191) NOT NULL);
CREATE TABLE feed (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, url VARCHAR(32768) NOT NULL, name VARCHAR(191) NOT NULL, category INTEGER);
CREATE TABLE entry (id BIGINT NOT NULL, guid VARCHAR(767) NOT NULL, title VARCHAR(8192) NOT NULL, author VARCHAR(1024), content TEXT,
	link VARCHAR(16383) NOT NULL, date BIGINT, hash BINARY(16), id_feed INTEGER, tags VARCHAR(2048), attributes TEXT, PRIMARY KEY (id));
INSERT INTO category VALUES (1, 'Uncategorized'), (2, 'R &amp; D');
INSERT INTO feed VALUES (7, 'http://a.example/feed?a=1&amp;b=2', 'A &amp; B', 2), (9, 'http://b.example/feed', 'B', 1);
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
	require.Equal(t, []feedhistory.Category{{Term: "news"}, {Term: "more"}}, d.Categories)
	require.Len(t, d.Links, 2)
	require.Equal(t, "http://a.example/2", r.entries["No id"].ID)
	require.Equal(t, [][]string{{"R & D"}}, r.folders(t, one.Feed))
	require.Empty(t, r.folders(t, "http://b.example/feed"))
}

// FreshRSS itself, whose sources are in the folder that FEEDHISTORY_FRESHRSS names, takes
// entries and folders, and gives them back.
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
		{Draft: compose.Draft{ID: "urn:1", Title: feedhistory.Text{Body: "One"}, Updated: now}},
		{Draft: compose.Draft{ID: "urn:2", Title: feedhistory.Text{Body: "Two"}, Updated: now}},
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
	require.Equal(t, [][]string{{"Q & A"}}, r.folders(t, url))
}

func TestMiniflux(t *testing.T) {
	m := (&readertest.Miniflux{}).Serve(t)
	feed := m.Subscribe("http://a.example/feed")
	m.Subscribe("http://b.example/feed")
	const entries = 250
	for n := range entries {
		m.Poll(feed, fmt.Sprint("urn:", n), readertest.Entry{
			URL: fmt.Sprint("http://a.example/", n), Title: fmt.Sprint("Entry ", n), Content: "<p>Text</p>", PublishedAt: time.Unix(1700000000+int64(n), 0).UTC(),
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

	// WARC files are among the documents, and several feeds are chosen by the names they give.
	write("c/3.xml", document("http://c.example/feed", 30, 1))
	write("crawl.gz", zipped(warcOf("response", "http://a.example/feed", crawled, answerOf("200 OK", "", document("http://a.example/feed", 20, 1)))+
		warcOf("response", "http://b.example/feed", crawled, answerOf("200 OK", "", document("http://b.example/feed", 40, 1)))))
	for feeds, want := range map[string]int{"": 8, "http://a.example/feed http://b.example/feed": 7, "http://b.example/feed http://c.example/feed": 2} {
		r = imported(t, source(t, "directory", append([]string{dir}, strings.Fields(feeds)...)...), nil, "")
		require.NoError(t, r.err)
		require.Len(t, r.entries, want, feeds)
		if e := r.entries["Entry 30"]; e != nil {
			require.Equal(t, "http://c.example/feed", e.Feed)
		}
	}
	r = imported(t, source(t, "directory", filepath.Join(dir, "c"), filepath.Join(dir, "crawl.gz"), "http://a.example/feed", "http://c.example/feed"), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.entries, 2)
}

// A repository has 300 versions of a feed, whose window is ten entries.
func TestGit(t *testing.T) {
	const versions = 300
	repository := newRepo(t)
	dir, git := repository.dir, repository.git
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

// A small file cannot become a large import: each way to repeat its text is bounded.
func TestExpansion(t *testing.T) {
	list := `<opml><body>` + strings.Repeat(`<outline text="`+strings.Repeat("n", 300)+`">`, 150)
	for n := range 1000 {
		list += fmt.Sprintf(`<outline text="f" xmlUrl="http://a.example/%d"/>`, n)
	}
	file := filepath.Join(t.TempDir(), "feeds.opml")
	require.NoError(t, os.WriteFile(file, []byte(list+strings.Repeat("</outline>", 150)+"</body></opml>"), 0o600))
	r := imported(t, source(t, "opml", file), nil, "")
	require.NoError(t, r.err)
	require.Len(t, r.damaged, 1)
	require.Contains(t, r.damaged[0], "feeds are too deep in folders with long names")
	feeds, names := 0, 0
	for f, err := range r.store.Feeds(t.Context(), mirror.FeedQuery{}) {
		require.NoError(t, err)
		feeds++
		for _, folders := range f.Folders {
			names += len(strings.Join(folders, ""))
		}
	}
	require.Equal(t, 1000, feeds)
	require.Less(t, names, 5*len(list))

	// A view has as many rows as it likes, a computed column as long texts, and a table of folders
	// without a key has as many for each feed.
	for _, statements := range []string{
		"CREATE TABLE rss_feed (rssurl, title); CREATE VIEW rss_item AS WITH RECURSIVE n(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n) SELECT id, id AS guid, 'http://a.example/f' AS feedurl, 0 AS pubDate FROM n",
		"CREATE TABLE rss_item (id INTEGER PRIMARY KEY, guid, feedurl, pubDate); CREATE VIEW rss_feed AS WITH RECURSIVE n(rowid) AS (VALUES (1) UNION ALL SELECT rowid + 1 FROM n) SELECT rowid, 'http://a.example/' || rowid AS rssurl, 'x' AS title FROM n",
	} {
		file := filepath.Join(t.TempDir(), "cache.db")
		execute(t, file, statements)
		s, err := readers.NewSource("newsboat", []string{file})
		require.NoError(t, err)
		require.ErrorContains(t, imported(t, s, nil, "").err, "there is no table")
	}
	file = filepath.Join(t.TempDir(), "cache.db")
	execute(t, file, `CREATE TABLE rss_feed (rssurl, title); INSERT INTO rss_feed VALUES ('http://a.example/f', 'F');
		CREATE TABLE rss_item (id INTEGER PRIMARY KEY, guid, feedurl, pubDate, title, content AS (hex(zeroblob(1000000))));
		INSERT INTO rss_item VALUES (1, 'urn:1', 'http://a.example/f', 1, 'One')`)
	r = imported(t, source(t, "newsboat", file), nil, "")
	require.NoError(t, r.err)
	require.Less(t, r.entries["One"].Content.Size, int64(1000))
	folders := func(name string) string {
		file := filepath.Join(t.TempDir(), "user.sqlite")
		execute(t, file, `CREATE TABLE entry (id INTEGER PRIMARY KEY, guid, link, id_feed, title); CREATE TABLE category (id, name); CREATE TABLE feed (id INTEGER PRIMARY KEY, url, name, category);
			WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO category SELECT 2, `+name+` FROM n;
			WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO feed SELECT i, 'http://a.example/' || i, 'F', 2 FROM n`)
		return file
	}
	file = folders("'folder ' || i")
	r = imported(t, source(t, "freshrss", file), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, [][]string{{"folder 2000"}}, r.folders(t, "http://a.example/7"))
	file = folders("CASE i WHEN 2000 THEN printf('%.10000c', 'x') END")
	require.ErrorContains(t, imported(t, source(t, "freshrss", file), nil, "").err, "times the bytes of the file")

	// A table whose rows share ids is read in one pass, not sorted again for each hundred of them.
	file = filepath.Join(t.TempDir(), "cache.db")
	execute(t, file, `CREATE TABLE rss_feed (rssurl, title); INSERT INTO rss_feed VALUES ('http://a.example/f', 'F');
		CREATE TABLE rss_item (id, guid, feedurl, pubDate, title);
		WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
		INSERT INTO rss_item SELECT (i + 1) / 2, 'urn:' || i, 'http://a.example/f', 1, i FROM n`)
	r = imported(t, source(t, "newsboat", file), nil, "")
	require.NoError(t, r.err)
	require.Equal(t, 3000, r.sum.Added)
	require.Len(t, r.damaged, 3000)

	// Compressed to a thousandth, once or twice.
	blank := warcOf("response", "http://a.example/feed", crawled, answerOf("200 OK", "", document("http://a.example/feed", 1, 2)+strings.Repeat(" ", 20<<20)))
	twice := warcOf("response", "http://a.example/feed", crawled, answerOf("200 OK", "Content-Encoding: gzip\r\n", zipped(strings.Repeat(" ", 20<<20))))
	ordinary := warcOf("response", "http://a.example/feed", crawled, answerOf("200 OK", "", document("http://a.example/feed", 1, 2)))
	for name, text := range map[string]string{"once": zipped(ordinary) + zipped(blank), "twice": zipped(ordinary) + zipped(twice)} {
		r := imported(t, source(t, "warc", writeWARC(t, "a.warc.gz", text), "http://a.example/feed"), nil, "")
		require.NoError(t, r.err, name)
		require.Len(t, r.entries, 2, name)
		require.NotEmpty(t, r.damaged, name)
		require.Contains(t, r.damaged[0], "compressed to less than a 200th", name)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"newsboat"}, {"nonsense", "x"}, {"git", "repository"}, {"miniflux", "file"}, {"newsboat", "http://a.example/"}, {"", "missing"},
		{"git", "repository", "path", "http://a.example/", "http://b.example/"}, {"freshrss", "https://rss.example/"}, {"greader", "https://rss.example/"}, {"newsboat", "cache.db", "not a feed"},
	} {
		_, err := readers.NewSource(args[0], args[1:])
		require.Error(t, err, "%q", args)
	}
	_, err := readers.NewSource("opml", []string{"feeds.opml"})
	require.NoError(t, err)
}
