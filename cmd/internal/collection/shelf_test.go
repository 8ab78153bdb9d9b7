package collection

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/harvest/atompmh/shelftest"
)

func TestDiskShelf(t *testing.T) {
	s, err := newDiskShelf(t.Context())
	require.NoError(t, err)
	shelftest.Run(t, s)
	require.NoError(t, s.Close())
}

// An interrupt ends each operation.
func TestDiskShelfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := newDiskShelf(ctx)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.PutBlock(0, []byte("a block")))
	cancel()
	_, _, err = s.Get("a")
	require.Error(t, err)
	require.Error(t, s.Clear())
	require.Error(t, s.PutBlock(1, nil))
	for _, err := range s.All() {
		require.Error(t, err)
	}
}
