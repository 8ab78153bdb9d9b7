package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish/s3"
	"github.com/stretchr/testify/require"
)

// A testWeb answers requests in virtual time, each after two seconds, and notes
// when they came.
type testWeb struct {
	mu       sync.Mutex
	asked    []request
	inFlight map[string]int // by host
	most     int            // hosts at the same time
	indexed  int            // times that the store was
	status   map[string]int // by URL; others are answered with a feed
	body     map[string]string
}

type request struct {
	url string
	at  time.Time
}

func (w *testWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	w.mu.Lock()
	w.asked = append(w.asked, request{url, time.Now()})
	w.inFlight[r.URL.Hostname()]++
	busy := 0
	for _, n := range w.inFlight {
		busy += n
		if n > 1 {
			w.most = 1000
		}
	}
	w.most = max(w.most, busy)
	status := cmp.Or(w.status[url], http.StatusOK)
	body := cmp.Or(w.body[url], `<rss version="2.0"><channel><title>Feed</title><item><guid>`+url+`</guid></item></channel></rss>`)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.inFlight[r.URL.Hostname()]--
		w.mu.Unlock()
	}()
	select {
	case <-time.After(2 * time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r, StatusCode: status,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// times returns when a URL was asked for, since the test began.
func (w *testWeb) times(url string, began time.Time) (times []time.Duration) {
	for _, r := range w.asked {
		if r.url == url {
			times = append(times, r.at.Sub(began))
		}
	}
	return times
}

// newTestSync returns a sync over a web, and what it writes to stderr.
func newTestSync(store mirror.Store, every bool, feeds ...string) (*database.Sync, *testWeb, *bytes.Buffer) {
	web := &testWeb{inFlight: map[string]int{}, status: map[string]int{}}
	var stderr bytes.Buffer
	c := &syncCommand{Polling: database.Polling{Interval: time.Hour, Parallel: 8}, Every: every}
	c.DB = "feeds.db"
	s := c.newSyncing(&command.World{Globals: &command.Globals{}, NetworkFlags: &command.NetworkFlags{}, Stdout: &stderr, Voice: terminal.Voice{Stderr: &stderr, Silent: new(bool)}}, &indexedStore{store, web})
	s.Poller.Mirror.Client = &feedhistory.Client{AllowPrivate: true, Transport: web}
	sound := store
	if faulty, ok := store.(*faultyStore); ok {
		sound = faulty.Store
	}
	for _, feed := range feeds {
		if err := sound.Commit(context.Background(), &mirror.Commit{Feed: mirror.NewFeed(feed)}); err != nil && !errors.Is(err, mirror.ErrConflict) {
			panic(err)
		}
	}
	for _, feed := range feeds {
		s.Poller.Add(&mirror.Feed{URL: feed})
	}
	return s, web, &stderr
}

// An indexedStore counts how often it is indexed.
type indexedStore struct {
	mirror.Store
	web *testWeb
}

func (s *indexedStore) Index(context.Context) error {
	s.web.indexed++
	return nil
}

func exitStatus(err error) int {
	var status terminal.StatusError
	errors.As(err, &status)
	return int(status)
}

// Feeds of one host are polled one at a time and a second apart, feeds of different hosts
// at the same time.
func TestSyncIsPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, web, stderr := newTestSync(mirror.NewMemory(), false,
			"http://a.example/1", "http://a.example/2", "http://A.example:80/3", "http://b.example/1", "http://b.example/2")
		require.NoError(t, s.Run(t.Context()))
		require.NoError(t, s.Report.Status())
		s.Report.End(0)
		require.Equal(t, 2, web.most)
		require.Equal(t, []time.Duration{0}, web.times("http://a.example/1", began))
		require.Equal(t, []time.Duration{3 * time.Second}, web.times("http://b.example/2", began))
		require.Len(t, web.asked, 5)
		require.Equal(t, 8*time.Second, time.Since(began))
		require.Equal(t, 1, web.indexed)
		require.Contains(t, stderr.String(), "http://a.example/1: 1 new · window\n")
		require.Contains(t, stderr.String(), "5 polls · 5 new\n")
	})
}

func TestSyncInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, web, _ := newTestSync(mirror.NewMemory(), false,
			"http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/", "http://e.example/")
		s.Poller.Parallel = 2
		require.NoError(t, s.Run(t.Context()))
		require.Equal(t, 2, web.most)
		require.Equal(t, 6*time.Second, time.Since(began))
	})
}

// With --every, each feed is polled when it is due, including feeds that another process
// adds, and feeds whose poll failed.
func TestSyncEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		store := mirror.NewMemory()
		s, web, stderr := newTestSync(store, true, "http://a.example/")
		web.status["http://c.example/"] = http.StatusNotFound
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer cancel()
		time.AfterFunc(90*time.Minute, func() {
			for _, url := range []string{"http://b.example/", "http://c.example/"} {
				feed := &mirror.Feed{URL: url, Verdict: feedhistory.VerdictPartial}
				require.NoError(t, store.Commit(ctx, &mirror.Commit{Feed: feed}))
			}
		})
		require.NoError(t, s.Run(ctx))
		require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour, 3 * time.Hour},
			rounded(web.times("http://a.example/", began)))
		added := web.times("http://b.example/", began)
		require.Len(t, added, 2)
		require.LessOrEqual(t, added[0], 91*time.Minute)
		require.Len(t, web.times("http://c.example/", began), 2)
		require.Equal(t, 2, web.indexed, "after each poll with something new")
		require.Equal(t, 1, strings.Count(stderr.String(), "http://a.example/"), "nothing new is not told")
		require.Contains(t, stderr.String(), "c.example/: 404 Not Found; check the address")
		require.Equal(t, terminal.ExitFailed, exitStatus(s.Report.Status()))

		web.status = map[string]int{} // the last poll of each feed counts
		ctx, cancel = context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.NoError(t, s.Report.Status())
	})
}

// rounded leaves out the time by which a look at the store may be late.
func rounded(times []time.Duration) (out []time.Duration) {
	for _, t := range times {
		out = append(out, t.Truncate(time.Minute))
	}
	return out
}

// An interrupt ends the polls that are under way, and nothing is lost.
func TestSyncInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, web, stderr := newTestSync(mirror.NewMemory(), false, "http://a.example/1", "http://a.example/2", "http://a.example/3")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		s.Report.End(s.Poller.Waiting())
		require.Len(t, web.asked, 2)
		require.Contains(t, stderr.String(), "a.example/2: nothing new · partial · interrupted; the next sync continues there\n")
		require.Contains(t, stderr.String(), "1 feed was not polled")
		require.Equal(t, terminal.ExitPartial, exitStatus(s.Report.Status()))
	})
}

// A faultyStore fails with an error, until a time.
type faultyStore struct {
	mirror.Store
	err   error
	until time.Time
}

func (s *faultyStore) Commit(ctx context.Context, c *mirror.Commit) error {
	if time.Now().Before(s.until) {
		return s.err
	}
	return s.Store.Commit(ctx, c)
}

// A store that fails ends a sync, but not one with --every, which continues when the store
// works again.
func TestSyncStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		s, web, _ := newTestSync(&faultyStore{mirror.NewMemory(), full, time.Now().Add(time.Hour)}, false, "http://a.example/", "http://a.example/2")
		require.ErrorIs(t, s.Run(t.Context()), full)
		require.Len(t, web.asked, 1)

		store := &faultyStore{Store: mirror.NewMemory(), err: full}
		feed := &mirror.Feed{URL: "http://a.example/", Verdict: feedhistory.VerdictPartial}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
		store.until = time.Now().Add(10 * time.Minute)
		s, web, stderr := newTestSync(store, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.InDelta(t, 11, len(web.asked), 1, "it tries again every minute")
		require.Contains(t, stderr.String(), "http://a.example/: no space left")
		require.Contains(t, stderr.String(), "http://a.example/: 1 new · window")
		require.NoError(t, s.Report.Status())
	})
}

// With --every, a poll that has spent its budget is followed by another after some
// minutes, until the history has been read; then the feed is polled when it is due.
func TestSyncEveryWithBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, web, _ := newTestSync(mirror.NewMemory(), true, "http://a.example/4")
		web.body = map[string]string{}
		for n := range 5 {
			web.body[fmt.Sprint("http://a.example/", n)] = fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom">`+
				`<link rel="prev-archive" href="/%d"/><entry><id>urn:%d</id></entry></feed>`, n-1, n)
		}
		web.body["http://a.example/0"] = strings.ReplaceAll(web.body["http://a.example/0"], "prev-archive", "alternate")
		s.Poller.Mirror.Client.Budget.Documents = 2
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.Equal(t, []time.Duration{0, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 75 * time.Minute},
			rounded(web.times("http://a.example/4", began)))
		for n := range 4 {
			require.Len(t, web.times(fmt.Sprint("http://a.example/", n), began), 1)
		}
	})
}

// If another mirror seems to poll a feed, sync leaves the feed to it for a minute.
func TestSyncEveryGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, store := time.Now(), mirror.NewMemory()
		feed := &mirror.Feed{URL: "http://a.example/", Verdict: feedhistory.VerdictPartial, Unfinished: true, Next: began}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
		s, web, _ := newTestSync(store, true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.Equal(t, []time.Duration{time.Minute}, rounded(web.times("http://a.example/", began)))
	})
}

// A feed that was polled by a clock that was wrong is due, and so is one whose
// substitute is gone.
func TestSyncEveryScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, now := mirror.NewMemory(), time.Now()
		for _, feed := range []*mirror.Feed{
			{URL: "http://a.example/", Polled: now.AddDate(1, 0, 0), Next: now.AddDate(1, 0, 1)},
			{URL: "http://b.example/", Alias: "http://removed.example/"},
			{URL: "http://c.example/", Alias: "http://a.example/"},
			{URL: "http://d.example/", Gone: true},
		} {
			require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
		}
		s, web, _ := newTestSync(store, true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.Len(t, web.asked, 2)
		require.Len(t, web.times("http://a.example/", now), 1)
		require.Len(t, web.times("http://b.example/", now), 1)
	})
}

// The report says that another mirror polls a feed, which is not a failure.
func TestSyncBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, stderr := newTestSync(&faultyStore{mirror.NewMemory(), mirror.ErrConflict, time.Now().Add(time.Hour)}, false, "http://a.example/")
		require.NoError(t, s.Run(t.Context()))
		require.Contains(t, stderr.String(), "http://a.example/: another process is polling it")
		require.NoError(t, s.Report.Status())
	})
}

// A feed that is removed while it waits for its poll stays removed.
func TestSyncRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mirror.NewMemory()
		s, web, stderr := newTestSync(store, false, "http://a.example/")
		require.NoError(t, store.Remove(t.Context(), "http://a.example/"))
		require.NoError(t, s.Run(t.Context()))
		s.Report.End(0)
		require.Empty(t, web.asked)
		require.Contains(t, stderr.String(), "http://a.example/: removed from the mirror meanwhile")
		require.NoError(t, s.Report.Status())
	})
}

// blog is a WordPress blog of 35 posts, ten a page, behind a cache that leaves
// all parameters but paged out. An archive has one snapshot of /old.rss.
func blog(t *testing.T) string {
	var url string
	mux := http.NewServeMux()
	mux.HandleFunc("/feed/", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("paged"))
		newest := 35 - 10*(max(page, 1)-1)
		if newest <= 0 {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<rss version="2.0"><channel><title>A blog</title><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>https://wordpress.org/?v=6.7</generator>`)
		for id := newest; id > max(newest-10, 0); id-- {
			fmt.Fprintf(w, "<item><guid>urn:%d</guid><title>Post %d</title></item>", id, id)
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
	mux.HandleFunc("/old.rss", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss><channel><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>by hand</generator><item><guid>urn:3</guid></item><item><guid>urn:2</guid></item></channel></rss>`)
	})
	mux.HandleFunc("/timemap/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<%s/old.rss>; rel="original", <%s/snapshot>; rel="first last memento"; datetime="Tue, 20 Jun 2000 18:02:59 GMT"`, url, url)
	})
	mux.HandleFunc("/snapshot", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss><channel><item><guid>urn:2</guid></item><item><guid>urn:1</guid></item></channel></rss>`)
	})
	server := feedtest.Server(t, mux)
	url = server.URL
	return url
}

func TestFetchBackfill(t *testing.T) {
	url := blog(t)
	for _, test := range []struct {
		name    string
		args    []string
		entries int
		status  int
		stdout  []string // of --format json
		stderr  string
	}{
		{"not asked for", []string{url + "/feed/"}, 10, terminal.ExitOK,
			[]string{`"verdict":"window"`}, "verdict: window. These are the feed's latest entries; it does not say whether"},
		{"WordPress", []string{"--backfill", url + "/feed/"}, 35, terminal.ExitOK,
			[]string{`"kind":"plain"`, `"verdict":"lossy"`, `"recovered_by":"wordpress"`}, "verdict: lossy. Recovered by wordpress"},
		{"nothing", []string{"--backfill", url + "/old.rss"}, 2, terminal.ExitOK,
			[]string{`"verdict":"window"`}, "No method found any: most entries have no page on its site. feedhistory: a web archive may have older entries; to ask one: feedhistory fetch --backfill-archive wayback " + url + "/old.rss"},
		{"an archive", []string{"--backfill-archive", url + "/timemap/", url + "/old.rss"}, 3, terminal.ExitOK,
			[]string{`"verdict":"lossy"`, `"recovered_by":"memento"`}, "Recovered by memento"},
		{"too much", []string{"--backfill", "--max-documents", "3", url + "/feed/"}, 30, terminal.ExitPartial,
			[]string{`"verdict":"partial"`, `"recovered_by":"wordpress"`, `"reason":"budget"`}, "verdict: partial. Recovered by wordpress."},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"fetch", "--allow-private"}, test.args...)
			status, stdout, stderr := call(t.Context(), "", append(args, "--format", "json")...)
			if status != test.status {
				t.Errorf("status %d: %s", status, stderr)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("%s is missing in %s", want, stdout)
				}
			}
			if text := strings.Join(strings.Fields(stderr), " "); !strings.Contains(text, test.stderr) {
				t.Errorf("%q is missing in %q", test.stderr, text)
			}
			var history struct{ Entries []any }
			if err := json.Unmarshal([]byte(stdout), &history); err != nil || len(history.Entries) != test.entries {
				t.Errorf("%d entries, want %d: %v", len(history.Entries), test.entries, err)
			}
			if test.name == "an archive" {
				return // one second between requests
			}
			_, stdout, _ = call(t.Context(), "", append(args, "--format", "atom")...)
			doc, err := feedhistory.Parse(strings.NewReader(stdout), "")
			if err != nil || doc.Complete || len(doc.Entries) < test.entries {
				t.Errorf("%v: complete %v, %d entries", err, doc.Complete, len(doc.Entries))
			}
		})
	}
}

// No web archive is asked about a private feed: neither when it is added, nor later, nor
// with credentials.
func TestArchivesAreNotAskedAboutPrivateFeeds(t *testing.T) {
	asked := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the archive is asked for %s", r.URL)
	}))
	feed := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>T</title><generator>by hand</generator><item><guid>urn:1</guid></item></channel></rss>`)
	}))
	url, db := feed.URL+"/feed.rss?token=s3cret", "--db="+t.TempDir()+"/feeds.db"
	for _, args := range [][]string{
		{"sync", db, "--private", url},
		{"sync", db, url},
		{"sync", db, "--all"},
		{"sync", db, "--header", "X-Key: k3y", feed.URL + "/other.rss"},
		{"sync", db, "--all"},
		{"fetch", "--header", "X-Key: k3y", url},
	} {
		status, stdout, stderr := call(t.Context(), "", append(args, "--allow-private", "--backfill-archive", asked.URL+"/timemap/")...)
		if status != terminal.ExitOK {
			t.Errorf("%q: %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

// A sync recovers entries that a feed does not declare only once, and says how.
func TestSyncBackfill(t *testing.T) {
	url := blog(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	for _, test := range []struct{ stdout, stderr string }{
		{`"verdict":"lossy","added":35,`, "35 new · lossy"},
		{`"verdict":"lossy","added":0,`, "nothing new · lossy"},
	} {
		status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json", url)
		if status != terminal.ExitOK || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
		}
	}
	status, stdout, _ := call(t.Context(), "", "list", db, url)
	if status != terminal.ExitOK || !strings.Contains(stdout, "source    wordpress") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// counted is a WordPress blog of 25 posts, ten a page, whose API counts them.
func counted(t *testing.T) string {
	var url string
	mux := http.NewServeMux()
	mux.HandleFunc("/feed/", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("paged"))
		w.Header().Set("Link", "<"+url+`/wp-json/>; rel="https://api.w.org/"`)
		fmt.Fprint(w, `<rss version="2.0"><channel><title>A blog</title><lastBuildDate>Tue, 20 Jun 2000 18:02:59 GMT</lastBuildDate><generator>https://wordpress.org/?v=6.7</generator>`)
		for i := 10 * (max(page, 1) - 1); i < min(10*max(page, 1), 25); i++ {
			id := 25 - i
			if r.URL.Query().Get("order") == "ASC" {
				id = i + 1
			}
			fmt.Fprintf(w, "<item><guid>urn:%d</guid><title>Post %d</title></item>", id, id)
		}
		fmt.Fprint(w, `</channel></rss>`)
	})
	mux.HandleFunc("/wp-json/wp/v2/posts", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-WP-Total", "25")
		var posts []string
		for id := 1; id <= 25; id++ {
			posts = append(posts, fmt.Sprintf(`{"id":%d,"guid":{"rendered":"urn:%d"},"modified":"2026-01-01T00:00:%02d"}`, id, id, id))
		}
		fmt.Fprintf(w, "[%s]", strings.Join(posts, ","))
	})
	server := feedtest.Server(t, mux)
	url = server.URL
	return url
}

// A whole that a server's count says is one as of that count, wherever it is
// shown.
func TestSyncAsOf(t *testing.T) {
	url := counted(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json", url)
	if status != terminal.ExitOK || !strings.Contains(stdout, `"verdict":"whole","as_of":"20`) || !strings.Contains(stderr, "25 new · whole as of 20") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"all entries the server counted on 20": {"list", db, url},
		`"as_of":"20`:                          {"list", db, "--json"},
	} {
		status, stdout, _ := call(t.Context(), "", args...)
		if status != terminal.ExitOK || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("status %d\n%s", status, stdout)
		}
	}
}

// A history that a budget has cut short is partial, and the next sync continues.
func TestSyncBackfillGoesOn(t *testing.T) {
	url := counted(t) + "/feed/"
	db := "--db=" + t.TempDir() + "/feeds.db"
	status, stdout, stderr := call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--max-documents=2", "--json", url)
	if status != terminal.ExitPartial || !strings.Contains(stdout, `"verdict":"partial"`) || !strings.Contains(stderr, "the budget is spent; the next sync continues there") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	status, stdout, stderr = call(t.Context(), "", "sync", db, "--allow-private", "--backfill", "--json") // though it is not due
	if status != terminal.ExitOK || !strings.Contains(stdout, `"verdict":"whole"`) {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// A lost lease is reported once, on one line.
func TestLostLeaseInWords(t *testing.T) {
	lost := &s3.Error{Op: "put", Bucket: "b", Key: ".lock", Err: s3.ErrLost}
	err := (&publishCommand{Out: "s3://b/x"}).failure(errors.Join(lost, lost))
	require.ErrorContains(t, err, "s3://b/x: the lock was lost, because")
	require.NotContains(t, err.Error(), "\n")
}

// A file of cookies as curl and yt-dlp write it opens a feed, and only its own host gets
// the cookies that are for it.
func TestCookieFile(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "session=s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>urn:1</id></entry></feed>`)
	}))
	file := filepath.Join(t.TempDir(), "cookies.txt")
	require.NoError(t, os.WriteFile(file, []byte("# Netscape HTTP Cookie File\n\n#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ts3cret\n"+
		".example.org\tTRUE\t/\tFALSE\t0\tother\tx\n127.0.0.1\tFALSE\t/\tFALSE\t1\told\tx\n"), 0o600))
	status, _, _ := call(t.Context(), "", "fetch", "--allow-private", server.URL)
	require.Equal(t, terminal.ExitFailed, status)
	status, stdout, stderr := call(t.Context(), "", "fetch", "--allow-private", "--cookies", file, "-v", server.URL)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "urn:1")
	require.NotContains(t, stdout+stderr, "s3cret")
}

// A document beyond a limit is described in plain words.
func TestLimitsInWords(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for want, inside := range map[string]string{
		"elements are nested more than 256 deep":            ">" + many(300, "<a b='%d'>") + strings.Repeat("</a>", 300),
		"an element has more than 256 attributes":           many(300, " a%d=''") + ">",
		"more than 256 namespace declarations are in scope": "><x " + many(200, " xmlns:a%[1]d='urn:%[1]d'") + "><y " + many(200, " xmlns:b%[1]d='urn:%[1]d'") + "/></x>",
		"the document has more than 1000000 elements":       ">" + many(1_000_001, "<a%.0d/>"),
		"more than 50000 entries":                           ">" + many(50_001, "<entry><id>urn:%d</id></entry>"),
	} {
		status, _, stderr := call(t.Context(), `<feed xmlns="http://www.w3.org/2005/Atom" `+inside+"</feed>", "inspect", "-")
		require.Equal(t, terminal.ExitFailed, status, want)
		require.Contains(t, said(stderr), "limit: "+want)
	}
}

// A podcast whose host signs the addresses of episodes again at each poll: over four days no
// entry has changed, none has an earlier version, and the newest addresses are those given out.
func TestResignedEpisodes(t *testing.T) {
	feedtest.Long(t)
	var day atomic.Int64
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		today := fmt.Sprintf("token-time=%d&amp;token-hash=hash%d", 1_700_000_000+day.Load()*86400, day.Load())
		_, _ = fmt.Fprint(w, `<rss version="2.0"><channel><title>Pod</title>`)
		for n := 2 + day.Load(); n > 0; n-- { // a new episode each day
			_, _ = fmt.Fprintf(w, `<item><guid isPermaLink="false">%d</guid><title>Episode %d</title><pubDate>%s</pubDate><enclosure url="/%d/1.mp3?%s" length="9" type="audio/mpeg"/></item>`,
				n, n, time.Date(2003, 12, int(n), 0, 0, 0, 0, time.UTC).Format(time.RFC1123Z), n, today)
		}
		_, _ = fmt.Fprint(w, `</channel></rss>`)
	}))
	db := filepath.Join(t.TempDir(), "feeds.db")
	for range 4 {
		added := 1
		if day.Add(1) == 1 {
			added = 3
		}
		status, stdout, stderr := call(t.Context(), "", "sync", "--db", db, "--allow-private", "--json", server.URL+"/pod.rss")
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, fmt.Sprintf(`"added":%d,"changed":0,`, added))
	}
	_, stdout, _ := call(t.Context(), "", "entries", "--db", db, "--enclosures")
	require.Equal(t, 6, strings.Count(stdout, "hash4"), stdout)
	require.Empty(t, contentsOf(t, db).Versions)
}
