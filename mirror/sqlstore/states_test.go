package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// Polls that are stored together are what Commit would have stored of each; feeds
// at other versions, and the rest of their states, stay as they are.
func TestUpdatePolls(t *testing.T) {
	ctx := t.Context()
	dsn := server.Database(t)
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
	db, err := sql.Open("pgx", server.Database(t))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	return store
}
