package feedhistory

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseURL(t *testing.T) {
	for ref, want := range map[string]string{
		"https://example.org/a b?q=ü#c d":  "https://example.org/a%20b?q=%C3%BC#c%20d",
		"https://example.org/100%#50%":     "https://example.org/100%25#50%25",
		"https://example.org/a%2Fb#c%2Fd":  "https://example.org/a%2Fb#c%2Fd",
		"https://example.org#top":          "https://example.org#top",
		"//example.org/é":                  "//example.org/%C3%A9",
		"#é":                               "#%C3%A9",
		"https://example.org/a#b#c":        "https://example.org/a#b%23c",
		"https://example.org/feed?a=1&b=2": "https://example.org/feed?a=1&b=2",
	} {
		u, err := ParseURL(ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, u.String(), ref)
	}
	_, err := ParseURL("https://exa mple.org/")
	require.Error(t, err)
}

func TestHosts(t *testing.T) {
	require.Equal(t, "example.org", HostOf("https://Example.org.:443/a"))
	require.Equal(t, "example.org:8080", HostOf("http://example.org:8080"))
	require.Equal(t, "no url", HostOf("no url"))
	require.True(t, SameOrigin("https://example.org:443/a", "https://EXAMPLE.org/b"))
	require.False(t, SameOrigin("http://example.org/", "https://example.org/"))
	require.False(t, SameOrigin("", ""))
	require.Equal(t, "https://example.org/a@b", Redact("https://me:secret@example.org/a@b"))
}

// A login's parts are checked before they are sent, without quoting them.
func TestCredentialCheck(t *testing.T) {
	for _, c := range []Credential{
		{}, {Authorization: "Bearer abc"}, {Header: http.Header{"Cookie": {"a=b"}, "x-key": {"1", "2"}}},
	} {
		require.NoError(t, c.Check())
	}
	for _, c := range []Credential{
		{Authorization: "Bearer sec\nret"}, {Header: http.Header{"X-Key": {"sec\x00ret"}}},
		{Header: http.Header{"Host": {"secret"}}}, {Header: http.Header{"a b": {"secret"}}},
	} {
		require.Error(t, c.Check())
		require.NotContains(t, c.Check().Error(), "sec")
	}
}

func TestNewStatusError(t *testing.T) {
	recorded := httptest.NewRecorder()
	recorded.Header().Set("Retry-After", "90")
	recorded.WriteHeader(http.StatusTooManyRequests)
	err := NewStatusError(recorded.Result())
	require.Equal(t, 90*time.Second, err.RetryAfter)
	require.False(t, err.At.IsZero())
	require.Equal(t, http.StatusTooManyRequests, err.Status)
	require.Zero(t, NewStatusError(&http.Response{StatusCode: 404}).RetryAfter)
}
