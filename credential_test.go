package feedhistory

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A credential is for the scheme, host and port of its origin. The first for an origin counts,
// and its Authorization replaces a field of that name.
func TestSecrets(t *testing.T) {
	p := Policy{Credentials: []Credential{
		{Authorization: "nobody"}, {Origin: "http://[", Authorization: "nobody"}, {Origin: "a", Authorization: "nobody"}, {Origin: "http:///x", Authorization: "nobody"},
		{Origin: "https://a", Authorization: "secure"},
		{Origin: "http://A:80/x", Authorization: "a", Header: http.Header{"authorization": {"b"}, "x-key": {"c", "d"}}},
		{Origin: "http://a", Authorization: "second"},
		{Origin: "http://a:8080", User: "me", Password: "secret"},
		{Origin: "http://b", Header: http.Header{"Cookie": {"b"}}},
	}}
	for address, want := range map[string]http.Header{
		"http://a/feed":      {"Authorization": {"a"}, "X-Key": {"c", "d"}},
		"https://a:443/feed": {"Authorization": {"secure"}},
		"http://a:8080/":     {"Authorization": {"Basic bWU6c2VjcmV0"}},
		"http://b?x":         {"Cookie": {"b"}},
		"http://sub.a/":      nil,
		"http://a:81/":       nil,
		"https://b/":         nil,
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, want, p.secrets(u), address)
	}
}
