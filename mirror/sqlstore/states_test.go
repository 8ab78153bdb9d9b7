package sqlstore_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Polls that are stored together are what Commit would have stored of each; feeds
// at other versions, and the rest of their states, stay as they are.
func TestUpdatePolls(t *testing.T) {
	ctx := t.Context()
	dsn := newPostgreSQL(t).dsn
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	store, err := sqlstore.Open(ctx, db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	urls := []string{"http://a.example/", "http://b.example/", "http://c.example/" + strings.Repeat("long", 400), "http://none.example/"}
	var states []*mirror.Feed
	for _, url := range urls {
		f := &mirror.Feed{URL: url, Title: "nul \x00", Polls: 1, Gone: url == urls[2]}
		if url != urls[3] {
			require.NoError(t, store.Commit(ctx, &mirror.Commit{Feed: f}))
		}
		f.Commits, f.Polls = 1, 2
		f.Polled, f.Next = time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 7200)), time.Date(2030, 1, 2, 5, 4, 5, 6, time.UTC)
		states = append(states, f)
	}
	states[1].Commits = 5
	states[0].Title = "not stored"
	query, args := sqlstore.UpdatePolls(states)
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, query, args...)
	require.NoError(t, err)
	places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.ElementsMatch(t, []int64{1, 3}, places)

	got, err := store.FeedsByURL(ctx, urls)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.EqualValues(t, 1, got[urls[1]].Polls)
	require.EqualValues(t, 1, got[urls[1]].Commits)
	other := openOther(t)
	for _, i := range []int{0, 2} {
		f := *states[i]
		f.Commits, f.Title = 0, "nul \x00"
		require.NoError(t, other.Commit(ctx, &mirror.Commit{Feed: &f}))
		want, err := other.Feed(ctx, urls[i])
		require.NoError(t, err)
		want.Commits = 2
		require.Equal(t, want, got[urls[i]])
	}
	due := 0
	for _, f := range feedtest.All(t, store.Feeds(ctx, mirror.FeedQuery{Due: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)})) {
		require.NotEqual(t, urls[2], f.URL, "it is gone")
		due++
	}
	require.Equal(t, 2, due)
}

func openOther(t *testing.T) *sqlstore.Store {
	db, err := sql.Open("pgx", newPostgreSQL(t).dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	return store
}

// First commits stored together have the same result as one Commit after the other. A feed
// that is there already, or twice in the call, is a conflict. Two calls do not block each other.
func TestCommitNew(t *testing.T) {
	databases(t, func(t *testing.T, create func(testing.TB) database) {
		ctx, store, other := t.Context(), create(t).open(t), create(t).open(t)
		first := func(url string, entries int) *mirror.Commit {
			c := &mirror.Commit{Feed: &mirror.Feed{URL: url, Title: "nul \x00", Private: true, Entries: int64(entries)}, Keep: 2}
			for i := range entries {
				c.Put = append(c.Put, &mirror.Record{ID: fmt.Sprint(url, "#", i), State: mirror.Live, FirstCommit: 1, LastCommit: 1,
					Copy: mirror.Copy{Digest: "new"}, Content: mirror.Content{Format: feedhistory.FormatAtom, Title: "word", Data: "<entry/>"}})
			}
			return c
		}
		batch := func() []*mirror.Commit {
			kept := first("http://c.example/"+strings.Repeat("long", 400), 1)
			kept.Versions = []*mirror.Record{{ID: kept.Put[0].ID, Copy: mirror.Copy{Digest: "old"}, Content: mirror.Content{Format: feedhistory.FormatRSS, Data: "<item/>"}},
				{ID: kept.Put[0].ID, Copy: mirror.Copy{Digest: "new"}, Content: mirror.Content{Format: feedhistory.FormatRSS, Data: "<item/>"}}}
			kept.Touch = []*mirror.Record{{ID: "trace", State: mirror.Unseen}}
			filed := first("http://d.example/", 3)
			filed.Documents = []*mirror.DocumentRecord{{URL: "http://d.example/1", Names: []string{"http://d.example/1"}}}
			return []*mirror.Commit{first("http://z.example/", 2), first("http://known.example/", 1), kept, filed, first("http://z.example/", 1), first("http://empty.example/", 0)}
		}
		known := first("http://known.example/", 0)
		require.NoError(t, store.Commit(ctx, known))
		var stored [6]atomic.Int64
		var both sync.WaitGroup
		for _, backwards := range []bool{false, true} {
			both.Go(func() {
				commits := batch()
				if backwards {
					slices.Reverse(commits[2:4])
				}
				results, err := store.CommitNew(ctx, commits)
				assert.NoError(t, err)
				for i, err := range results {
					if err == nil {
						assert.EqualValues(t, 1, commits[i].Feed.Commits)
						stored[i].Add(1)
					} else {
						assert.ErrorIs(t, err, mirror.ErrConflict)
					}
				}
			})
		}
		both.Wait()
		require.EqualValues(t, 2, stored[2].Load()+stored[3].Load())
		for i, want := range []int64{1, 0, -1, -1, 0, 1} {
			if want >= 0 {
				require.Equal(t, want, stored[i].Load(), i)
			}
		}
		require.NoError(t, other.Commit(ctx, first("http://known.example/", 0)))
		for i, c := range batch() {
			if i != 1 && i != 4 {
				require.NoError(t, other.Commit(ctx, c))
			}
		}
		require.Equal(t, everything(t, other), everything(t, store))
		require.Empty(t, check(t, store).Damages)
		require.Len(t, feedtest.All(t, store.Entries(ctx, mirror.Query{Search: "word"})), 6)
		_, err := store.CommitNew(ctx, []*mirror.Commit{known})
		require.ErrorContains(t, err, "is not the first")
	})
}
