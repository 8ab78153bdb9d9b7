package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A slow store takes long for some commits, which the bits of a number select:
// until all other goroutines wait. After each commit it checks that the feed's
// state and the stored records agree.
type slow struct {
	mirror.Store
	t       testing.TB
	story   fmt.Stringer
	bits    uint64
	commits int
	fail    int // the number of the commit that fails; zero means none
}

var errDisk = errors.New("the disk is on fire")

func (s *slow) Commit(ctx context.Context, c *mirror.Commit) error {
	s.commits++
	if s.bits>>(s.commits%64)&1 == 1 {
		time.Sleep(time.Nanosecond)
	}
	if s.commits == s.fail {
		return errDisk
	}
	err := s.Store.Commit(ctx, c)
	if err == nil {
		s.check(context.WithoutCancel(ctx), c.Feed.URL)
	}
	return err
}

func (s *slow) check(ctx context.Context, url string) {
	f, err := s.Feed(ctx, url)
	if err != nil {
		s.t.Error(err, s.story)
		return
	}
	var got, size [3]int64
	for r, err := range s.Entries(ctx, mirror.Query{Feed: url, States: mirror.Current | mirror.Former}) {
		if err != nil {
			s.t.Error(err, s.story)
		}
		if size[0] += r.Content.Size; r.State == mirror.Live {
			got[0]++
		} else {
			got[1]++
		}
	}
	for range s.Documents(ctx, url) {
		got[2]++
	}
	if want := [3]int64{f.Entries, f.Deleted, f.Documents}; got != want || size[0] > usageOf(s.t, f).Contents {
		s.t.Errorf("version %d has %v, and says %v: %v", f.Commits, got, want, s.story)
	}
}

// chainFeed serves a chain of archives with two entries each. Every seventh
// archive's entries are also in the one before it.
func chainFeed(archives int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := archives + 1
		if r.URL.Path != "/feed" {
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		}
		_, _ = fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom">`)
		if n > 1 {
			_, _ = fmt.Fprintf(w, `<link rel="prev-archive" href="/%d"/>`, n-1)
		}
		for _, m := range map[bool][]int{false: {2 * n, 2*n + 1}, true: {2 * n, 2*n + 1, 2*n + 2}}[n%7 == 0] {
			_, _ = fmt.Fprintf(w, `<entry><id>urn:%d</id><title>%d</title><updated>2024-01-01T00:00:00Z</updated></entry>`, m, m)
		}
		_, _ = fmt.Fprint(w, `</feed>`)
	})
}

type story string

func (s story) String() string { return string(s) }

// What comes while a commit is under way becomes the next commit, with the
// feed's state of that time. An entry in the commit under way is looked up
// after that commit.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const archives = 60
		want, store := mirror.NewMemory(), mirror.NewMemory()
		_, err := newMirror(want, chainFeed(archives)).Update(t.Context(), modelURL)
		require.NoError(t, err)
		s := &slow{Store: store, t: t, story: story("all are slow"), bits: ^uint64(0)}
		changes := polled(t, newMirror(s, chainFeed(archives)), modelURL)
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		require.Equal(t, held(t, want, modelURL), held(t, store, modelURL))
		require.Equal(t, 2*archives+2, changes.Added)
		require.Less(t, s.commits, archives/2)
		require.EqualValues(t, s.commits, feedOf(t, store, modelURL).Commits)
		testUsage(t, store, modelURL, "slow")
		testCounts(t, store, "slow")
	})
}

// If a commit fails, what has come meanwhile is lost with it, but nothing else:
// the next poll begins there.
func TestGroupFails(t *testing.T) {
	for fail := 1; fail <= 8; fail++ {
		synctest.Test(t, func(t *testing.T) {
			store := mirror.NewMemory()
			s := &slow{Store: store, t: t, story: story(fmt.Sprint("commit ", fail, " fails")), bits: ^uint64(0), fail: fail}
			_, err := newMirror(s, chainFeed(60)).Update(t.Context(), modelURL)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, 1, strings.Count(err.Error(), errDisk.Error()))
			if fail == 1 {
				_, err := store.Feed(t.Context(), modelURL)
				require.ErrorIs(t, err, mirror.ErrNotFound)
				return
			}
			require.EqualValues(t, fail-1, feedOf(t, store, modelURL).Commits)
			changes := polled(t, newMirror(store, chainFeed(60)), modelURL)
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
			require.EqualValues(t, 122, feedOf(t, store, modelURL).Entries)
			testCounts(t, store, "after a failure")
		})
	}
}

// A commit that panics makes Update panic.
func TestGroupPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(panics{mirror.NewMemory()}, chainFeed(5))
		require.PanicsWithValue(t, "a broken store", func() { _, _ = m.Update(t.Context(), modelURL) })
	})
}

type panics struct{ mirror.Store }

func (panics) Commit(context.Context, *mirror.Commit) error { panic("a broken store") }

// After an error of the store, nobody knows what it has: a report does not say whole.
func TestVerdictOfAFailedCommit(t *testing.T) {
	const url = "http://example.org/feed"
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:f</id><fh:complete/>
			<entry><id>urn:1</id><updated>2003-12-13T18:30:02Z</updated></entry></feed>`))
	})
	client := &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Pipe(t, site)}
	store := &slow{Store: mirror.NewMemory(), t: t, fail: 1}
	m := &mirror.Mirror{Store: store, Client: client}
	report, err := m.Update(t.Context(), url)
	require.ErrorIs(t, err, errDisk)
	require.Equal(t, feedhistory.VerdictUnknown, report.Feed.Verdict)
	report, err = m.Update(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict, "%v %v", report.Feed.Ledger.Gaps(), report.Failure)
	require.Equal(t, 1, report.Added)
}

// A feed at no URL is not added.
func TestNoURL(t *testing.T) {
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	for _, url := range []string{"", "feed", "/feed", "https://", "a b"} {
		report, err := m.Update(t.Context(), url)
		require.ErrorContains(t, err, "is not an absolute URL", url)
		require.Nil(t, report)
	}
	require.Empty(t, feedtest.All(t, m.Store.Feeds(t.Context(), mirror.FeedQuery{})))
}
