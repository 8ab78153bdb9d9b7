package backfill

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// held returns what a mirror has of the site's feed, as a history.
func (s *site) held(t *testing.T, m *mirror.Mirror, url string) *feedhistory.History {
	t.Helper()
	h := &feedhistory.History{}
	for r, err := range m.Store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		e, err := r.Entry()
		require.NoError(t, err)
		h.Entries = append(h.Entries, e)
	}
	return h
}

// What a feed does not declare is recovered into a mirror once; and again if a
// poll has missed something.
func TestKeep(t *testing.T) {
	blog := newBlog(t, 95, 10)
	url := blog.url + "/feed/"
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
	b := &Backfill{HTTP: m.Client}
	keep := func() (changes *mirror.Report, requests int) {
		before := len(blog.requests)
		changes, err := b.Keep(t.Context(), m, url)
		require.NoError(t, err)
		return changes, len(blog.requests) - before
	}

	_, err := b.Keep(t.Context(), m, url)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	changes, err := m.Update(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, 10, changes.Added)
	require.Equal(t, feedhistory.VerdictWindow, changes.Feed.Verdict)

	changes, _ = keep()
	require.Equal(t, 85, changes.Added)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict) // X-WP-Total agrees
	blog.has(t, blog.held(t, m, url), func(p post) string { return p.guid(blog.url) })
	changes, requests := keep()
	require.Nil(t, changes)
	require.Zero(t, requests)
	feed, err := m.Store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, "wordpress", feed.Source)

	for range 25 { // more than the feed shows
		blog.publish()
	}
	changes, err = m.Update(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, changes.Failure)
	require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
	changes, _ = keep()
	require.Equal(t, 15, changes.Added)
	require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	require.Empty(t, changes.Feed.Ledger.Gaps())
	blog.has(t, blog.held(t, m, url), func(p post) string { return p.guid(blog.url) })
}

// If the feed cannot be retrieved, there is a gap, and the next Keep tries
// again.
func TestKeepFails(t *testing.T) {
	s := newSite(5)
	fails := false
	s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if fails {
			http.NotFound(w, nil)
			return
		}
		_, _ = w.Write([]byte(rss(s.sorted(published), s.url, "", func(p post) string { return p.guid(s.url) })))
	})
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
	_, err := m.Update(t.Context(), s.url+"/feed")
	require.NoError(t, err)
	b := &Backfill{HTTP: m.Client}
	fails = true
	changes, err := b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
	require.Len(t, changes.Feed.Ledger.Gaps(), 1)
	fails = false
	changes, err = b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWindow, changes.Feed.Verdict)
}

// A walk that brings nothing pays for nothing that polls have missed.
func TestKeepNothingForMissed(t *testing.T) {
	s := newSite(8)
	s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(rss(window(s.sorted(published), 0, 5), s.url, "", func(p post) string { return p.guid(s.url) })))
	})
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
	b := &Backfill{HTTP: m.Client, Recount: time.Nanosecond}
	for range 2 {
		_, err := m.Update(t.Context(), s.url+"/feed")
		require.NoError(t, err)
		for range 12 {
			s.publish()
		}
		changes, err := m.Update(t.Context(), s.url+"/feed")
		require.NoError(t, err)
		require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		changes, err = b.Keep(t.Context(), m, s.url+"/feed")
		require.NoError(t, err)
		if changes != nil {
			require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
		}
	}
}

// Posts that the server lists or counts, and that have not come, are a debt. It stays while
// the server cannot be asked, or another walk brings something, and ends when only posts
// that have come are listed, and all that are counted.
func TestKeepCount(t *testing.T) {
	withhold := func(b *blog, withheld bool) {
		for _, id := range []int{30, 40} {
			p := b.posts[id]
			p.withheld = withheld
			b.posts[id] = p
		}
	}
	for name, part := range map[string]struct {
		lacks func(b *blog, lacks bool)
		says  string
	}{
		"listed":  {withhold, "2 of the 95 entries that the server lists have not come: "},
		"counted": {func(b *blog, lacks bool) { b.secret = map[bool]int{true: 3}[lacks] }, "the server counts 98 entries, but lists 95"},
		"taken from both": {func(b *blog, lacks bool) {
			if withhold(b, true); !lacks {
				delete(b.posts, 30)
				delete(b.posts, 40)
			}
		}, "2 of the 95"},
	} {
		t.Run(name, func(t *testing.T) {
			blog := newBlog(t, 95, 10)
			part.lacks(blog, true)
			m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
			b := &Backfill{HTTP: m.Client, Recount: time.Nanosecond}
			keep := func(want feedhistory.Verdict, debts int) mirror.Feed {
				_, err := m.Update(t.Context(), blog.url+"/feed/")
				require.NoError(t, err)
				_, err = b.Keep(t.Context(), m, blog.url+"/feed/")
				require.NoError(t, err)
				feed, err := m.Store.Feed(t.Context(), blog.url+"/feed/")
				require.NoError(t, err)
				require.Len(t, feed.Ledger.Debts(), debts)
				require.Equal(t, want, feed.Verdict)
				return *feed
			}
			debt := keep(feedhistory.VerdictPartial, 1).Ledger.Debts()[0]
			require.ErrorContains(t, debt.Gap.Err, part.says)
			require.Equal(t, "the server lists only entries that have come, and as many as it counts", debt.Receipt)
			blog.withoutAPI = true
			keep(feedhistory.VerdictPartial, 1)
			blog.publish()
			keep(feedhistory.VerdictPartial, 1)
			blog.withoutAPI = false
			keep(feedhistory.VerdictPartial, 1)
			part.lacks(blog, false)
			keep(feedhistory.VerdictWhole, 0)
			for d, err := range m.Store.Documents(t.Context(), blog.url+"/feed/") {
				require.NoError(t, err)
				require.NotContains(t, d.URL, "wp-json", "the list is no document of the feed")
			}
		})
	}
}

// A plain feed costs two extra requests, once.
func TestKeepNothing(t *testing.T) {
	s := newSite(5)
	s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(rss(s.sorted(published), s.url, "", func(p post) string { return p.guid(s.url) })))
	})
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
	_, err := m.Update(t.Context(), s.url+"/feed")
	require.NoError(t, err)
	b := &Backfill{HTTP: m.Client}
	changes, err := b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWindow, changes.Feed.Verdict)
	require.LessOrEqual(t, len(s.requests), 2+2, "%q", s.requests) // the feed itself is requested once more
	asked := len(s.requests)
	changes, err = b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Nil(t, changes)
	require.Len(t, s.requests, asked)
}

// A mirror is whole as of a count. The count is requested again after a while:
// with one request, if it has changed only by what polls have brought; else
// what is missing is read, and nothing more.
func TestKeepRecount(t *testing.T) {
	for name, begin := range map[string]func() (*site, http.HandlerFunc, string, int){
		"wordpress": func() (*site, http.HandlerFunc, string, int) {
			b := &blog{site: newSite(95), size: 10}
			b.guids = b.guid
			return b.site, b.answer, "/feed/", 13
		},
		"blogger": func() (*site, http.HandlerFunc, string, int) {
			b := newBlogspot(160)
			b.guids = b.guid
			return b.site, b.answer, "/feeds/posts/default?alt=rss", 14
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, answer, path, most := begin()
			s.serve(t, answer)
			url := s.url + path
			m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
			b := &Backfill{HTTP: m.Client}
			keep := func() (changes *mirror.Report, requests int) {
				before := len(s.requests)
				changes, err := b.Keep(t.Context(), m, url)
				require.NoError(t, err)
				return changes, len(s.requests) - before
			}
			poll := func() *mirror.Feed {
				_, err := m.Update(t.Context(), url)
				require.NoError(t, err)
				feed, err := m.Store.Feed(t.Context(), url)
				require.NoError(t, err)
				return feed
			}
			poll()
			changes, _ := keep()
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
			require.False(t, changes.Feed.WholeAsOf().IsZero())
			asOf := poll().WholeAsOf()
			require.Equal(t, changes.Feed.WholeAsOf(), asOf)

			s.publish() // polls bring it
			poll()
			changes, requests := keep()
			require.Nil(t, changes)
			require.Zero(t, requests, "it was asked not long ago")
			b.Recount = time.Nanosecond
			for range 2 {
				changes, requests = keep()
				require.Nil(t, changes)
				require.Equal(t, 1, requests, "%q", s.requests)
				require.Equal(t, asOf, poll().WholeAsOf(), "a count that agrees is no proof")
			}

			s.backdate(50 * time.Minute) // no poll sees it
			feed := poll()
			require.Equal(t, int(feed.Entries), len(s.posts)-1)
			require.Equal(t, asOf, feed.WholeAsOf())
			changes, requests = keep()
			require.Equal(t, 1, changes.Added)
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
			require.True(t, changes.Feed.WholeAsOf().After(asOf))
			require.LessOrEqual(t, requests, most, "%q", s.requests)
			s.has(t, s.held(t, m, url), s.guids)

			delete(s.posts, 17) // withdrawn, but the mirror keeps it
			asOf = changes.Feed.WholeAsOf()
			changes, _ = keep()
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
			require.True(t, changes.Feed.WholeAsOf().After(asOf))
			_, requests = keep()
			require.Equal(t, 1, requests)

			b.Recount = -1
			s.backdate(50 * time.Minute)
			_, requests = keep()
			require.Zero(t, requests)
		})
	}
}

// What polls have missed is read back to known entries, and no further; also if
// the pages are not in the order of modification.
func TestKeepRefill(t *testing.T) {
	for name, set := range map[string]func(*blog){
		"counted":     func(*blog) {},
		"not counted": func(b *blog) { b.withoutAPI = true },
		"unordered":   func(b *blog) { b.unordered = true },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlog(t, 300, 10)
			set(b)
			url := b.url + "/feed/"
			m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
			f := &Backfill{HTTP: m.Client}
			_, err := m.Update(t.Context(), url)
			require.NoError(t, err)
			first, err := f.Keep(t.Context(), m, url)
			require.NoError(t, err)
			for range 3 {
				for range 35 { // more than the feed shows
					b.publish()
				}
				for id := 1; id <= 12; id++ {
					b.edit(id)
				}
				changes, err := m.Update(t.Context(), url)
				require.NoError(t, err)
				require.NoError(t, changes.Failure)
				require.Equal(t, feedhistory.VerdictPartial, changes.Feed.Verdict)
				before := len(b.requests)
				changes, err = f.Keep(t.Context(), m, url)
				require.NoError(t, err)
				require.Equal(t, 25, changes.Added)
				require.Empty(t, changes.Feed.Ledger.Gaps())
				require.Equal(t, first.Feed.Verdict, changes.Feed.Verdict)
				require.LessOrEqual(t, len(b.requests)-before, 17, "%s", strings.Join(b.requests[before:], "\n"))
				require.Len(t, b.held(t, m, url).Entries, len(b.posts))
			}
		})
	}
}

// A missed window stays a gap if there is only one more page, which does not
// reach back to known entries.
func TestKeepRefillTooLate(t *testing.T) {
	p := readPlatform(t, "testdata/platforms/mastodon.txtar")
	p.site = newSite(30)
	p.serve(t, p.answer)
	url := p.url + p.server["path"]
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: private(t)}
	b := &Backfill{HTTP: m.Client}
	for range 2 {
		_, err := m.Update(t.Context(), url)
		require.NoError(t, err)
		changes, err := b.Keep(t.Context(), m, url)
		require.NoError(t, err)
		require.Equal(t, len(p.requests) > 5, changes.Feed.Verdict == feedhistory.VerdictPartial, "%v", changes.Feed.Ledger.Gaps())
		for range 300 {
			p.publish()
		}
	}
}
