package backfill

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// TestKeepModel lets a site live, and its mirror be polled, backfilled and cut
// short, in any order. A whole mirror has everything that was counted; and once
// nothing changes any more, everything comes.
func TestKeepModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &blog{
			site:      newSite(rapid.SampledFrom([]int{1, 9, 40, 100, 101}).Draw(rt, "posts")),
			size:      rapid.IntRange(2, 10).Draw(rt, "size"),
			unordered: rapid.IntRange(0, 4).Draw(rt, "unordered") == 0,
		}
		b.guids = b.guid
		k := &kept{site: b.site, path: "/feed/", answer: b.answer, recount: time.Nanosecond}
		k.begin(t)
		random := chance(rt)
		change := func() { b.change(random) }
		rt.Repeat(map[string]func(*rapid.T){
			"change": func(*rapid.T) { change() },
			"many": func(*rapid.T) {
				for range 2 * b.size {
					b.publish()
				}
			},
			"poll": func(*rapid.T) { k.poll(rt) },
			"keep": func(*rapid.T) { k.keepCut(rt, change) },
			"cut": func(*rapid.T) {
				k.poll(rt)
				k.keepCut(rt, nil)
			},
		})
		k.poll(rt)
		for range 4 {
			_, err := k.keep(context.Background())
			require.NoError(rt, err)
		}
		feed, err := k.m.Store.Feed(context.Background(), k.url+k.path)
		require.NoError(rt, err)
		if strings.Contains(string(feed.Mark), modeModified) {
			require.Equal(rt, feedhistory.VerdictWhole, feed.Verdict, "%v\n%s", feed.Ledger.Gaps(), strings.Join(k.requests, "\n"))
			k.requireCounted(rt)
		}
	})
}

func (k *kept) poll(t require.TestingT) {
	_, err := k.m.Update(context.Background(), k.url+k.path)
	require.NoError(t, err)
}

// keepCut is a Keep during which things may change, or which is cut short. If
// its verdict is whole, it has everything.
func (k *kept) keepCut(t *rapid.T, change func()) {
	n := len(k.requests) + rapid.IntRange(1, 20).Draw(t, "at")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch how := rapid.IntRange(0, 4).Draw(t, "how"); {
	case change != nil:
		k.before = func(at int) {
			if at == n || how == 0 {
				change()
			}
		}
	case how == 0:
		k.before = func(at int) {
			if at == n {
				cancel()
			}
		}
	case how == 1:
		k.store.left = n - len(k.requests)
	case how == 2:
		k.fails = func(at int) bool { return at >= n }
	case how == 3:
		k.fails = func(at int) bool { return at == n }
	default:
		k.m.Client.Budget.Documents = 2 + n%5
	}
	changes, err := k.keep(ctx)
	k.before, k.fails, k.store.left, k.m.Client.Budget.Documents = nil, nil, -1, 0
	if err == nil && changes != nil && !changes.Feed.WholeAsOf().IsZero() {
		k.requireCounted(t)
	}
	feed, err := k.m.Store.Feed(context.Background(), k.url+k.path)
	require.NoError(t, err)
	require.Equal(t, feed.Verdict == feedhistory.VerdictPartial, len(feed.Ledger.Gaps()) > 0)
}

// requireCounted checks that the mirror has everything that existed when the
// server last counted.
func (k *kept) requireCounted(t require.TestingT) {
	got := set{}
	for _, r := range feedtest.All(t, k.m.Store.Entries(context.Background(), mirror.Query{Feed: k.url + k.path})) {
		got[r.ID] = true
	}
	for guid := range k.moments[k.count(wordPressCount)] {
		require.Contains(t, got, guid)
	}
}
