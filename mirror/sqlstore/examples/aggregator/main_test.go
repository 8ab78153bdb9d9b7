package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
	return &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true, PerHost: 1}, Retry: feedhistory.Retry{Tries: 1}}
}

// A reader is an aggregator with one feed.
type reader struct {
	*website
	t   *testing.T
	url string
	db  *sql.DB
}

func read(t *testing.T, files map[string]string) *reader {
	site := &website{files: files}
	server := feedtest.Server(t, site)
	return &reader{site, t, server.URL, openFile(t, filepath.Join(t.TempDir(), "feeds.db"))}
}

func openFile(t *testing.T, name string) *sql.DB {
	db, err := open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// update updates the feed, and returns the verdict and the answers.
func (r *reader) update() (feedhistory.Verdict, []string) {
	r.t.Helper()
	client := newClient()
	defer client.CloseIdle()
	r.answers()
	history, err := update(r.t.Context(), r.db, client, r.url+"/feed")
	require.NoError(r.t, err)
	return history.Verdict(), r.answers()
}

// titles returns the titles of the stored entries, ordered by id.
func (r *reader) titles() string {
	r.t.Helper()
	var titles string
	require.NoError(r.t, r.db.QueryRow(`SELECT coalesce(group_concat(title, ' '), '') FROM
		(SELECT title FROM entries WHERE NOT deleted ORDER BY id)`).Scan(&titles))
	return titles
}

func (r *reader) expect(verdict feedhistory.Verdict, titles string, answers ...string) {
	r.t.Helper()
	got, log := r.update()
	require.Equal(r.t, verdict, got)
	require.Equal(r.t, titles, r.titles())
	if answers != nil {
		require.Equal(r.t, answers, log)
	}
}

func TestUnchanged(t *testing.T) {
	r := read(t, archived())
	r.expect(feedhistory.Whole, "One Two Three Four", "200 /feed", "200 /3", "200 /2", "200 /1")
	r.expect(feedhistory.Whole, "One Two Three Four", "304 /feed")
	r.set("/feed", feed("prev-archive=/4", "5@05=Five"))
	r.set("/4", feed("prev-archive=/3", "4@04=Four"))
	r.expect(feedhistory.Whole, "One Two Three Four Five", "200 /feed", "200 /4")
	r.expect(feedhistory.Whole, "One Two Three Four Five", "304 /feed")
	var out strings.Builder
	require.NoError(t, list(t.Context(), &out, r.db))
	require.True(t, strings.HasPrefix(out.String(), "2003-12-05 Five\n2003-12-04 Four\n"), out.String())
}

// If the process is killed at any request, the next run reads the rest.
func TestKilled(t *testing.T) {
	if name := os.Getenv("AGGREGATOR_DATABASE"); name != "" {
		_, err := update(context.Background(), openFile(t, name), newClient(), os.Getenv("AGGREGATOR_FEED"))
		require.NoError(t, err)
		return
	}
	for n := 2; n <= 4; n++ {
		r := read(t, archived())
		name := filepath.Join(t.TempDir(), "killed.db")
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "AGGREGATOR_DATABASE="+name, "AGGREGATOR_FEED="+r.url+"/feed")
		r.Lock()
		r.before = func(requests int) {
			if requests == n {
				_ = cmd.Process.Kill()
			}
		}
		err := cmd.Start()
		r.Unlock()
		require.NoError(t, err)
		require.Error(t, cmd.Wait(), "killed")
		r.Lock()
		r.before = nil
		r.Unlock()
		r.db = openFile(t, name)
		_, log := r.update()
		require.NotContains(t, log[1:], "200 /feed")
		require.Equal(t, "One Two Three Four", r.titles(), "killed at request %d", n)
		r.expect(feedhistory.Whole, "One Two Three Four", "304 /feed")
	}
}

func TestGap(t *testing.T) {
	r := read(t, archived())
	two := r.files["/2"]
	delete(r.files, "/2")
	r.expect(feedhistory.Partial, "Three Four")
	r.expect(feedhistory.Partial, "Three Four")
	r.set("/2", two)
	r.expect(feedhistory.Whole, "One Two Three Four", "304 /feed", "200 /2", "200 /1")
	r.expect(feedhistory.Whole, "One Two Three Four", "304 /feed")
}

// Every update reports what the feed lacks, not only the one that finds it.
func TestStaysPartial(t *testing.T) {
	const forGood = true // processed documents are not requested again, nor are links forgotten
	for name, test := range map[string]struct {
		path, body, titles string
		forGood            bool
	}{
		"a document is damaged":        {"/1", feed("next-archive=/2", "broken", "1@01=One"), "One Two Three Four", !forGood},
		"a document breaks off":        {"/1", strings.TrimSuffix(feed("next-archive=/2", "1@01=One"), "</feed>"), "One Two Three Four", !forGood},
		"a link cannot be used":        {"/2", feed("prev-archive=/"+strings.Repeat("1", 9000), "2@02=Two"), "Two Three Four", !forGood},
		"a link must not be used":      {"/2", feed("prev-archive=ftp://example.org/1", "2@02=Two"), "Two Three Four", forGood},
		"the chain loops":              {"/1", feed("prev-archive=/3", "1@01=One"), "One Two Three Four", forGood},
		"the newest is damaged":        {"/feed", feed("next-archive=/5", "broken", "4@04=Four"), "Four", !forGood},
		"the link leads to a web page": {"/1", "<html><body>Hello</body></html>", "Two Three Four", !forGood},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, archived())
			whole := r.files[test.path]
			r.set(test.path, test.body)
			r.expect(feedhistory.Partial, test.titles)
			for range 3 {
				verdict, log := r.update()
				require.Equal(t, feedhistory.Partial, verdict)
				require.Equal(t, test.titles, r.titles())
				require.LessOrEqual(t, len(log), 2, "%v", log)
			}
			r.set(test.path, whole)
			if test.forGood {
				r.expect(feedhistory.Partial, test.titles)
				return
			}
			r.expect(feedhistory.Whole, "One Two Three Four")
			r.expect(feedhistory.Whole, "One Two Three Four", "304 /feed")
		})
	}
}

// A correction counts, whatever documents have the copies; a deletion stays.
func TestEdit(t *testing.T) {
	r := read(t, archived())
	r.set("/feed", feed("prev-archive=/3", "4@04=Four", "1@09=Uno"))
	r.expect(feedhistory.Whole, "Uno Two Three Four")
	r.set("/feed", feed("prev-archive=/4", "-2@10", "3@03=Drei"))
	r.set("/4", feed("prev-archive=/3", "4@04=Four", "1@09=Uno"))
	r.expect(feedhistory.Whole, "Uno Drei Four")
	r.set("/feed", feed("prev-archive=/4", "2@11=Due"))
	r.expect(feedhistory.Whole, "Uno Due Drei Four", "200 /feed")
}

func TestComplete(t *testing.T) {
	r := read(t, map[string]string{"/feed": feed("complete", "1@01=One", "2@02=Two")})
	r.expect(feedhistory.Whole, "One Two")
	r.set("/feed", feed("complete", "2@02=Two"))
	r.expect(feedhistory.Whole, "Two")
	r.expect(feedhistory.Whole, "Two", "304 /feed")
}

// The pages of a paged feed are read until one has nothing new, unless an
// earlier walk was cut short: older entries may have moved to a later page
// since.
func TestPages(t *testing.T) {
	r := read(t, map[string]string{
		"/feed":   feed("next=/feed?2", "5@05=Five"),
		"/feed?2": feed("next=/feed?3", "previous=/feed", "4@04=Four"),
		"/feed?3": feed("previous=/feed?2", "3@03=Three"),
	})
	missing := r.files["/feed?3"]
	delete(r.files, "/feed?3")
	r.expect(feedhistory.Partial, "Four Five")
	r.set("/feed", feed("next=/feed?2", "6@06=Six"))
	r.set("/feed?2", feed("next=/feed?3", "previous=/feed", "5@05=Five"))
	r.set("/feed?3", feed("next=/feed?4", "previous=/feed?2", "4@04=Four"))
	r.set("/feed?4", missing)
	r.expect(feedhistory.Lossy, "Three Four Five Six", "200 /feed", "200 /feed?2", "200 /feed?3", "200 /feed?4")
	r.expect(feedhistory.Lossy, "Three Four Five Six", "304 /feed")
	r.set("/feed", feed("next=/feed?2", "7@07=Seven", "6@06=Six"))
	r.expect(feedhistory.Lossy, "Three Four Five Six Seven", "200 /feed", "200 /feed?2")
	r.expect(feedhistory.Lossy, "Three Four Five Six Seven", "304 /feed")
}
