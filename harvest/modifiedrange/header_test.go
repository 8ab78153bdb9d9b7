package modifiedrange

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// Header is called for each request to the origin of the collection, and its
// fields go nowhere else.
func TestHeader(t *testing.T) {
	collection := groups(1, 1, 1, 1).handler(2)
	hosts := map[string]int{}
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts[r.URL.Host]++
		if r.URL.Host == "example.org" {
			require.Equal(t, fmt.Sprint("Bearer ", hosts[r.URL.Host]), r.Header.Get("Authorization"))
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
			return
		}
		require.Empty(t, r.Header.Get("Authorization"))
		r.Header.Set(fieldModifiedRange, "/")
		collection.ServeHTTP(w, r)
	})}
	c := w.client()
	asked := 0
	c.Header = func(context.Context, string) (http.Header, error) {
		asked++
		return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}}, nil
	}
	_, _ = feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Documents())
	require.Greater(t, asked, 1)
	require.Equal(t, asked, hosts["example.org"])
	require.Equal(t, asked, hosts["other.example"])

	c.Header = func(context.Context, string) (http.Header, error) { return http.Header{"Host": {"other"}}, nil }
	_, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Documents())
	require.ErrorAs(t, err, new(*feedhistory.RefusedError))
}
