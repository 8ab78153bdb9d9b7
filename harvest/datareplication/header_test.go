package datareplication

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// Header is called for each request to the origin of the feed, but neither for
// a snapshot nor for pages elsewhere.
func TestHeader(t *testing.T) {
	out := newMemory()
	p := newProducer(out)
	require.NoError(t, p.Append(t.Context(), entities(0, 9)...))
	require.NoError(t, p.Snapshot(t.Context(), feedtest.Values(entities(0, 30)...)))
	require.NoError(t, p.Append(t.Context(), entities(9, 9)...))
	own := serve(out).handler
	elsewhere := http.StripPrefix("/feed/", &Handler{FS: out, Base: "http://other.example/feed/"})
	var mu sync.Mutex
	asked, tokens := 0, map[string]bool{}
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Host == "example.org" {
			tokens[r.Header.Get("Authorization")] = true
			own.ServeHTTP(w, r)
			return
		}
		require.Empty(t, r.Header.Get("Authorization"))
		elsewhere.ServeHTTP(w, r)
	})}
	c := w.client()
	c.Snapshot = "http://other.example/feed/snapshot"
	c.Header = func(_ context.Context, url string) (http.Header, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		require.True(t, strings.HasPrefix(url, base))
		return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}}, nil
	}
	got, err := collect(c.Harvest(t.Context(), Mark{}))
	require.NoError(t, err)
	require.Len(t, got, 39)
	require.Greater(t, asked, 3)
	require.Len(t, tokens, asked) // each request had a different one
}
