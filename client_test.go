package feedhistory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// CloseIdle closes the transport's idle connections, and the client still works afterwards.
func TestCloseIdle(t *testing.T) {
	new(Client).CloseIdle() // nothing is kept yet
	(&Client{Transport: feedtest.RoundTrip(nil)}).CloseIdle()

	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		transport := feedtest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, feed("urn:1", ""))
		}))
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled++
			return dial(ctx, network, address)
		}
		client := &Client{Transport: transport}
		for i, want := range []int{1, 1, 2, 2} {
			if i == 2 {
				client.CloseIdle()
			}
			_, err := client.Get(t.Context(), feedURL)
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, want, dialled)
		}
	})
}

// Each request and each decision is logged, and no event contains a secret.
func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &feedtest.Sites{Replies: map[string]feedtest.Reply{
			feedURL:                   feedtest.Redirect(301, "/new"),
			"http://a.example/new":    {Body: feed("urn:3", `<link rel="prev-archive" href="/2"/>`)},
			"http://a.example/2":      {Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="http://reader:SECRET@a.example/1"/>`)},
			"http://a.example/0":      {Status: 304},
			"http://a.example/secret": {Status: 403},
		}}
		var out bytes.Buffer
		client := clientOf(s)
		client.Policy.Credentials = []Credential{{Origin: "http://a.example", Authorization: "Bearer SECRET"}}
		client.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "duration" {
					return slog.Attr{}
				}
				return a
			},
		}))
		yields := walked(t, client, &WalkOptions{
			Known: func(url string) Known {
				return map[string]Known{"http://a.example/0": {ETag: `"0"`}}[url]
			},
			Pending: []string{"http://a.example/0", "http://a.example/secret"},
		})
		require.Len(t, yields, 5, "%q", yields)
		size := func(url string) string {
			n := strconv.Itoa(len(s.Replies[url].Body))
			return " bytes=" + n + " wire=" + n
		}
		require.Equal(t, strings.TrimLeft(`
msg=request url=http://a.example/feed method=GET conditional=false
msg=answer url=http://a.example/feed status=301
msg=redirect url=http://a.example/feed to=http://a.example/new status=301
msg=request url=http://a.example/new method=GET conditional=false
msg=answer url=http://a.example/new status=200
msg=body url=http://a.example/new`+size("http://a.example/new")+`
msg=request url=http://a.example/2 method=GET conditional=false
msg=answer url=http://a.example/2 status=200
msg=body url=http://a.example/2`+size("http://a.example/2")+`
msg=refusal url=http://a.example/1 rule=userinfo error="fetch \"http://a.example/1\": refused: a user or password in the URL"
msg=gap url=http://a.example/1 from=http://a.example/2 reason=refused error="fetch \"http://a.example/1\": refused: a user or password in the URL"
msg=request url=http://a.example/0 method=GET conditional=true
msg=answer url=http://a.example/0 status=304
msg=request url=http://a.example/secret method=GET conditional=false
msg=answer url=http://a.example/secret status=403
msg=gap url=http://a.example/secret from="" reason=status error="fetch \"http://a.example/secret\": status 403 Forbidden"
`, "\n"), withoutFailures(out.String()))
		require.Contains(t, out.String(), "msg=failure url=http://a.example/secret error=")
		require.NotContains(t, out.String(), "SECRET")
	})
}

// withoutFailures removes the events with the text of an error, which varies.
func withoutFailures(log string) string {
	var b strings.Builder
	for event := range strings.Lines(log) {
		if !strings.HasPrefix(event, "msg=failure ") {
			b.WriteString(event)
		}
	}
	return b.String()
}

// A credential is sent to its origin, for archives and after redirects as well, and nowhere
// else; no error shows it.
func TestCredentials(t *testing.T) {
	s := &feedtest.Sites{Replies: map[string]feedtest.Reply{
		feedURL:                   {Body: feed("urn:5", `<link rel="prev-archive" href="/5"/>`)},
		"http://a.example/5":      {Body: feed("urn:5a", `<fh:archive/><link rel="prev-archive" href="http://b.example/4"/>`)},
		"http://b.example/4":      {Body: feed("urn:4", `<fh:archive/><link rel="prev-archive" href="http://a.example:8080/3"/>`)},
		"http://a.example:8080/3": {Body: feed("urn:3", `<fh:archive/><link rel="prev-archive" href="http://sub.a.example/2"/>`)},
		"http://sub.a.example/2":  feedtest.Redirect(302, "http://c.example/2"),
		"http://c.example/2":      {Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="http://c.example/1"/>`)},
		"http://c.example/1":      feedtest.Redirect(302, "http://a.example/1"),
		"http://a.example/1":      {Body: feed("urn:1", `<fh:archive/><link rel="prev-archive" href="http://A.EXAMPLE:80/0"/>`)},
		"http://A.EXAMPLE:80/0":   {Status: 403},
	}}
	client := clientOf(s)
	client.Policy.Credentials = []Credential{
		{Origin: "http://a.example", Authorization: "Bearer A"}, {Origin: "http://b.example/", Authorization: "Bearer B"},
		{Origin: "https://c.example", Authorization: "Bearer C"},
	}
	h, err := client.Fetch(t.Context(), feedURL)
	require.NoError(t, err)
	require.Equal(t, []string{
		"http://a.example/feed Authorization: Bearer A",
		"http://a.example/5 Authorization: Bearer A",
		"http://b.example/4 Authorization: Bearer B",
		"http://a.example:8080/3",
		"http://sub.a.example/2",
		"http://c.example/2",
		"http://c.example/1",
		"http://a.example/1 Authorization: Bearer A",
		"http://A.EXAMPLE:80/0 Authorization: Bearer A",
	}, s.Took())
	require.Len(t, h.Gaps, 1)
	require.NotContains(t, h.Gaps[0].Error(), "Bearer")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", client.Policy, client.Policy, client.Policy), "Bearer")
}

// So are further fields, except those that the Client itself sets.
func TestCredentialHeader(t *testing.T) {
	var got feedtest.List[string]
	other := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Add("other " + r.Header.Get("X-Key") + r.Header.Get("Cookie"))
		_, _ = io.WriteString(w, `<rss version="2.0"><channel/></rss>`)
	}))
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Add(r.URL.Path + " " + r.Header.Get("X-Key") + " " + r.Header.Get("Cookie"))
		http.Redirect(w, r, other.URL+"/feed", http.StatusFound)
	}))
	client := &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer client.CloseIdle()
	client.Policy.Credentials = []Credential{{Origin: server.URL, Header: http.Header{"x-key": {"k"}, "Cookie": {"c=1"}}}}
	_, err := client.Get(t.Context(), server.URL+"/feed")
	require.NoError(t, err)
	require.Equal(t, []string{"/feed k c=1", "other "}, got.All())
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", client.Policy, client.Policy, client.Policy), "c=1")
	for _, name := range []string{"Host", "User-Agent", "If-None-Match", "a b"} {
		own := client.Clone()
		own.Policy.Credentials = []Credential{{Origin: server.URL, Header: http.Header{name: {"x"}}}}
		_, err = own.Get(t.Context(), server.URL+"/feed")
		refused := feedtest.ErrorAs[*RefusedError](t, err, name)
		require.Equal(t, RuleHeader, refused.Rule)
	}
}

// A feed on a public host cannot make its readers connect to private ones. The feed comes
// from memory here, everything else through the package's own transport.
func TestPrivateAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	connected := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			connected <- conn
		}
		close(connected)
	}()

	safe := new(Client)
	defer safe.CloseIdle()
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "192.168.1.1", "172.16.0.1",
		"169.254.169.254", "100.64.0.1", "[fe80::1]", "[fc00::1]", "[64:ff9b::7f00:1]", "localhost",
	} {
		private := "http://" + host + ":" + port + "/archive"
		for _, first := range []feedtest.Reply{
			{Body: feed("urn:1", `<link rel="prev-archive" href="`+private+`"/>`)},
			{Body: feed("urn:1", `<link rel="prev-archive" href="http://a.example/redirects"/>`)},
		} {
			s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: first, "http://a.example/redirects": feedtest.Redirect(302, private)}}
			public := &feedtest.Line{Serve: s.Answer}
			client := clientOf(s)
			client.Transport = feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "a.example" {
					return public.RoundTrip(r)
				}
				_, err := safe.Get(r.Context(), r.URL.String())
				return nil, err
			})
			h, err := client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, Partial, h.Verdict())
			require.Len(t, h.Gaps, 1)
			require.Equal(t, ReasonRefused, h.Gaps[0].Reason, "%v", h.Gaps[0])
			refused := feedtest.ErrorAs[*RefusedError](t, h.Gaps[0])
			require.Equal(t, RuleAddress, refused.Rule)
			require.Equal(t, []string{"urn:1"}, ids(h.Entries))
		}
		_, err := Fetch(t.Context(), private)
		require.Equal(t, ReasonRefused, reasonOf(err), "%v", err)
	}
	require.NoError(t, listener.Close())
	require.Nil(t, <-connected, "a private address was talked to")
}

// Links that must not be followed are gaps, and cause no requests.
func TestForbiddenLinks(t *testing.T) {
	for _, link := range []string{
		"file:///etc/passwd", "ftp://a.example/1", "gopher://a.example/1", "javascript:alert(1)", "data:text/xml,x",
		"http://user:secret@a.example/1", "http:///1", "http://a.example:0/1", "http://a.example:99999/1", "urn:1",
	} {
		s := &feedtest.Sites{Replies: map[string]feedtest.Reply{feedURL: {Body: feed("urn:1", `<link rel="prev-archive" href="`+link+`"/>`)}}}
		h, err := clientOf(s).Fetch(t.Context(), feedURL)
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		require.Equal(t, ReasonRefused, h.Gaps[0].Reason, "%v", h.Gaps[0])
		require.Equal(t, []string{feedURL}, s.Took())
		require.NotContains(t, h.Gaps[0].Err.Error(), "secret")
	}
}
