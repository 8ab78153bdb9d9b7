package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A polls notes which feeds are polled and when. Each poll takes two seconds.
type polls struct {
	mu    sync.Mutex
	began time.Time
	order []string
	ends  []pollEnd
}

func (p *polls) poll(ctx context.Context, f *mirror.Feed) (*mirror.Report, error) {
	p.mu.Lock()
	p.order = append(p.order, fmt.Sprintf("%s %v", f.URL, time.Since(p.began)))
	p.mu.Unlock()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return nil, errors.New("the database has been interrupted")
	}
	return &mirror.Report{Feed: &mirror.Feed{URL: f.URL, Next: time.Now().Add(time.Hour)}}, nil
}

type pollEnd struct {
	before *mirror.Feed
	report *mirror.Report
	err    error
}

func newPoller(t *testing.T, feeds ...*mirror.Feed) (*mirror.Poller, *polls) {
	store := mirror.NewMemory()
	for _, f := range feeds {
		f.Verdict = feedhistory.VerdictPartial
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
	}
	log := &polls{began: time.Now()}
	return &mirror.Poller{
		Mirror: &mirror.Mirror{Store: store}, Poll: log.poll,
		Polled: func(f *mirror.Feed, r *mirror.Report, err error) { log.ends = append(log.ends, pollEnd{f, r, err}) },
	}, log
}

// A feed in a hurry comes first, and does not wait for its host's pause. Still
// only one feed of a host is polled at a time.
func TestPollerHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := newPoller(t, &mirror.Feed{URL: "http://a/1"}, &mirror.Feed{URL: "http://a/2"}, &mirror.Feed{URL: "http://a/3"}, &mirror.Feed{URL: "http://b/1"})
		p.Parallel = 1
		waiting, err := p.AddAll(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 4, waiting)
		time.AfterFunc(time.Second, func() { p.Hurry(&mirror.Feed{URL: "http://a/3"}) })
		require.NoError(t, p.Drain(t.Context()))
		require.Equal(t, []string{"http://a/1 0s", "http://a/3 2s", "http://b/1 4s", "http://a/2 6s"}, log.order)
		waits, runs := p.Status("http://a/3")
		require.False(t, waits || runs)
	})
}

// A forgotten feed is not polled, and a poll of it ends. Other feeds are not
// affected.
func TestPollerForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := newPoller(t, &mirror.Feed{URL: "http://a/1"}, &mirror.Feed{URL: "http://a/2"}, &mirror.Feed{URL: "http://a/3"})
		_, err := p.AddAll(t.Context(), nil)
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() {
			_, runs := p.Status("http://a/1")
			waits, _ := p.Status("http://a/2")
			require.True(t, runs && waits)
			p.Forget("http://a/1")
			p.Forget("http://a/2")
			p.Forget("http://a/unknown")
		})
		require.NoError(t, p.Drain(t.Context()))
		require.Equal(t, []string{"http://a/1 0s", "http://a/3 2s"}, log.order)
		require.ErrorIs(t, log.ends[0].err, context.Canceled)
		require.NoError(t, log.ends[1].err)
	})
}

// A host that asks to be left alone is left alone for that time, for all its
// feeds.
func TestPollerLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(90 * time.Minute)
		p, log := newPoller(t, &mirror.Feed{URL: "http://a/1", Wait: until, Next: until}, &mirror.Feed{URL: "http://a/2"}, &mirror.Feed{URL: "http://b/1"})
		ctx, cancel := context.WithTimeout(t.Context(), 91*time.Minute)
		defer cancel()
		p.Run(ctx)
		slices.Sort(log.order)
		require.Contains(t, log.order, "http://a/2 1h30m0s")
		require.Contains(t, log.order, "http://b/1 0s")
		for _, end := range log.ends {
			if errors.Is(end.report.Failure, mirror.ErrWaits) {
				require.Equal(t, "http://a/2", end.before.URL)
				require.Equal(t, until, end.report.Feed.Wait)
				return
			}
		}
		require.Fail(t, "nobody says that a/2 waits")
	})
}

// A feed that the store cannot take does not stop the others.
func TestPollerOneIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := newPoller(t, &mirror.Feed{URL: "http://a/1"}, &mirror.Feed{URL: "http://b/1"})
		p.Parallel = 1
		p.Poll = func(ctx context.Context, f *mirror.Feed) (*mirror.Report, error) {
			changes, err := log.poll(ctx, f)
			if f.URL == "http://a/1" {
				return nil, errors.New("too large for this database")
			}
			return changes, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		p.Run(ctx)
		require.GreaterOrEqual(t, len(log.order), 3)
		require.Equal(t, []string{"http://a/1 0s", "http://b/1 2s"}, log.order[:2])
	})
}

// A Poller with only a Mirror polls the feeds that are due.
func ExamplePoller() {
	site := &host{answer: map[string]http.HandlerFunc{aURL: document("", "1", "2")}}
	p := &mirror.Poller{
		Mirror: newMirror(mirror.NewMemory(), site),
		Polled: func(f *mirror.Feed, r *mirror.Report, err error) {
			switch {
			case err != nil:
				fmt.Println("the store:", err)
			case r.Failure != nil:
				fmt.Println("the feed:", feedhistory.Describe(r.Failure))
			default:
				fmt.Printf("%s: %d new, %v\n", f.URL, r.Added, r.Feed.Verdict)
			}
		},
	}
	ctx := context.Background()
	feed := mirror.NewFeed(aURL)
	if err := p.Mirror.Store.Commit(ctx, &mirror.Commit{Feed: feed}); err != nil {
		fmt.Println(err)
	}
	p.Add(feed)
	if err := p.Drain(ctx); err != nil { // or p.Run(ctx), which does not end
		fmt.Println(err)
	}
	// Output: http://a.example/feed: 2 new, window
}

// Eight hosts answer slowly, with chains that have no end. A feed of another host is polled
// nevertheless, and the chains are read on from where each poll has ended.
func TestSlowHostsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var honest atomic.Int64
		var deepest sync.Map
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "honest.example" {
				honest.Add(1)
				document("", "1")(w, r)
				return
			}
			time.Sleep(15 * time.Second)
			n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
			deepest.Store(r.Host, n)
			document(prev(fmt.Sprint("/", n+1)), fmt.Sprint(n))(w, r)
		})
		store := mirror.NewMemory()
		for n := range 8 {
			require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: mirror.NewFeed(fmt.Sprintf("http://slow%d.example/", n))}))
		}
		p := &mirror.Poller{Mirror: newMirror(store, h)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() {
			time.Sleep(time.Minute)
			require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: mirror.NewFeed("http://honest.example/")}))
		}()
		p.Run(ctx)
		require.Positive(t, honest.Load())
		for n := range 8 {
			at, _ := deepest.Load(fmt.Sprintf("slow%d.example", n))
			require.Greater(t, at, 100)
		}
	})
}
