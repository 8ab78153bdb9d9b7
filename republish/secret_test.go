package republish

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The address of a private feed may be its secret. No document contains it.
func TestSecrets(t *testing.T) {
	const secret = "s3cret"
	feed := &mirror.Feed{
		URL: "https://ann:s3cret@pod.example/s3cret/feed?token=s3cret", Private: true, Kind: feedhistory.Archived, Verdict: feedhistory.Partial,
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title></title><updated>2026-01-01T00:00:00Z</updated><link rel="self" href="https://pod.example/feed?token=s3cret"/></feed>`,
	}
	feed.Known = feedhistory.Known{URL: feed.URL}
	missing := feedhistory.NewGap("https://pod.example/archive?token=s3cret", fmt.Errorf("https://pod.example/archive?token=s3cret: %w", errors.New("gone")))
	feed.Gaps = append(feed.Gaps, mirror.GapRecord{URL: missing.URL, From: feed.URL, Reason: missing.Reason, Message: missing.Err.Error(), Found: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	store := &mirror.Memory{}
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
		Feed: feed.URL, ID: "urn:1", State: mirror.Live, FirstCommit: 1, LastCommit: 1, Added: at, Changed: at, Copy: mirror.Copy{At: at},
		Content: mirror.Content{Format: feedhistory.Atom, Updated: at, Data: `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id><title>One</title><updated>2020-01-01T00:00:00Z</updated></entry>`},
	}}}))
	h := &Handler{Store: store, Private: true}
	for _, document := range []string{"index.atom", "index.rss", "complete.atom", "slice.atom", "slice.rss", "replay.atom?start=2020-01-01&every=1d", "replay.rss?start=2020-01-01&every=1d"} {
		text := asked(t, h, "/feeds/"+Name(feed.URL)+"/"+document)
		require.Contains(t, text, "One", document)
		require.NotContains(t, text, secret, document)
	}
	require.Equal(t, "pod.example", Title(feed))
	public := &Handler{Store: store}
	status, body, _ := answer(public, getRequest(t.Context(), "/feeds/"+Name(feed.URL)+"/index.atom"))
	require.Equal(t, 404, status)
	require.NotContains(t, body, secret)
}
