package pgtest

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestServer(t *testing.T) {
	s, err := Start()
	if errors.Is(err, ErrMissing) {
		(*Server)(nil).Database(t) // skips, or fails
	}
	require.NoError(t, err)
	first, second := s.Database(t), s.Database(t)
	require.NotEqual(t, first, second)
	for _, url := range []string{first, second} {
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "CREATE TABLE t (c TEXT)")
		require.NoError(t, err, "each is a different database")
		require.NoError(t, conn.Close(t.Context()))
	}
	conn, err := pgx.Connect(t.Context(), s.Copy(t, second))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES ('a')")
	require.NoError(t, err, "a copy has the tables")
	require.NoError(t, conn.Close(t.Context()))
	s.Durable(t)
	conn, err = pgx.Connect(t.Context(), first)
	require.NoError(t, err)
	var fsync string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT setting FROM pg_file_settings WHERE name = 'fsync' AND applied").Scan(&fsync))
	require.Equal(t, "on", fsync)
	require.NoError(t, conn.Close(t.Context()))
	require.NoError(t, s.Stop())
	require.NoDirExists(t, s.directory)
	_, err = pgx.Connect(t.Context(), first)
	require.Error(t, err)
}

func TestMissing(t *testing.T) {
	t.Setenv("FEEDHISTORY_POSTGRES", "")
	var outcome *testing.T
	t.Run("skipped", func(t *testing.T) {
		outcome = t
		(*Server)(nil).Database(t)
		t.Error("it was not skipped")
	})
	require.True(t, outcome.Skipped())
}
