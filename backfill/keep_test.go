package backfill

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// held is what a mirror has of the site's feed, as a history.
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

// What a feed does not declare is recovered into a mirror, once; and once more
// where a poll has missed something.
func TestKeep(t *testing.T) {
	blog := newBlog(t, 95, 10)
	url := blog.url + "/feed/"
	m := &mirror.Mirror{Store: &mirror.Memory{}, Client: private(t)}
	b := &Backfill{HTTP: m.Client}
	keep := func() (changes *mirror.Changes, requests int) {
		before := len(blog.requests)
		changes, err := b.Keep(t.Context(), m, url)
		require.NoError(t, err)
		return changes, len(blog.requests) - before
	}

	_, err := b.Keep(t.Context(), m, url)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	changes, err := m.Update(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, 10, changes.Added)
	require.Equal(t, feedhistory.Window, changes.Verdict)

	changes, _ = keep()
	require.Equal(t, 85, changes.Added)
	require.Equal(t, feedhistory.Whole, changes.Verdict) // X-WP-Total agrees
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
	require.Equal(t, feedhistory.Partial, changes.Verdict)
	changes, _ = keep()
	require.Equal(t, 15, changes.Added)
	require.Equal(t, feedhistory.Whole, changes.Verdict)
	require.Empty(t, changes.Gaps)
	blog.has(t, blog.held(t, m, url), func(p post) string { return p.guid(blog.url) })
}

// That the feed cannot be had is a gap, and the next Keep tries again.
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
	m := &mirror.Mirror{Store: &mirror.Memory{}, Client: private(t)}
	_, err := m.Update(t.Context(), s.url+"/feed")
	require.NoError(t, err)
	b := &Backfill{HTTP: m.Client}
	fails = true
	changes, err := b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.Partial, changes.Verdict)
	require.Len(t, changes.Gaps, 1)
	fails = false
	changes, err = b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.Window, changes.Verdict)
}

// A plain feed costs two requests beyond its own, once.
func TestKeepNothing(t *testing.T) {
	s := newSite(5)
	s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(rss(s.sorted(published), s.url, "", func(p post) string { return p.guid(s.url) })))
	})
	m := &mirror.Mirror{Store: &mirror.Memory{}, Client: private(t)}
	_, err := m.Update(t.Context(), s.url+"/feed")
	require.NoError(t, err)
	b := &Backfill{HTTP: m.Client}
	changes, err := b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Equal(t, feedhistory.Window, changes.Verdict)
	require.LessOrEqual(t, len(s.requests), 2+2, "%q", s.requests) // the feed's own is asked for once more
	asked := len(s.requests)
	changes, err = b.Keep(t.Context(), m, s.url+"/feed")
	require.NoError(t, err)
	require.Nil(t, changes)
	require.Len(t, s.requests, asked)
}
