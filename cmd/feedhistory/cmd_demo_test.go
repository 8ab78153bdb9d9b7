package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/stretchr/testify/require"
)

// Each feed is of its kind, all its entries are found, and check has nothing to report
// of it.
func TestFeeds(t *testing.T) {
	var site http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.ServeHTTP(w, r) }))
	defer server.Close()
	var err error
	site, err = newDemoSite(t.Context(), server.URL)
	require.NoError(t, err)
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	for _, tc := range []struct {
		path    string
		kind    feedhistory.Kind
		verdict feedhistory.Verdict
		entries int
	}{
		{demoArchived, feedhistory.KindArchived, feedhistory.VerdictWhole, 40},
		{demoPaged, feedhistory.KindPaged, feedhistory.VerdictLossy, 30},
		{demoComplete, feedhistory.KindComplete, feedhistory.VerdictWhole, 8},
	} {
		require.Contains(t, demoFeeds, tc.path)
		history, err := client.Fetch(t.Context(), server.URL+tc.path)
		require.NoError(t, err)
		require.Equal(t, tc.kind, history.Kind, tc.path)
		require.Equal(t, tc.verdict, history.Verdict(), tc.path)
		require.Len(t, history.Entries, tc.entries, tc.path)
		var chain check.Chain
		for finding, err := range chain.Check(t.Context(), client, server.URL+tc.path) {
			require.NoError(t, err)
			require.NotEqual(t, check.Error, finding.Level, "%s: %v", tc.path, finding)
		}
	}
}
