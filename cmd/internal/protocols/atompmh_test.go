package protocols

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/atompmh/shelftest"
)

func TestDiskShelf(t *testing.T) {
	s, err := newDiskShelf(t.Context())
	require.NoError(t, err)
	shelftest.Run(t, s)
	require.NoError(t, s.Close())
}

// An interrupt ends each operation, with the context's error.
func TestDiskShelfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := newDiskShelf(ctx)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.PutBlock(0, []byte("a block")))
	cancel()
	_, _, err = s.Get("a")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Put(atompmh.Held{Key: "a"}), context.Canceled)
	require.ErrorIs(t, s.Clear(), context.Canceled)
	require.ErrorIs(t, s.PutBlock(1, nil), context.Canceled)
	_, err = s.Block(0)
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range s.All() {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A disk without room is an error that names the place.
func TestDiskShelfFull(t *testing.T) {
	s, err := newDiskShelf(t.Context())
	require.NoError(t, err)
	defer s.Close()
	_, err = s.tx.ExecContext(t.Context(), "PRAGMA max_page_count=10")
	require.NoError(t, err)
	for n := range 1000 {
		if err = s.PutBlock(n, make([]byte, 10_000)); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "TMPDIR")
	require.ErrorContains(t, err, "full")
}
