package feedhistory

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every error of a request is a type of this package, whichever way it comes.
func TestErrorTypes(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("x", 10_000)) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "<feed>")
	})
	mux.HandleFunc("/encoded", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "compress")
		io.WriteString(w, "?")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, tc := range []struct {
		path string
		is   func(error) bool
		says string
	}{
		{"/missing", is[*StatusError], "404"},
		{"/large", is[*LimitError], "bytes"},
		{"/cut", is[*TruncatedError], "cut short"},
		{"/encoded", is[*EncodingError], `"compress"`},
		{"/slow", is[*TimeoutError], "headers"},
		{"/circle", is[*RefusedError], "redirects in a circle"},
	} {
		c := &Client{
			Policy: Policy{AllowPrivate: true}, Limits: Limits{Bytes: 1000},
			Timeouts: Timeouts{Headers: 50 * time.Millisecond}, Retry: Retry{Tries: 1},
		}
		_, err := c.Get(t.Context(), server.URL+tc.path)
		require.True(t, tc.is(err), "Get %s: %T: %v", tc.path, err, err)
		require.ErrorContains(t, err, tc.says)
		_, _, _, err = c.Ask(t.Context(), server.URL+tc.path, nil)
		require.True(t, tc.is(err), "Ask %s: %T: %v", tc.path, err, err)
		answer, err := c.Do(t.Context(), http.MethodGet, server.URL+tc.path, "")
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		require.True(t, tc.is(err), "Do %s: %T: %v", tc.path, err, err)
		_, err = c.Fetch(t.Context(), server.URL+tc.path)
		require.True(t, tc.is(err), "Fetch %s: %T: %v", tc.path, err, err)
		c.CloseIdle()
	}
	_, err := new(Client).Get(t.Context(), "ftp://example.org/feed")
	require.EqualError(t, err, `fetch "ftp://example.org/feed": refused: unsupported scheme: "ftp"`)
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, error(&TimeoutError{}), &timeout)
	require.True(t, timeout.Timeout())
}

// A clone has settings of its own, and knows what hosts have asked of the other.
func TestClone(t *testing.T) {
	var agents []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.UserAgent()+" "+r.Header.Get("Authorization"))
		if len(agents) > 2 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	}))
	defer server.Close()
	first := &Client{UserAgent: "first", Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer first.CloseIdle()
	second := first.Clone()
	second.UserAgent = "second"
	second.Policy.Credentials = []Credential{{Origin: server.URL, Authorization: "Bearer 2"}}
	for _, c := range []*Client{first, second} {
		_, err := c.Get(t.Context(), server.URL)
		require.NoError(t, err)
	}
	_, err := second.Get(t.Context(), server.URL)
	require.True(t, IsStatus(err, http.StatusServiceUnavailable), "%v", err)
	_, err = first.Clone().Get(t.Context(), server.URL)
	status, ok := errors.AsType[*StatusError](err)
	require.True(t, ok && status.Remembered, "%v", err)
	require.Equal(t, []string{"first ", "second Bearer 2", "second Bearer 2"}, agents)
}

// A Transport of one's own keeps the guard by way of Dialer.
func TestDialer(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	transport := &http.Transport{DialContext: Dialer().DialContext, TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
	c := &Client{HTTP: &http.Client{Transport: transport}, Retry: Retry{Tries: 1}}
	_, err := c.Get(t.Context(), server.URL)
	refused, ok := errors.AsType[*RefusedError](err)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, RuleAddress, refused.Rule)
}
