package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A kept is a model server with a mirror of its feed.
type kept struct {
	*site
	path    string
	pages   int // approximate number of requests for everything
	want    feedhistory.Verdict
	answer  http.HandlerFunc
	recount time.Duration
	m       *mirror.Mirror
	store   *cutStore
	takes   time.Duration    // time of a request
	fails   func(n int) bool // reports whether the nth request fails; nil: none does
}

// A cutStore fails from a commit on, as if the process had been killed.
type cutStore struct {
	mirror.Store
	left int // number of commits; negative: unlimited
}

var errKilled = errors.New("killed")

func (s *cutStore) Commit(ctx context.Context, c *mirror.Commit) error {
	if s.left == 0 {
		return errKilled
	}
	s.left--
	return s.Store.Commit(ctx, c)
}

// keptSites are servers of each kind, with numbers of posts.
func keptSites(t *testing.T) map[string]func() *kept {
	wordpress := func(set func(*blog), pages int, want feedhistory.Verdict) func() *kept {
		return func() *kept {
			b := &blog{site: newSite(87), size: 5}
			set(b)
			b.guids = b.guid
			return &kept{site: b.site, path: "/feed/", pages: pages, want: want, answer: b.answer}
		}
	}
	sites := map[string]func() *kept{
		"wordpress":               wordpress(func(*blog) {}, 20, feedhistory.VerdictWhole),
		"wordpress, not counted":  wordpress(func(b *blog) { b.withoutAPI = true }, 26, feedhistory.VerdictLossy),
		"wordpress, in its order": wordpress(func(b *blog) { b.unordered = true }, 20, feedhistory.VerdictLossy),
		"blogger": func() *kept {
			b := newBlogspot(200)
			b.most = 20
			b.guids = b.guid
			return &kept{site: b.site, path: "/feeds/posts/default?alt=rss", pages: 26, want: feedhistory.VerdictWhole, answer: b.answer}
		},
		"blogger, deaf": func() *kept {
			b := newBlogspot(200)
			b.most, b.deaf = 20, true
			b.guids = b.guid
			return &kept{site: b.site, path: "/feeds/posts/default?alt=rss", pages: 12, want: feedhistory.VerdictLossy, answer: b.answer}
		},
	}
	for _, name := range []string{"tumblr", "github", "substack", "squarespace"} {
		sites[name] = func() *kept {
			p := readPlatform(t, filepath.Join("testdata", "platforms", name+".txtar"))
			p.server["size"] = "5"
			if p.list != "" {
				p.server["paged"] = "8"
			}
			p.site = newSite(60)
			return &kept{site: p.site, path: p.server["path"], pages: 12, want: feedhistory.VerdictLossy, answer: p.answer}
		}
	}
	return sites
}

func (k *kept) begin(t *testing.T) {
	k.handler, k.url = k.answer, "http://example.org"
	k.store = &cutStore{mirror.NewMemory(), -1}
	k.m = &mirror.Mirror{Store: k.store, Client: &feedhistory.Client{AllowPrivate: true, Transport: k, Tries: 1}}
	_, err := k.m.Update(t.Context(), k.url+k.path)
	require.NoError(t, err)
	k.requests, k.moments = nil, nil
}

// RoundTrip answers, unless the request must fail.
func (k *kept) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(k.takes)
	k.mu.Lock() // two pages may be in flight
	fails := k.fails != nil && k.fails(len(k.requests)+1)
	if fails {
		k.requests, k.moments = append(k.requests, "failed "+r.URL.RequestURI()), append(k.moments, nil)
	}
	k.mu.Unlock()
	if fails {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return k.site.RoundTrip(r)
}

func (k *kept) keep(ctx context.Context) (*mirror.Report, error) {
	b := &Backfill{HTTP: k.m.Client, Recount: k.recount}
	return b.Keep(ctx, k.m, k.url+k.path)
}

// sound checks that the verdict is true, and returns whether nothing more will
// come.
func (k *kept) sound(t *testing.T, what string) (all bool) {
	t.Helper()
	feed, err := k.m.Store.Feed(t.Context(), k.url+k.path)
	require.NoError(t, err)
	all = int(feed.Entries) == len(k.posts)
	switch feed.Verdict {
	case feedhistory.VerdictWhole, feedhistory.VerdictLossy:
		require.True(t, all, "%s: %v, with %d of %d\n%s", what, feed.Verdict, feed.Entries, len(k.posts), strings.Join(k.requests, "\n"))
		require.Empty(t, feed.Ledger.Gaps())
	case feedhistory.VerdictPartial:
		require.NotEmpty(t, feed.Ledger.Gaps())
	default:
		require.Empty(t, feed.Source, "%s: %v, though something was recovered", what, feed.Verdict)
	}
	if feed.Verdict == feedhistory.VerdictPartial {
		return false
	}
	return all
}

// A first backfill that is cut short, for any reason and at any moment (each one in a long
// run), is partial, and the next one continues where it ended.
func TestKeepCut(t *testing.T) {
	type cut func(k *kept, n int) (context.Context, func())
	cuts := map[string]cut{
		"signal": func(k *kept, n int) (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			k.before = func(at int) {
				if at == n {
					cancel()
				}
			}
			return ctx, func() { k.before = nil; cancel() }
		},
		"kill": func(k *kept, n int) (context.Context, func()) {
			k.store.left = n
			return context.Background(), func() { k.store.left = -1 }
		},
		"server": func(k *kept, n int) (context.Context, func()) {
			k.fails = func(at int) bool { return at >= n }
			return context.Background(), func() { k.fails = nil }
		},
		"one page": func(k *kept, n int) (context.Context, func()) {
			k.fails = func(at int) bool { return at == n }
			return context.Background(), func() { k.fails = nil }
		},
		"budget": func(k *kept, n int) (context.Context, func()) {
			k.m.Client.Budget.Documents = n
			return context.Background(), func() { k.m.Client.Budget.Documents = 0 }
		},
	}
	moments := []int{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 17, 20, 21, 22, 23, 24, 28}
	sites, tried, stride := keptSites(t), 0, feedtest.Stride(1)
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		for _, by := range slices.Sorted(maps.Keys(cuts)) {
			t.Run(site+"/"+by, func(t *testing.T) {
				for _, n := range moments {
					if tried++; tried%stride != 0 {
						continue
					}
					// If a request takes time, what came before it has been
					// stored.
					synctest.Test(t, func(t *testing.T) {
						k, cut := sites[site](), cuts[by]
						k.begin(t)
						k.takes = time.Millisecond
						ctx, restore := cut(k, n)
						_, _ = k.keep(ctx)
						restore()
						k.goesOn(t, fmt.Sprintf("cut at %d", n))
					})
				}
			})
		}
	}
}

// goesOn checks that, after a backfill was cut short, the next ones bring the
// rest.
func (k *kept) goesOn(t *testing.T, what string) {
	t.Helper()
	done := k.sound(t, what)
	first := len(k.requests)
	for range 3 {
		_, err := k.keep(t.Context())
		require.NoError(t, err)
		done = k.sound(t, what+", and after that")
	}
	require.True(t, done, "%s\n%s", what, strings.Join(k.requests, "\n"))
	feed, err := k.m.Store.Feed(t.Context(), k.url+k.path)
	require.NoError(t, err)
	if k.want == feedhistory.VerdictLossy || first > 3 {
		require.Equal(t, k.want, feed.Verdict, "%s\n%s", what, strings.Join(k.requests, "\n"))
	}
	require.Less(t, len(k.requests), k.pages+20, "%s: it begins again\n%s", what, strings.Join(k.requests, "\n"))
}

// However small the budget is, the history comes step by step.
func TestKeepBitByBit(t *testing.T) {
	for name, begin := range keptSites(t) {
		t.Run(name, func(t *testing.T) {
			k := begin()
			k.begin(t)
			k.m.Client.Budget.Documents = 3
			rounds := 0
			for ; rounds < 60; rounds++ {
				changes, err := k.keep(t.Context())
				require.NoError(t, err)
				done := k.sound(t, fmt.Sprint("round ", rounds))
				if changes == nil {
					require.True(t, done)
					break
				}
				require.Equal(t, !done, changes.More, "round %d: %v\n%s", rounds, changes.Feed.Ledger.Gaps(), strings.Join(k.requests, "\n"))
			}
			require.Less(t, rounds, k.pages)
			feed, err := k.m.Store.Feed(t.Context(), k.url+k.path)
			require.NoError(t, err)
			require.Equal(t, k.want, feed.Verdict, "%s", strings.Join(k.requests, "\n"))
		})
	}
}

// A walk through a web archive also continues, and remembers where it found
// that something is missing.
func TestKeepMementoGoesOn(t *testing.T) {
	for _, every := range []int{10, 40} { // more than a snapshot shows
		a := newWayback(400, 25, every)
		a.serve(t, a.answer)
		url := a.url + "/feed.rss"
		m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
		_, err := m.Update(t.Context(), url)
		require.NoError(t, err)
		b := &Backfill{HTTP: m.Client, Methods: append(Methods(), a.method())}
		whole, err := b.Fetch(t.Context(), url, Probe{})
		require.NoError(t, err)
		a.requests = nil

		m.Client.Budget.Documents = 4
		var changes *mirror.Report
		rounds := 0
		for more := true; more; rounds++ {
			changes, err = b.Keep(t.Context(), m, url)
			require.NoError(t, err)
			if more = changes.More; more {
				require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
			}
			require.Less(t, rounds, 20, "%s", strings.Join(a.requests, "\n"))
		}
		require.Greater(t, rounds, 3)
		feed, err := m.Store.Feed(t.Context(), url)
		require.NoError(t, err)
		require.Equal(t, len(whole.History.Entries), int(feed.Entries))
		require.Equal(t, len(whole.History.Gaps), len(feed.Ledger.Gaps()), "%v", feed.Ledger.Gaps())
		require.Equal(t, whole.Verdict(), feed.Verdict)
		changes, err = b.Keep(t.Context(), m, url)
		require.NoError(t, err)
		require.Nil(t, changes, "it has come to its end")
	}
}
