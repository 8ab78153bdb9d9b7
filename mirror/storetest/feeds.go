package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

func testFeed(t *testing.T, w world) {
	_, err := w.Feed(w.ctx, feedURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)

	var f mirror.Feed
	fill(&f)
	f.URL, f.Commits = feedURL, 0
	require.NoError(t, w.Commit(w.ctx, &mirror.Commit{Feed: &f}))
	require.EqualValues(t, 1, f.Commits, "Change.Feed has the next version")
	got, err := w.other.Feed(w.ctx, feedURL)
	require.NoError(t, err)
	same(t, &f, got)

	bare := mirror.Feed{URL: feedURL, Commits: 1}
	require.NoError(t, w.other.Commit(w.ctx, &mirror.Commit{Feed: &bare}))
	require.EqualValues(t, 2, bare.Commits)
	got, err = w.Feed(w.ctx, feedURL)
	require.NoError(t, err)
	same(t, &mirror.Feed{URL: feedURL, Commits: 2}, got, "nothing is left of the old state")
}

// oddURLs are URLs to be told apart, and sorted, by each of their bytes.
var oddURLs = []string{
	"HTTPS://example.org/feed", "https://example.org/", "https://example.org/Feed", "https://example.org/feed",
	"https://example.org/feed ", "https://example.org/feed%20", "https://example.org/feed'\"\\",
	"https://example.org/feed\x00", "https://example.org/feed\x01", "https://example.org/fée", "https://example.org/e\u0301",
	"https://example.org/é", "https://example.org/\uffff", "https://example.org/\U0001F600",
	"https://example.org/" + long('a', 8<<10), "https://example.org/" + long('b', 8<<10), "https://example.org/" + long('b', 8<<10-1),
}

// long returns a string that compresses badly, and differs from others in its last
// byte.
func long(last byte, n int) string {
	var b strings.Builder
	for x := uint64(1); b.Len() < n-1; x = x*6364136223846793005 + 1442695040888963407 {
		b.WriteByte('a' + byte(x>>59)%26)
	}
	return b.String() + string(last)
}

func testFeedURLs(t *testing.T, w world) {
	for i, url := range oddURLs {
		require.NoError(t, w.Commit(w.ctx, &mirror.Commit{
			Feed: &mirror.Feed{URL: url, Polls: int64(i)},
			Put:  []*mirror.Record{live(url, at(i))},
		}))
	}
	for i, url := range oddURLs {
		f, err := w.Feed(w.ctx, url)
		require.NoError(t, err)
		require.Equal(t, url, f.URL)
		require.EqualValues(t, i, f.Polls, "%.50q", url)
		entries := w.entries(mirror.Query{Feed: url})
		require.Len(t, entries, 1)
		require.Equal(t, []string{url, url}, []string{entries[0].Feed, entries[0].ID})
	}
	testOrderOfURLs(t, w, oddURLs)
}

func testFeedsByURL(t *testing.T, w world) {
	require.Empty(t, feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{})))
	var urls []string
	for i := range 300 { // more than an implementation might read at once
		urls = append(urls, feedURL+string(rune('A'+i*7%300)))
	}
	for _, url := range urls {
		require.NoError(t, w.Commit(w.ctx, &mirror.Commit{Feed: &mirror.Feed{URL: url}}))
	}
	testOrderOfURLs(t, w, urls)
	err := failure(t, w.Feeds(w.ctx, mirror.FeedQuery{Due: epoch, After: "a"}))
	require.NotErrorIs(t, err, mirror.ErrNotFound)
}

func testOrderOfURLs(t *testing.T, w world, urls []string) {
	urls = sorted(urls)
	require.Equal(t, urls, urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{}))))
	require.Equal(t, urls[:2], urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{Limit: 2}))))
	for i, url := range urls {
		if i%7 == 0 || len(urls) < 50 {
			require.Equal(t, none(urls[i+1:]), urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{After: url}))), "after %.50q", url)
		}
	}
	require.Equal(t, urls[3:5], urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{After: urls[2], Limit: 2}))))
	require.Equal(t, urls, urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{After: "H"}))), "after a URL that is not there")
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func urlsOf(feeds []*mirror.Feed) (urls []string) {
	for _, f := range feeds {
		urls = append(urls, f.URL)
	}
	return urls
}

func testFeedsDue(t *testing.T, w world) {
	for _, f := range []mirror.Feed{
		{URL: "d", Next: at(1)},
		{URL: "b", Next: at(2)},
		{URL: "a", Next: at(2)},
		{URL: "c", Next: at(3).Add(time.Nanosecond)},
		{URL: "e"},
		{URL: "gone", Gone: true},
		{URL: "alias", Alias: "e"},
		{URL: "z", Next: at(3).In(time.FixedZone("", -7200))},
		{URL: "never", Next: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
	} {
		require.NoError(t, w.Commit(w.ctx, &mirror.Commit{Feed: &f}))
	}
	due := func(q mirror.FeedQuery) []string { return urlsOf(feedtest.All(t, w.Feeds(w.ctx, q))) }
	require.Equal(t, []string{"e", "d", "a", "b", "z"}, due(mirror.FeedQuery{Due: at(3)}))
	require.Equal(t, []string{"e", "d"}, due(mirror.FeedQuery{Due: at(2).Add(-time.Nanosecond)}))
	require.Equal(t, []string{"e", "d", "a"}, due(mirror.FeedQuery{Due: at(9), Limit: 3}))
	require.Equal(t, []string{"e"}, due(mirror.FeedQuery{Due: at(0)}))
	w.commit("e", mirror.Commit{})
	gone, err := w.Feed(w.ctx, "d")
	require.NoError(t, err)
	gone.Gone = true
	require.NoError(t, w.Commit(w.ctx, &mirror.Commit{Feed: gone}))
	require.Equal(t, []string{"e", "a", "b"}, due(mirror.FeedQuery{Due: at(2)}))
}

// testVersion checks whether a feed from another store keeps its version.
func testVersion(t *testing.T, w world) {
	f := &mirror.Feed{URL: feedURL}
	for _, version := range []int64{0, 7, 0, 3} {
		want := version
		if want == 0 {
			want = f.Commits + 1
		}
		require.NoError(t, w.Commit(w.ctx, &mirror.Commit{Feed: f, Number: version}))
		require.Equal(t, want, f.Commits)
		got, err := w.other.Feed(w.ctx, feedURL)
		require.NoError(t, err)
		require.Equal(t, want, got.Commits)
	}
}

func testConflict(t *testing.T, w world) {
	refused := func(store mirror.Store, version int64) {
		t.Helper()
		f := &mirror.Feed{URL: feedURL, Commits: version, Title: "refused"}
		err := store.Commit(w.ctx, &mirror.Commit{
			Feed: f, Put: []*mirror.Record{live("refused", at(0))}, Touch: []*mirror.Record{live("marked", at(0))},
			Versions: []*mirror.Version{{ID: "a", Copy: mirror.Copy{Digest: "refused"}}}, Keep: 9,
			Documents: []*mirror.DocumentRecord{{URL: "refused", Names: []string{"refused"}}}, Forget: true,
		})
		require.ErrorIs(t, err, mirror.ErrConflict)
		require.EqualValues(t, version, f.Commits)
	}
	refused(w.Store, 1)
	require.Empty(t, feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{})))

	stored := &mirror.Feed{URL: feedURL, Title: "stored"}
	require.NoError(t, w.Commit(w.ctx, &mirror.Commit{
		Feed: stored, Put: []*mirror.Record{live("a", at(0))}, Documents: []*mirror.DocumentRecord{{URL: "d", Names: []string{"d"}}},
	}))
	refused(w.Store, 0)
	refused(w.other, 0)
	refused(w.other, 2)
	refused(w.Store, -1)
	require.NoError(t, w.other.Commit(w.ctx, &mirror.Commit{Feed: stored}))
	refused(w.Store, 1)

	got, err := w.Feed(w.ctx, feedURL)
	require.NoError(t, err)
	same(t, stored, got)
	require.Equal(t, []string{"a"}, w.ids(mirror.Query{Deleted: true}))
	require.Len(t, feedtest.All(t, w.Documents(w.ctx, feedURL)), 1)
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "a")))
	marked, err := w.Records(w.ctx, feedURL, []string{"marked", "refused"})
	require.NoError(t, err)
	require.Empty(t, marked)

	require.NoError(t, w.Remove(w.ctx, feedURL))
	refused(w.other, 2)
	refused(w.other, 1)
}

func testRemove(t *testing.T, w world) {
	require.ErrorIs(t, w.Remove(w.ctx, feedURL), mirror.ErrNotFound)
	fillFeed := func(url string) {
		for i := range 2 {
			r := live("a", at(i))
			r.Copy.Digest += string(rune('0' + i))
			r.Content = content("Title", "tortoise", at(i))
			w.commit(url, mirror.Commit{
				Put: []*mirror.Record{r}, Keep: 3, Documents: []*mirror.DocumentRecord{{URL: "d", Names: []string{"d", "e"}}},
			})
		}
	}
	fillFeed(feedURL)
	fillFeed("other")
	require.Len(t, w.entries(mirror.Query{Search: "tortoise"}), 2)
	require.NoError(t, w.other.Remove(w.ctx, feedURL))
	require.ErrorIs(t, w.Remove(w.ctx, feedURL), mirror.ErrNotFound)
	require.Len(t, w.entries(mirror.Query{Search: "tortoise"}), 1)

	nothing := func() {
		testUnknown(t, w)
		require.Equal(t, []string{"other"}, urlsOf(feedtest.All(t, w.Feeds(w.ctx, mirror.FeedQuery{Limit: 1, After: feedURL}))))
	}
	nothing()
	require.Len(t, feedtest.All(t, w.Versions(w.ctx, "other", "a")), 1)

	// A feed added later under the same URL is a new feed.
	require.EqualValues(t, 1, w.commit(feedURL, mirror.Commit{}).Commits)
	require.Empty(t, w.entries(mirror.Query{Feed: feedURL, Deleted: true}))
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "a")))
	require.Empty(t, feedtest.All(t, w.Documents(w.ctx, feedURL)))
	fillFeed(feedURL)
	require.Len(t, w.entries(mirror.Query{Search: "tortoise"}), 2)
	require.Len(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "a")), 1)
}

func testUnknown(t *testing.T, w world) {
	_, err := w.Feed(w.ctx, feedURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)
	_, err = w.Document(w.ctx, feedURL, "d")
	require.ErrorIs(t, err, mirror.ErrNotFound)
	records, err := w.Records(w.ctx, feedURL, []string{"a"})
	require.NoError(t, err)
	require.Empty(t, records)
	require.Empty(t, w.entries(mirror.Query{Feed: feedURL, Deleted: true}))
	require.Empty(t, feedtest.All(t, w.Documents(w.ctx, feedURL)))
	require.Empty(t, feedtest.All(t, w.Versions(w.ctx, feedURL, "a")))
}
