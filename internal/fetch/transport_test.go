package fetch

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// tlsServer is a server on the loopback that speaks HTTP/2 too, and a client
// that trusts it.
func tlsServer(t *testing.T, f http.HandlerFunc) (*Client, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(f)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := &Client{AllowPrivate: true, Tries: 1}
	c.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	t.Cleanup(c.CloseIdle)
	return c, server.URL
}

// TestPrivate tries to reach addresses that are not public.
func TestPrivate(t *testing.T) {
	c := &Client{Tries: 1}
	defer c.CloseIdle()
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
		"169.254.169.254", "168.63.129.16", "192.80.8.124", "100.100.100.200", "192.0.0.192", "[fd00:ec2::254]", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]",
		"[64:ff9b::7f00:1]", "[2001:db8::1]", "[2002:7f00:1::]", "[ff02::1]",
		"localhost", "127.0.0.1:8080", "localhost:22",
	} {
		_, err := c.Do(t.Context(), Request{URL: "http://" + host + "/"})
		assert.Equal(t, "refused address", describe(err), "%s: %v", host, err)
		assert.ErrorIs(t, err, ssrf.ErrProhibitedIP, host)
	}
}

// TestRedirectToPrivate redirects from a public server to a private one. The guard allows only the
// address of the first.
func TestRedirectToPrivate(t *testing.T) {
	secret := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "secret") }))
	public := feedtest.Server(t, http.RedirectHandler(secret.URL, http.StatusFound))
	c := &Client{Tries: 1}
	defer c.CloseIdle()
	guardian := ssrf.New(ssrf.WithAnyPort())
	c.control = func(network, address string, conn syscall.RawConn) error {
		if address == public.Listener.Addr().String() {
			return nil
		}
		return guardian.Safe(network, address, conn)
	}
	got, _ := outcome(c, Request{URL: public.URL})
	assert.Equal(t, "do: refused address", got)
}

// TestRebinding uses a name that changes from a public address to a private one. The guard checks the
// address of each dial, so the change does not help.
func TestRebinding(t *testing.T) {
	var lookups atomic.Int32
	c := &Client{Tries: 1}
	defer c.CloseIdle()
	c.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go nameServer(theirs, func() [4]byte {
			if lookups.Add(1) == 1 {
				return [4]byte{93, 184, 215, 14}
			}
			return [4]byte{127, 0, 0, 1}
		})
		return ours, nil
	}}
	errPublic := errors.New("would connect")
	guardian := ssrf.New(ssrf.WithAnyPort())
	c.control = func(network, address string, conn syscall.RawConn) error {
		if err := guardian.Safe(network, address, conn); err != nil {
			return err
		}
		return errPublic // the tests do not talk to the world
	}
	_, err := c.Do(t.Context(), Request{URL: "http://rebind.example./"})
	assert.ErrorIs(t, err, errPublic)
	_, err = c.Do(t.Context(), Request{URL: "http://rebind.example./"})
	assert.Equal(t, "refused address", describe(err))
}

// nameServer answers questions for IPv4 addresses on one connection.
func nameServer(conn net.Conn, address func() [4]byte) {
	defer conn.Close()
	for {
		query := make([]byte, 514)
		if _, err := io.ReadFull(conn, query[:2]); err != nil {
			return
		}
		n, err := io.ReadFull(conn, query[2:2+int(query[0])<<8+int(query[1])])
		var m dnsmessage.Message
		if err != nil || m.Unpack(query[2:2+n]) != nil {
			return
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: address()},
			}}
		}
		reply, err := m.AppendPack(make([]byte, 2))
		if err != nil {
			return
		}
		reply[0], reply[1] = byte((len(reply)-2)>>8), byte(len(reply)-2)
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

// TestNoProxy names a proxy in the environment.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://proxy.example:3128")
	}
	bubble(t, func(t *testing.T, w *world) {
		w.serve("example.org", says(ok("x")))
		got, _ := outcome(w.client(), Request{URL: "http://example.org/"})
		assert.Equal(t, "ok 200", got)
		outcome(w.client(), Request{URL: "https://example.org/"})
		assert.Equal(t, []string{"example.org:80", "example.org:443"}, w.dialled)
	})
}

// TestHTTP2 checks the faults that look different in HTTP/2.
func TestHTTP2(t *testing.T) {
	c, url := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/headers":
			for range 100 {
				w.Header().Add("X", strings.Repeat("x", 1000))
			}
		case "/cut":
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, gzipOf([]byte("abc")))
		default:
			io.WriteString(w, r.Proto)
		}
	})
	for path, want := range map[string]string{
		"/": "ok 200", "/headers": "do: limit headers", "/cut": "read: truncated", "/gzip": "ok 200",
	} {
		got, _ := outcome(c, Request{URL: url + path})
		assert.Equal(t, want, got, path)
	}
	resp, err := c.Do(t.Context(), Request{URL: url})
	require.NoError(t, err)
	proto, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	assert.Equal(t, "HTTP/2.0", string(proto))
}

// TestCertificate checks that a bad certificate is refused without a second try.
func TestCertificate(t *testing.T) {
	c, url := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	c.RootCAs, c.Tries, c.Base, c.MaxWait = nil, 0, time.Hour, time.Hour
	got, _ := outcome(c, Request{URL: url})
	assert.Equal(t, "do: network", got)
}

// A roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCallersTransport checks the rules that do not depend on the transport.
func TestCallersTransport(t *testing.T) {
	var seen feedtest.List[*http.Request]
	c := &Client{Tries: 1, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		seen.Add(r)
		resp := &http.Response{StatusCode: 200, Header: make(http.Header), Request: r}
		switch r.URL.Path {
		case "/":
			resp.StatusCode = 302
			resp.Header.Set("Location", "/body")
			resp.Header.Set("Set-Cookie", "a=b")
		case "/body":
			resp.Body = io.NopCloser(strings.NewReader("body"))
		case "/short":
			resp.Body = io.NopCloser(strings.NewReader("body"))
			resp.ContentLength = 5
		case "/headers":
			resp.Header.Set("X", block)
		case "/error":
			return nil, errors.New("no")
		}
		return resp, nil
	})}
	for path, want := range map[string]string{
		"/": "ok 200", "/body": "ok 200", "/none": "ok 200",
		"/short": "read: truncated", "/headers": "do: limit headers", "/error": "do: network",
	} {
		got, n := outcome(c, Request{URL: "http://127.0.0.1" + path})
		assert.Equal(t, want, got, path)
		if want == "ok 200" && path != "/none" {
			assert.EqualValues(t, 4, n, path)
		}
	}
	cookies := 0
	for _, r := range seen.All() {
		cookies += len(r.Header["Cookie"])
		assert.NotContains(t, r.Header, "Referer")
	}
	assert.Equal(t, 1, cookies, "only the redirect's own request has its cookie")
	c.CloseIdle() // a transport that keeps no connections has nothing to close
}
