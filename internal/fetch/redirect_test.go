package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A site answers by "host/path", and records its requests.
type site struct {
	pages map[string]string
	seen  feedtest.List[*http.Request]
}

func (s *site) answer(conn net.Conn, r *http.Request) {
	s.seen.Add(r)
	text, found := s.pages[r.Host+r.URL.RequestURI()]
	if !found {
		text = status(404)
	}
	io.WriteString(conn, text)
}

// put serves the site's pages in the world, each of their hosts at port 80.
func (s *site) put(w *world) {
	for page := range s.pages {
		host, _, _ := strings.Cut(page, "/")
		w.serve(host, answers(s.answer))
	}
}

func to(code int, location string) string { return status(code, "Location: "+location) }

func TestRedirects(t *testing.T) {
	tests := []struct {
		name  string
		pages map[string]string
		url   string
		want  string
		last  string // Response.URL
		moved string // Response.Permanent
	}{
		{"none", map[string]string{"a/": ok("x")}, "http://a/", "ok 200", "http://a/", ""},
		{"fragment", map[string]string{"a/": ok("x")}, "http://a/#f", "ok 200", "http://a/", ""},
		{"a cookie on the way", map[string]string{
			"a/": to(302, "/w"), "a/w": status(302, "Location: /b", "Set-Cookie: v=7; Path=/"), "a/b": ok("x"),
		}, "http://a/", "ok 200", "http://a/b", ""},
		{"301", map[string]string{"a/": to(301, "/b"), "a/b": ok("x")}, "http://a/", "ok 200", "http://a/b", "http://a/b"},
		{"302", map[string]string{"a/": to(302, "/b"), "a/b": ok("x")}, "http://a/", "ok 200", "http://a/b", ""},
		{"303", map[string]string{"a/": to(303, "/b"), "a/b": ok("x")}, "http://a/", "ok 200", "http://a/b", ""},
		{"307", map[string]string{"a/": to(307, "/b"), "a/b": ok("x")}, "http://a/", "ok 200", "http://a/b", ""},
		{"308", map[string]string{"a/": to(308, "/b"), "a/b": ok("x")}, "http://a/", "ok 200", "http://a/b", "http://a/b"},
		{"relative", map[string]string{"a/x/y?z": to(301, "../b?q#f"), "a/b?q": ok("x")}, "http://a/x/y?z", "ok 200", "http://a/b?q", "http://a/b?q"},
		{"a percent sign", map[string]string{"a/": to(301, "/100%/b?c=%z#%"), "a/100%25/b?c=%25z": ok("x")}, "http://a/", "ok 200", "http://a/100%25/b?c=%25z", "http://a/100%25/b?c=%25z"},
		{"an escaped slash, and what must be escaped", map[string]string{"a/": to(301, "//b/x%2Fy|\xe9 z"), "b/x%2Fy%7C%E9%20z": ok("x")}, "http://a/", "ok 200", "http://b/x%2Fy%7C%E9%20z", "http://b/x%2Fy%7C%E9%20z"},
		{"a percent sign in the request", map[string]string{"a/100%25?%25": ok("x")}, "http://a/100%?%", "ok 200", "http://a/100%25?%25", ""},
		{"to a host with a percent sign", map[string]string{"a/": to(301, "//b%zz/")}, "http://a/", "do: refused url", "", ""},
		{"other host", map[string]string{"a/": to(301, "//b/"), "b/": ok("x")}, "http://a/", "ok 200", "http://b/", "http://b/"},
		{"permanent, then not", map[string]string{"a/": to(301, "/b"), "a/b": to(302, "/c"), "a/c": to(301, "/d"), "a/d": ok("x")}, "http://a/", "ok 200", "http://a/d", "http://a/b"},
		{"temporary, then not", map[string]string{"a/": to(302, "/b"), "a/b": to(301, "/c"), "a/c": ok("x")}, "http://a/", "ok 200", "http://a/c", ""},
		{"five", hops(5), "http://a/0", "ok 200", "http://a/5", "http://a/5"},
		{"six", hops(6), "http://a/0", "do: refused redirects", "", ""},
		{"to itself", map[string]string{"a/": to(301, "/")}, "http://a/", "do: refused loop", "", ""},
		{"to itself, only the fragment differs", map[string]string{"a/": to(301, "/#x")}, "http://a/", "do: refused loop", "", ""},
		{"in a circle", map[string]string{"a/": to(301, "/b"), "a/b": to(301, "/")}, "http://a/", "do: refused loop", "", ""},
		{"nowhere", map[string]string{"a/": status(301)}, "http://a/", "do: refused location", "", ""},
		{"to nonsense", map[string]string{"a/": to(301, "http://[")}, "http://a/", "do: refused url", "", ""},
		{"to a file", map[string]string{"a/": to(301, "file:///etc/passwd")}, "http://a/", "do: refused scheme", "", ""},
		{"to gopher", map[string]string{"a/": to(301, "gopher://a/")}, "http://a/", "do: refused scheme", "", ""},
		{"to a script", map[string]string{"a/": to(301, "javascript:alert(1)")}, "http://a/", "do: refused scheme", "", ""},
		{"to a user", map[string]string{"a/": to(301, "http://me:secret@a/b")}, "http://a/", "do: refused userinfo", "", ""},
		{"to a long URL", map[string]string{"a/": to(301, "/"+strings.Repeat("x", 9000))}, "http://a/", "do: refused length", "", ""},
		{"to the dead", map[string]string{"a/": to(301, "/b"), "a/b": status(410)}, "http://a/", "do: status 410", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := &site{pages: test.pages}
				s.put(w)
				c := w.client()
				got, _ := outcome(c, Request{URL: test.url})
				require.Equal(t, test.want, got)
				if resp, err := c.Do(t.Context(), Request{URL: test.url}); err == nil {
					assert.Equal(t, test.last, resp.URL)
					assert.Equal(t, test.moved, resp.Permanent)
					assert.Equal(t, test.url, resp.Requested)
					resp.Body.Close()
				}
			})
		})
	}
}

// hops returns a chain of n redirects.
func hops(n int) map[string]string {
	pages := map[string]string{fmt.Sprintf("a/%d", n): ok("x")}
	for i := range n {
		pages[fmt.Sprintf("a/%d", i)] = to(301, fmt.Sprintf("/%d", i+1))
	}
	return pages
}

// TestDowngrade needs a server with a certificate for the first hop.
func TestDowngrade(t *testing.T) {
	c, secure := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/", http.StatusMovedPermanently)
	})
	got, _ := outcome(c, Request{URL: secure})
	assert.Equal(t, "do: refused downgrade", got)
}

// TestHeaders checks everything that is sent, hop by hop.
func TestHeaders(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cookie := "Set-Cookie: id=1; Domain=a; Path=/"
		s := &site{pages: map[string]string{
			"a/":      status(302, "Location: /b", cookie),
			"a/b":     status(302, "Location: //b/", cookie),
			"b/":      to(302, "http://a:8080/"),
			"a:8080/": ok("x"),
		}}
		s.put(w)
		c := w.client()
		c.UserAgent = "reader/1"
		c.Secrets = func(u *url.URL) http.Header {
			return map[string]http.Header{"a": {"authorization": {"Basic a"}}, "b": {"Authorization": {"Basic b"}}}[u.Host]
		}
		got, _ := outcome(c, Request{URL: "http://a/", Accept: "application/atom+xml", ETag: `W/"1`, LastModified: "yesterday"})
		require.Equal(t, "ok 200", got)
		require.Len(t, s.seen.All(), 4)
		for i, r := range s.seen.All() {
			want := http.Header{
				"User-Agent":      {"reader/1"},
				"Accept":          {"application/atom+xml"},
				"Accept-Encoding": {"gzip, zstd"},
			}
			if i < 2 { // the origin that was asked for
				want["If-None-Match"] = []string{`W/"1`}
				want["If-Modified-Since"] = []string{"yesterday"}
				want["Authorization"] = []string{"Basic a"}
			}
			if i == 1 || i == 3 { // a cookie belongs to its host (RFC 6265 §5.4)
				want["Cookie"] = []string{"id=1"}
			}
			if i == 2 {
				want["Authorization"] = []string{"Basic b"}
			}
			assert.Equal(t, want, r.Header, "hop %d", i)
		}
	})
}

// TestGone checks that a 410 after a temporary redirect is not final.
func TestGone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{"a/": status(410), "a/301": to(301, "/"), "a/302": to(302, "/"), "a/404": status(404)}}
		s.put(w)
		c := w.client()
		for path, want := range map[string]bool{"/": true, "/301": true, "/302": false, "/404": false} {
			_, err := c.Do(t.Context(), Request{URL: "http://a" + path})
			refusal, isStatus := err.(*Failure)
			require.True(t, isStatus, "%v", err)
			assert.Equal(t, want, refusal.Gone, path)
		}
	})
}

// TestValidated checks that the validators of another origin are sent there, and only there.
func TestValidated(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := &site{pages: map[string]string{"a/": to(302, "http://b/x"), "b/x": status(304, `Etag: "2"`)}}
		s.put(w)
		c := w.client()
		req := Request{URL: "http://a/", ETag: `"1"`, LastModified: "then"}
		got, _ := outcome(c, req)
		assert.Equal(t, "do: status 304", got)

		req.Validated = "http://b/x"
		s.seen.Took()
		resp, err := c.Do(t.Context(), req)
		require.NoError(t, err)
		assert.Equal(t, 304, resp.Status)
		assert.Equal(t, `"2"`, resp.ETag)
		assert.Equal(t, "then", resp.LastModified) // not repeated, so still in force
		n, err := io.Copy(io.Discard, resp.Body)
		assert.Zero(t, n)
		assert.NoError(t, err)
		seen := s.seen.All()
		assert.Empty(t, seen[0].Header["If-None-Match"])
		assert.Equal(t, `"1"`, seen[1].Header.Get("If-None-Match"))

		req.Validated = "http://["
		got, _ = outcome(c, req)
		assert.Equal(t, "do: status 304", got)
	})
}

func TestRefused(t *testing.T) {
	tests := []struct {
		req  Request
		want string
	}{
		{Request{}, "url"},
		{Request{URL: "example.org/feed"}, "url"},
		{Request{URL: "//example.org/feed"}, "url"},
		{Request{URL: "ftp://example.org/"}, "scheme"},
		{Request{URL: "file:///etc/passwd"}, "scheme"},
		{Request{URL: "unix:///var/run/docker.sock"}, "scheme"},
		{Request{URL: "http://user@example.org/"}, "userinfo"},
		{Request{URL: "http://@example.org/"}, "userinfo"},
		{Request{URL: "http:///feed"}, "url"},
		{Request{URL: "http://:80/"}, "url"},
		{Request{URL: "http:example.org"}, "url"},
		{Request{URL: "http://example.org:0/"}, "url"},
		{Request{URL: "http://example.org:65536/"}, "url"},
		{Request{URL: "http://exa mple.org/"}, "url"},
		{Request{URL: "http://example.org\n/"}, "url"},
		{Request{URL: "http://example.org/" + strings.Repeat("x", 9000)}, "length"},
		{Request{URL: "http://example.org/", Method: "POST"}, "method"},
		{Request{URL: "http://example.org/", ETag: "\"1\"\r\nHost: evil"}, "header"},
		{Request{URL: "http://example.org/", Accept: "\x00"}, "header"},
	}
	bubble(t, func(t *testing.T, w *world) {
		for _, test := range tests {
			_, err := w.client().Do(context.Background(), test.req)
			assert.Equal(t, "refused "+test.want, describe(err), "%.80q", test.req.URL)
		}
		assert.Empty(t, w.dialled)
	})
}

func TestHead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var methods feedtest.List[string]
		w.serve("a", answers(func(conn net.Conn, r *http.Request) {
			methods.Add(r.Method)
			if r.URL.Path == "/" {
				io.WriteString(conn, to(303, "/b"))
			} else {
				io.WriteString(conn, head+"Content-Encoding: br\r\nContent-Length: 99999999\r\n\r\n")
			}
		}))
		got, n := outcome(w.client(), Request{URL: "http://a/", Method: http.MethodHead})
		assert.Equal(t, "ok 200", got)
		assert.Zero(t, n)
		assert.Equal(t, []string{"HEAD", "HEAD"}, methods.All())
	})
}

// A cookie that a redirect sets is sent as long as its request is redirected, to its host alone.
func TestCookies(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) { testCookies(t, w) })
}

func testCookies(t *testing.T, w *world) {
	sent := map[string]string{}
	site := func(conn net.Conn, r *http.Request) {
		page := r.Host + r.URL.Path
		sent[page] = r.Header.Get("Cookie")
		text := ok("x")
		switch {
		case page == "a/welcome":
			text = status(302, "Location: /", "Set-Cookie: visitor=7; Path=/")
		case page == "a/" && sent[page] == "":
			text = to(302, "/welcome")
		case page == "a/":
			text = to(302, "http://b/")
		case page == "a/circle":
			text = status(302, "Location: /circle", "Set-Cookie: visitor=7; Path=/")
		}
		io.WriteString(conn, text)
	}
	w.serve("a", answers(site))
	w.serve("b", answers(site))
	c := w.client()
	for range 2 { // nothing is kept for the second
		got, _ := outcome(c, Request{URL: "http://a/"})
		require.Equal(t, "ok 200", got)
		require.Equal(t, map[string]string{"a/welcome": "", "a/": "visitor=7", "b/": ""}, sent)
		clear(sent)
	}
	got, _ := outcome(c, Request{URL: "http://a/circle"})
	require.Equal(t, "do: refused loop", got)
}

// Whatever some resolver reads as a private address is refused behind a proxy.
func TestNumericHosts(t *testing.T) {
	for host, want := range map[string]string{
		"127.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "0x7f.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1",
		"0": "0.0.0.0", "10.1": "10.0.0.1", "169.254.43518": "169.254.169.254", "2852039166": "169.254.169.254", "6425673729": "127.0.0.1",
		"[::1]": "", "example": "", "0x7f.example": "", "1.2.3.4.5": "", "127..1": "", "8.8.8.8": "8.8.8.8", "089.1": "89.0.0.1", "0xg": "",
	} {
		ip, ok := numericHost(host)
		if want == "" {
			require.False(t, ok, host)
			continue
		}
		require.Equal(t, want, ip.String(), host)
	}
	proxy := func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example") }
	c := &Client{Proxy: proxy, Tries: 1}
	for _, host := range []string{"127.1", "2130706433", "0X7F000001", "0177.0.0.1.", "0", "10.1", "169.254.43518", "１２７.0.0.1", "127。0。0。1", "①②⑦.１", "ⓛocalhost", "LOCALHOST。"} {
		_, err := c.Do(context.Background(), Request{URL: "http://" + host + "/"})
		require.ErrorContains(t, err, RuleAddress, host)
	}
}
