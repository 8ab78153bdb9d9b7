package main

import (
	"bufio"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// get URL FILE writes the answer of a URL to a file.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] get URL FILE")
	}
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if neg != (resp.StatusCode != http.StatusOK) {
		ts.Fatalf("%s: %s", args[0], resp.Status)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// secure DIR serves a directory over TLS, at TLS and, by a name that the certificate
// does not have, at TLSOTHER. ca.pem is its authority.
func secure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: secure DIR")
	}
	server := httptest.NewTLSServer(siteOf(ts, args[0]))
	ts.Defer(server.Close)
	ts.Setenv("TLS", server.URL)
	ts.Setenv("TLSOTHER", strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o600))
}

// guard DIR serves a directory at PRIVATE to those who log in as ann with the
// password s3cret, or have the token t0ken or the key k3y; others get 401.
func guardSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: guard DIR")
	}
	files := siteOf(ts, args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user == "ann" && password == "s3cret" || r.Header.Get("Authorization") == "Bearer t0ken" || r.Header.Get("X-Key") == "k3y" {
			files(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	ts.Defer(func() { end(server) })
	ts.Setenv("PRIVATE", server.URL)
}

// proxy starts a proxy at PROXY, which notes each URL in the file "proxied".
func proxySite(ts *testscript.TestScript, neg bool, args []string) {
	notes, err := os.Create(ts.MkAbs("proxied"))
	ts.Check(err)
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = notes.WriteString(r.URL.String() + "\n")
		forward.ServeHTTP(w, r)
	}))
	ts.Defer(func() { end(server); _ = notes.Close() })
	ts.Setenv("PROXY", server.URL)
}

// A proxy may have a private address; the server that it connects to may not.
func TestProxyGuard(t *testing.T) {
	var asked atomic.Int64
	proxy := feedtest.Server(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	for _, address := range []string{
		"http://127.0.0.1/", "http://[::1]/", "http://10.1.2.3:8080/", "http://localhost/", "http://x.localhost./", "http://169.254.169.254/",
	} {
		f := &network.Flags{Proxy: proxy.URL, MaxDocumentBytes: 1 << 20}
		require.NoError(t, f.Prepare())
		_, err := f.Client(nil).Get(t.Context(), address)
		require.True(t, explain.IsPrivate(err), "%s: %v", address, err)
		require.Zero(t, asked.Load())
	}
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "127.0.0.2")
	f := &network.Flags{MaxDocumentBytes: 1 << 20}
	require.NoError(t, f.Prepare())
	_, err := f.Client(nil).Get(t.Context(), "http://127.0.0.2:1/")
	require.True(t, explain.IsPrivate(err), "%v", err)
	u, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	require.True(t, f.IsProxy(u.Host))
	require.False(t, f.IsProxy("127.0.0.2:1"))
}

// The message about a proxy that requires a login names the proxy, whatever the request.
func TestProxyLogin(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	for _, scheme := range []string{"http", "https"} {
		status, _, stderr := call(t.Context(), "", "fetch", "--proxy", proxy.URL, scheme+"://feed.invalid/")
		require.Equal(t, exit.Failed, status)
		require.Contains(t, stderr, "the proxy requires a user and a password", scheme)
	}
}

// The status of a proxy's answer counts, because the proxy chooses the words.
func TestProxyRefuses(t *testing.T) {
	feedtest.Long(t)
	for status, want := range map[string]string{
		"407 Ask Us First": "https://feed.invalid/: the proxy answers 407 Proxy Authentication Required; the proxy requires a user",
		"502 Sorry":        "https://feed.invalid/: the proxy answers 502 Bad Gateway; check the address and the proxy",
	} {
		proxy, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer proxy.Close()
		go func() {
			for {
				conn, err := proxy.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
		}()
		code, _, stderr := call(t.Context(), "", "fetch", "--proxy", "http://"+proxy.Addr().String(), "https://feed.invalid/")
		require.Equal(t, exit.Failed, code)
		require.Contains(t, stderr, want)
	}
}
