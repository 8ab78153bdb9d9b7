package website_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/website"
)

// A website changes from poll to poll, answers conditional requests, and can be
// reset.
func TestPolls(t *testing.T) {
	s, err := website.New("-- /a --\nX-Validate: true\n\nfirst {{host}}\n-- /a@3 --\nthird\n-- /b --\nStatus: none\n")
	require.NoError(t, err)
	require.NoError(t, s.Listen())
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path, etag string) (string, *http.Response) {
		req, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("If-None-Match", etag)
		resp, err := client.Do(req)
		if err != nil {
			return "", nil
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body), resp
	}
	first := "first " + s.URL[len("http://"):] + "\n"
	body, resp := get("/a", "")
	require.Equal(t, first, body)
	etag := resp.Header.Get("ETag")
	_, resp = get("/a", etag)
	require.Equal(t, http.StatusNotModified, resp.StatusCode)
	require.True(t, s.Next())
	body, _ = get("/a", "")
	require.Equal(t, first, body)
	require.True(t, s.Next())
	require.Equal(t, 3, s.Poll())
	body, _ = get("/a", etag)
	require.Equal(t, "third\n", body)
	_, resp = get("/b", "")
	require.Nil(t, resp)

	type seen struct{ poll, status int }
	var got []seen
	for _, r := range s.Requests() {
		got = append(got, seen{r.Poll, r.Status})
	}
	require.Equal(t, []seen{{1, 200}, {1, 304}, {2, 200}, {3, 200}, {3, 0}}, got)
	s.Reset()
	require.Empty(t, s.Requests())
	body, _ = get("/a", "")
	require.Equal(t, first, body)
	_, err = website.New("-- /a@x --\n")
	require.Error(t, err)
}
