package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A feed that moves keeps everything, even to and from a very long address. A
// feed that has changed since it was read is not moved.
func TestMove(t *testing.T) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "feeds.db")))
	require.NoError(t, err)
	defer db.Close()
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	f := &mirror.Feed{URL: "https://example.org/a", Title: "Feed"}
	change := &mirror.Commit{Feed: f, Documents: []*mirror.DocumentRecord{{URL: "d", Names: []string{"d"}}}}
	change.Put = []*mirror.Record{{ID: "1", State: mirror.Live, Content: mirror.Content{Format: "atom", Data: "x", Title: "words"}}}
	require.NoError(t, store.Commit(t.Context(), change))
	stale := *f
	for _, to := range []string{"https://example.org/" + strings.Repeat("x", 3000), "https://example.org/b"} {
		from := f.URL
		require.NoError(t, store.Move(t.Context(), f, to))
		require.Equal(t, to, f.URL)
		_, err := store.Feed(t.Context(), from)
		require.ErrorIs(t, err, mirror.ErrNotFound)
		got, err := store.Feed(t.Context(), to)
		require.NoError(t, err)
		require.Equal(t, f, got)
		_, err = store.Document(t.Context(), to, "d")
		require.NoError(t, err)
		found := feedtest.All(t, store.Entries(t.Context(), mirror.Query{Search: "words"}))
		require.Len(t, found, 1)
		require.Equal(t, to, found[0].Feed)
	}
	require.ErrorIs(t, store.Move(t.Context(), &stale, "https://example.org/c"), mirror.ErrConflict)
	now := *f
	now.Commits--
	require.ErrorIs(t, store.Move(t.Context(), &now, "https://example.org/c"), mirror.ErrConflict)

	other := &mirror.Feed{URL: "https://example.org/other"}
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: other}))
	require.Error(t, store.Move(t.Context(), f, other.URL), "where another feed is")
	got, err := store.Feed(t.Context(), "https://example.org/b")
	require.NoError(t, err)
	require.Equal(t, "Feed", got.Title)
}
