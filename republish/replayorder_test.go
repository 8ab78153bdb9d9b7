package republish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// The order stays as it was frozen, over restarts, whatever is edited.
func TestReplayOrderIsKept(t *testing.T) {
	store, out := &mirror.Memory{}, &publish.MemoryOutput{}
	feed := &mirror.Feed{URL: replayURL, Known: feedhistory.Known{URL: replayURL}, Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:s</id><title>S</title><updated>2026-01-01T00:00:00Z</updated></feed>`}
	put := func(n int, when string) {
		at, err := time.Parse(time.DateOnly, when)
		require.NoError(t, err)
		known, err := store.Records(t.Context(), replayURL, []string{fmt.Sprint("urn:", n)})
		require.NoError(t, err)
		first := feed.Commits + 1
		if r := known[fmt.Sprint("urn:", n)]; r != nil {
			first = r.FirstCommit
		}
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed, Put: []*mirror.Record{{
			Feed: replayURL, ID: fmt.Sprint("urn:", n), State: mirror.Live, FirstCommit: first, LastCommit: feed.Commits + 1, Added: at, Changed: at, Copy: mirror.Copy{At: at, Digest: when},
			Content: mirror.Content{Format: feedhistory.Atom, Updated: at, Data: fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:%d</id><title>%[1]d</title><updated>%sT00:00:00Z</updated></entry>`, n, when)},
		}}}))
	}
	for n := range 5 {
		put(n, fmt.Sprintf("2020-01-%02d", n+1))
	}
	order := func() string {
		s := &Handler{Store: store, Output: out, Time: func() time.Time { return time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC) }}
		doc, err := feedhistory.Parse(strings.NewReader(asked(t, s, "/feeds/"+Name(replayURL)+"/replay.atom?start=2026-01-01&every=1d&asof=5")), "")
		require.NoError(t, err)
		var ids []string
		for _, e := range doc.Entries {
			ids = append(ids, strings.TrimPrefix(e.ID, "urn:"))
		}
		return strings.Join(ids, " ")
	}
	require.Equal(t, "4 3 2 1 0", order())
	put(1, "2021-01-01") // edited, with a different date
	put(9, "2019-01-01") // found later, with an old date
	require.Equal(t, "9 4 3 2 1 0", order())
}

// Somebody who comes back after four weeks finds the releases of that time in
// the subscription document.
func TestReplayHoliday(t *testing.T) {
	store, put := damagedStore(t, 0)
	put(0, soundEntry(0))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &Handler{Store: store, Size: 3, Time: func() time.Time { return now }}
	replay := func(query string) int {
		return strings.Count(asked(t, h, "/feeds/"+Name(damagedURL)+"/replay.atom?start=2026-01-01&"+query), "<entry")
	}
	require.Equal(t, 1, replay("every=1d"))
	now = now.AddDate(0, 0, 23).Add(time.Hour)
	require.Equal(t, 24, replay("every=1d"))
	require.Equal(t, 25, replay("every=1h"))
	now = now.AddDate(0, 0, 60)
	require.Equal(t, leastReleased, replay("every=1d"))
}
