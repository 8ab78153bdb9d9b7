package publish

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// What is nil or empty is an error that says so; nothing is published.
func TestNilAndEmpty(t *testing.T) {
	out := &MemoryOutput{}
	p := &Publisher{Output: out, Base: "https://example.org/"}
	for _, entries := range [][]*feedhistory.Entry{{nil}, {{}}, {{Links: feedhistory.Links{{Rel: "alternate", Href: "https://example.org/1"}}}}} {
		require.ErrorIs(t, p.Append(t.Context(), entries...), ErrNoID)
		require.ErrorIs(t, p.Correct(t.Context(), entries[0]), ErrNoID)
		require.ErrorIs(t, p.AppendHistory(t.Context(), &feedhistory.History{Entries: entries}), ErrNoID)
		_, err := p.Publish(t.Context(), Batch{Entries: entries})
		require.ErrorIs(t, err, ErrNoID)
	}
	require.ErrorContains(t, p.AppendHistory(t.Context(), nil), "the history is nil")
	require.ErrorContains(t, new(Publisher).Append(t.Context()), "Output must be set")
	_, err := out.Open("feed.atom")
	require.True(t, isNotExist(err))
}

// A call whose context has ended publishes nothing, leaves no file, and frees the lock.
func TestCancelled(t *testing.T) {
	out := &MemoryOutput{}
	p := &Publisher{Output: out, Base: "https://example.org/", Split: feedhistory.Split{Size: 2}}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := feedhistory.Draft{ID: "urn:1", Updated: epoch.AddDate(30, 0, 0)}.Entry()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, p.Append(ctx, e), context.Canceled)
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.NoError(t, p.Append(t.Context(), e))
}
