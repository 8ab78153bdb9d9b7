package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// A website has files that a test can change, and a log of the answers.
type website struct {
	sync.Mutex
	files  map[string]string
	log    []string
	before func(requests int) // called before each answer, with the number of requests so far
}

func (s *website) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	body, ok := s.files[r.URL.RequestURI()]
	if s.before != nil {
		s.before(len(s.log) + 1)
	}
	answer := httptest.NewRecorder()
	if ok {
		answer.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body))))
		answer.Header().Set("Content-Type", "application/atom+xml")
		http.ServeContent(answer, r, "", time.Time{}, strings.NewReader(body))
	} else {
		http.NotFound(answer, r)
	}
	s.log = append(s.log, fmt.Sprint(answer.Code, " ", r.URL.RequestURI()))
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// answers returns the log, and empties it.
func (s *website) answers() []string {
	s.Lock()
	defer s.Unlock()
	log := s.log
	s.log = nil
	return log
}

func (s *website) set(name, body string) {
	s.Lock()
	defer s.Unlock()
	s.files[name] = body
}

// feed returns a document with links, like "prev-archive=/2", and entries, like
// "id@day=title"; "-id@day" is a deletion.
func feed(parts ...string) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0" xmlns:fh="http://purl.org/syndication/history/1.0">`)
	for _, part := range parts {
		left, right, _ := strings.Cut(part, "=")
		id, day, isEntry := strings.Cut(left, "@")
		switch {
		case part == "complete":
			b.WriteString(`<fh:complete/>`)
		case part == "broken":
			b.WriteString(`<subtitle>`)
		case !isEntry:
			fmt.Fprintf(&b, `<link rel="%s" href="%s"/>`, left, right)
		case strings.HasPrefix(id, "-"):
			fmt.Fprintf(&b, `<at:deleted-entry ref="urn:%s" when="2003-12-%sT00:00:00Z"/>`, id[1:], day)
		default:
			fmt.Fprintf(&b, `<entry><id>urn:%s</id><updated>2003-12-%sT00:00:00Z</updated><title>%s</title></entry>`, id, day, right)
		}
	}
	return b.String() + "</feed>"
}

// archived is a feed of four documents with one entry each.
func archived() map[string]string {
	return map[string]string{
		"/feed": feed("prev-archive=/3", "4@04=Four"),
		"/3":    feed("prev-archive=/2#older", "3@03=Three"),
		"/2":    feed("prev-archive=/1", "2@02=Two"),
		"/1":    feed("next-archive=/2", "1@01=One"),
	}
}

func newClient() *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, PerHost: 1, Tries: 1}
}

// A reader is an aggregator with one feed.
type reader struct {
	*website
	t         *testing.T
	file, url string
}

func read(t *testing.T, files map[string]string) *reader {
	site := &website{files: files}
	server := feedtest.Server(t, site)
	return &reader{site, t, filepath.Join(t.TempDir(), "feeds.db"), server.URL}
}

func openFile(t *testing.T, file string) *sql.DB {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// update updates the feed.
func (r *reader) update() {
	r.t.Helper()
	client := newClient()
	defer client.CloseIdle()
	require.NoError(r.t, run(r.t.Context(), openFile(r.t, r.file), client, []string{r.url + "/feed"}))
}

// titles returns the titles of the articles, ordered by id.
func (r *reader) titles() (titles string) {
	r.t.Helper()
	require.NoError(r.t, openFile(r.t, r.file).QueryRow(`SELECT coalesce(group_concat(title, ' '), '') FROM
		(SELECT title FROM articles ORDER BY id)`).Scan(&titles))
	return titles
}

func (r *reader) expect(titles string, answers ...string) {
	r.t.Helper()
	r.answers()
	r.update()
	require.Equal(r.t, titles, r.titles())
	if answers != nil {
		require.Equal(r.t, answers, r.answers())
	}
}

func TestArticles(t *testing.T) {
	r := read(t, archived())
	r.expect("One Two Three Four", "200 /feed", "200 /3", "200 /2", "200 /1")
	r.expect("One Two Three Four", "304 /feed")
	r.set("/feed", feed("prev-archive=/4", "5@05=Five", "1@09=Uno", "-2@10"))
	r.set("/4", feed("prev-archive=/3", "4@04=Four"))
	r.expect("Uno Three Four Five", "200 /feed", "200 /4")
	r.set("/feed", feed("prev-archive=/4", "5@05=Five", "2@11=Due"))
	r.expect("Uno Due Three Four Five")
}

// The articles follow a feed to its new URL, and go with it.
func TestMovedAndRemoved(t *testing.T) {
	r := read(t, archived())
	r.update()
	db := openFile(t, r.file)
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	store.Hook = keepArticles
	f, err := store.Feed(t.Context(), r.url+"/feed")
	require.NoError(t, err)
	count := func(feed string) (n int) {
		require.NoError(t, db.QueryRow("SELECT count(*) FROM articles WHERE feed = ?", feed).Scan(&n))
		return n
	}
	require.NoError(t, store.Move(t.Context(), f, "https://example.org/moved"))
	require.Equal(t, 4, count("https://example.org/moved"))
	require.NoError(t, store.Remove(t.Context(), f.URL))
	require.Zero(t, count("https://example.org/moved"))
	require.Empty(t, r.titles())
}

// An entry that a complete feed lacked, and that comes back, has its title again.
func TestBack(t *testing.T) {
	r := read(t, map[string]string{"/feed": feed("complete", "1@01=One", "2@02=Two")})
	r.expect("One Two")
	r.set("/feed", feed("complete", "2@02=Two"))
	r.expect("Two")
	r.set("/feed", feed("complete", "1@01=One", "2@02=Two"))
	r.expect("One Two")
}

var kills = flag.Int("kills", feedtest.Count(24), "how many times TestKilled kills")

// However often the process is killed, at whatever moment, the articles are the live
// entries of the mirror, and in the end everything is there.
func TestKilled(t *testing.T) {
	if file := os.Getenv("AGGREGATOR_DATABASE"); file != "" {
		require.NoError(t, run(context.Background(), openFile(t, file), newClient(), []string{os.Getenv("AGGREGATOR_FEED")}))
		return
	}
	archives := 12 * *kills // more than all processes together can read
	files := map[string]string{"/feed": feed(fmt.Sprintf("prev-archive=/%d", archives), "0@31=T0")}
	want := map[string]string{"urn:0": "T0"}
	for n := 1; n <= archives; n++ {
		parts := []string{fmt.Sprintf("next-archive=/%d", n+1)}
		if n > 1 {
			parts = append(parts, fmt.Sprintf("prev-archive=/%d", n-1))
		}
		for i := range 5 {
			id, title := fmt.Sprintf("%d-%d", n, i), fmt.Sprintf("T%d-%d", n, i)
			parts = append(parts, fmt.Sprintf("%s@%02d=%s", id, 1+n%28, title))
			want["urn:"+id] = title
		}
		files[fmt.Sprintf("/%d", n)] = feed(parts...)
	}
	r := read(t, files)
	random := feedtest.Random(0)
	for range *kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "AGGREGATOR_DATABASE="+r.file, "AGGREGATOR_FEED="+r.url+"/feed")
		at, seen, dead := random.IntN(12), 0, make(chan struct{})
		wait := time.Duration(random.IntN(5)) * time.Millisecond
		r.Lock()
		r.before = func(int) { // the document after at never comes, so the process cannot end before it is killed
			if seen++; seen == at+1 {
				time.AfterFunc(wait, func() { _ = cmd.Process.Kill(); close(dead) })
			}
			if seen > at {
				<-dead
			}
		}
		err := cmd.Start()
		r.Unlock()
		require.NoError(t, err)
		if err := cmd.Wait(); runtime.GOOS == "windows" {
			require.Error(t, err)
		} else {
			require.ErrorContains(t, err, "signal: killed")
		}
		r.agrees()
	}
	r.Lock()
	r.before = nil
	r.Unlock()
	r.update()
	require.Equal(t, want, r.agrees())
	t.Logf("%d processes killed, %d entries", *kills, len(want))
}

// agrees checks that the articles are the live entries of the mirror, and returns them.
func (r *reader) agrees() map[string]string {
	r.t.Helper()
	db := openFile(r.t, r.file)
	store, err := sqlstore.Open(r.t.Context(), db, sqlstore.SQLite)
	require.NoError(r.t, err)
	live := map[string]string{}
	for _, e := range feedtest.All(r.t, store.Entries(r.t.Context(), mirror.Query{})) {
		live[e.ID] = e.Content.Title
	}
	articles := map[string]string{}
	rows, err := db.Query("SELECT id, title FROM articles")
	if len(live) == 0 && err != nil {
		return live // killed before the table was made
	}
	require.NoError(r.t, err)
	defer rows.Close()
	for rows.Next() {
		var id, title string
		require.NoError(r.t, rows.Scan(&id, &title))
		articles[id] = title
	}
	require.NoError(r.t, rows.Err())
	require.Equal(r.t, live, articles)
	return articles
}
