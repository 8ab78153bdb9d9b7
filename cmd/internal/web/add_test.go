package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of an address without a scheme, the error is that of the scheme whose server answered;
// without an answer, it names no address of this machine.
func TestErrorOfTheRightScheme(t *testing.T) {
	w := newWorld(t, nil)
	host := strings.TrimPrefix(w.site.URL, "http://")
	for typed, want := range map[string]string{
		host + "/nowhere.atom":      "There is nothing at this address: the answer was 404",
		"127.0.0.1:1/feed.atom":     "The address cannot be read now: connection refused",
		"http://127.0.0.1:1/f.atom": "The address cannot be read now: connection refused",
	} {
		status, body, _ := w.post(url.Values{"url": {typed}})
		require.NotEqual(t, http.StatusInternalServerError, status)
		require.Contains(t, body, want)
		require.NotContains(t, body, "dial tcp")
	}
}
