package atompmh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// Header is called for each request to the origin of the feed, and its fields
// go nowhere else, whatever links and redirects there are.
func TestHeader(t *testing.T) {
	docs := map[string]string{
		"https://example.org/feed": feed(day(3), "https://example.org/moved", record("urn:c", day(3))),
		"https://example.org/2":    feed(day(2), "https://other.example/1", record("urn:b", day(2))),
		"https://other.example/1":  feed(day(1), "", strings.Replace(record("urn:a", day(1)), "example.org", "other.example", 1)),
		"https://example.org/c":    "c", "https://example.org/b": "b", "https://other.example/a": "a",
	}
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "https://example.org/2", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, docs[r.URL.String()])
	})}
	asked := 0
	h := Harvester{
		HTTP: w.client(), URL: "https://example.org/feed", Parallel: 1,
		Header: func(_ context.Context, url string) (http.Header, error) {
			require.True(t, strings.HasPrefix(url, "https://example.org/"), url)
			asked++
			return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}, "x-key": {"k"}}, nil
		},
	}
	harvest := h.Harvest(t.Context(), Mark{})
	n := 0
	for _, f := range feedtest.All(t, h.Fetch(t.Context(), harvest.Changes())) {
		require.NoError(t, f.Err)
		require.Len(t, f.Body, 1)
		n++
	}
	require.Equal(t, 3, n)
	tokens := 0
	for _, r := range w.requests {
		if r.URL.Host == "example.org" {
			tokens++
			require.Equal(t, fmt.Sprint("Bearer ", tokens), r.Header.Get("Authorization"))
			require.Equal(t, "k", r.Header.Get("X-Key"))
		} else {
			require.Empty(t, r.Header.Get("Authorization"))
			require.Empty(t, r.Header.Get("X-Key"))
		}
	}
	require.Equal(t, 5, tokens)
	require.Len(t, w.requests, 7)

	failed := errors.New("the token has expired")
	h.Header = func(context.Context, string) (http.Header, error) { return nil, failed }
	for _, err := range h.Harvest(t.Context(), Mark{}).Changes() {
		require.ErrorIs(t, err, failed)
	}
	require.Len(t, w.requests, 7)
}
