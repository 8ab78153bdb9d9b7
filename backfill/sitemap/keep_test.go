package sitemap

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/mirror"
)

// keepAll calls Keep until it has come to its end, and returns how often.
func keepAll(t *testing.T, k *backfill.Backfill, m *mirror.Mirror) (rounds int) {
	t.Helper()
	for more := true; more; rounds++ {
		changes, err := k.Keep(t.Context(), m, root+"/feed.xml")
		require.NoError(t, err)
		require.Less(t, rounds, 40)
		more = changes != nil && changes.More
	}
	return rounds
}

// In a mirror, one method follows the other, whatever ends a walk in between.
func TestKeepInOrder(t *testing.T) {
	b := &blog{n: 60, head: "<generator>Ghost 2.1</generator>"}
	pages := b.like()
	pages.n, pages.shown = 50, 10
	last := pages.like()
	last.n = 40
	b.pages = map[string]string{"/2/": pages.feed(), "/3/": last.feed(), "/4/": "404"}
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: b.client()}
	_, err := m.Update(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	m.Client.Budget.Documents = 3
	k := &backfill.Backfill{HTTP: m.Client, Methods: methods()}
	require.Greater(t, keepAll(t, k, m), 10)
	feed, err := m.Store.Feed(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	require.Equal(t, int64(60), feed.Entries)
	require.Equal(t, feedhistory.VerdictLossy, feed.Verdict)
	require.Equal(t, "ghost", feed.Source)
	found := backfill.Findings(feed)
	require.Equal(t, []string{"ghost", "sitemap"}, found.Names())
	for i := 1; i <= 60; i++ {
		r, err := mirror.Lookup(t.Context(), m.Store, root+"/feed.xml", b.id(i))
		require.NoError(t, err)
		require.Equal(t, i <= 30, r.Copy.Source == "sitemap", b.id(i))
	}
	asked := len(b.requests.All())
	changes, err := k.Keep(t.Context(), m, root+"/feed.xml")
	require.NoError(t, err)
	require.Nil(t, changes)
	require.Len(t, b.requests.All(), asked)
}

// If all pages of a site's list are gone, nothing was recovered, in a mirror as without one.
func TestKeepGone(t *testing.T) {
	b := &blog{n: 30, pages: map[string]string{}}
	for i := 1; i <= 20; i++ {
		b.pages[fmt.Sprintf("/posts/post-%d/", i)] = "404"
	}
	require.Equal(t, feedhistory.VerdictWindow, b.fetch(t).Verdict())
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: b.client()}
	_, err := m.Update(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	keepAll(t, &backfill.Backfill{HTTP: m.Client, Methods: methods()}, m)
	feed, err := m.Store.Feed(t.Context(), root+"/feed.xml")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWindow, feed.Verdict)
}

// Findings of versions without this method mean what they meant: it is tried once, and what
// was found before is not read again.
func TestKeepEarlierFindings(t *testing.T) {
	for mark, source := range map[string]string{
		`{"method":"none","at":"2026-01-01T00:00:00Z","done":true}`:  "",
		`{"method":"ghost","at":"2026-01-01T00:00:00Z","done":true}`: "ghost",
	} {
		b := &blog{n: 30, pages: map[string]string{}}
		if source != "" {
			b.head = "<generator>Ghost 2.1</generator>"
		}
		m := &mirror.Mirror{Store: mirror.NewMemory(), Client: b.client()}
		_, err := m.Update(t.Context(), root+"/feed.xml")
		require.NoError(t, err)
		feed, err := m.Store.Feed(t.Context(), root+"/feed.xml")
		require.NoError(t, err)
		feed.Mark, feed.Source = json.RawMessage(mark), source
		require.NoError(t, m.Store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
		keepAll(t, &backfill.Backfill{HTTP: m.Client, Methods: methods()}, m)
		feed, err = m.Store.Feed(t.Context(), root+"/feed.xml")
		require.NoError(t, err)
		require.Equal(t, int64(30), feed.Entries, mark)
		found := backfill.Findings(feed)
		require.Contains(t, found.Names(), "sitemap")
		require.NotContains(t, b.requests.All(), "/2/", "Ghost's pages have been read before")
	}
	var p backfill.Probe
	require.NoError(t, json.Unmarshal([]byte(`{"method":"wordpress","mode":"modified"}`), &p))
	require.Equal(t, []string{"wordpress"}, p.Names())
}
