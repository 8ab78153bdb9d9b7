package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/examples/site"
)

func TestRun(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, client, home+site.Archived))
	require.Equal(t, `gofeed: Liftoff News, 2 items
Client.Get: Liftoff News, 2 items
Client.Fetch: Liftoff News, 4 items, whole
Client.Poll: has changed since: false
`, out.String())
	require.Error(t, run(t.Context(), &out, client, home+"/nowhere"))
}

// A program can use the items as it used gofeed's.
func TestSameItems(t *testing.T) {
	client, home, stop := site.Start()
	defer stop()
	for _, path := range []string{site.Archived, site.Complete, site.Paged, site.Plain} {
		old, err := before(t.Context(), home+path)
		require.NoError(t, err)
		now, err := latest(t.Context(), client, home+path)
		require.NoError(t, err)
		require.Equal(t, old.Title, now.Title)
		require.Len(t, now.Items, len(old.Items))
		for i, item := range old.Items {
			require.Equal(t, item.GUID, now.Items[i].GUID)
			require.Equal(t, item.Title, now.Items[i].Title)
			require.Equal(t, item.PublishedParsed, now.Items[i].PublishedParsed)
			require.Equal(t, item.UpdatedParsed, now.Items[i].UpdatedParsed)
		}
	}
}
