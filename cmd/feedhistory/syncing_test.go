package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/syncing"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
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
func newTestSync(store mirror.Store, every bool, feeds ...string) (*syncing.Sync, *testWeb, *bytes.Buffer) {
	web := &testWeb{inFlight: map[string]int{}, status: map[string]int{}}
	var stderr bytes.Buffer
	c := &syncCommand{Polling: syncing.Polling{Interval: time.Hour, Parallel: 8}, Every: every}
	c.DB = "feeds.db"
	s := c.newSyncing(&command.World{Globals: &command.Globals{}, Flags: &network.Flags{}, Stdout: &stderr, Voice: terminal.Voice{Stderr: &stderr, Silent: new(bool)}}, &indexedStore{store, web})
	s.Poller.Mirror.Client = &feedhistory.Client{Transport: web}
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
	var status exit.StatusError
	errors.As(err, &status)
	return int(status)
}

// Feeds of one host are polled one at a time and a second apart, feeds of different hosts
// at the same time.
func TestSyncIsPolite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, web, stderr := newTestSync(&mirror.Memory{}, false,
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
		s, web, _ := newTestSync(&mirror.Memory{}, false,
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
		store := &mirror.Memory{}
		s, web, stderr := newTestSync(store, true, "http://a.example/")
		web.status["http://c.example/"] = http.StatusNotFound
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer cancel()
		time.AfterFunc(90*time.Minute, func() {
			for _, url := range []string{"http://b.example/", "http://c.example/"} {
				feed := &mirror.Feed{URL: url, Verdict: feedhistory.Partial}
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
		require.Equal(t, exit.Failed, exitStatus(s.Report.Status()))

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
		s, web, stderr := newTestSync(&mirror.Memory{}, false, "http://a.example/1", "http://a.example/2", "http://a.example/3")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		s.Report.End(s.Poller.Waiting())
		require.Len(t, web.asked, 2)
		require.Contains(t, stderr.String(), "a.example/2: nothing new · partial · interrupted; the next sync continues there\n")
		require.Contains(t, stderr.String(), "1 feed was not polled")
		require.Equal(t, exit.Partial, exitStatus(s.Report.Status()))
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
		s, web, _ := newTestSync(&faultyStore{&mirror.Memory{}, full, time.Now().Add(time.Hour)}, false, "http://a.example/", "http://a.example/2")
		require.ErrorIs(t, s.Run(t.Context()), full)
		require.Len(t, web.asked, 1)

		store := &faultyStore{Store: &mirror.Memory{}, err: full}
		feed := &mirror.Feed{URL: "http://a.example/", Verdict: feedhistory.Partial}
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
		s, web, _ := newTestSync(&mirror.Memory{}, true, "http://a.example/4")
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
		began, store := time.Now(), &mirror.Memory{}
		feed := &mirror.Feed{URL: "http://a.example/", Verdict: feedhistory.Partial, Unfinished: true, Next: began}
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
		store, now := &mirror.Memory{}, time.Now()
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
		s, _, stderr := newTestSync(&faultyStore{&mirror.Memory{}, mirror.ErrConflict, time.Now().Add(time.Hour)}, false, "http://a.example/")
		require.NoError(t, s.Run(t.Context()))
		require.Contains(t, stderr.String(), "http://a.example/: another process is polling it")
		require.NoError(t, s.Report.Status())
	})
}

// A feed that is removed while it waits for its poll stays removed.
func TestSyncRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mirror.Memory{}
		s, web, stderr := newTestSync(store, false, "http://a.example/")
		require.NoError(t, store.Remove(t.Context(), "http://a.example/"))
		require.NoError(t, s.Run(t.Context()))
		s.Report.End(0)
		require.Empty(t, web.asked)
		require.Contains(t, stderr.String(), "http://a.example/: removed from the mirror meanwhile")
		require.NoError(t, s.Report.Status())
	})
}
