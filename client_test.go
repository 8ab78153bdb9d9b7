package feedhistory_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// digestOf returns the digest of a body.
func digestOf(body string) string {
	_, digest, _ := (&fetch.Response{Body: io.NopCloser(strings.NewReader(body))}).Text("", nil)
	return digest
}

// A nil Client is an error of each method that has one, and so is a Client's impossible
// setting. The nil History of a feed without an answer is unknown.
func TestNilClient(t *testing.T) {
	for says, c := range map[string]*feedhistory.Client{"the Client is nil": nil, "Client.Tries is negative": {Tries: -1}} {
		h, fetch := c.Fetch(t.Context(), "http://example.org/")
		_, get := c.Get(t.Context(), "http://example.org/")
		_, poll := c.Poll(t.Context(), "http://example.org/", feedhistory.Known{})
		_, discover := c.Discover(t.Context(), "http://example.org/")
		_, other := c.HTTPClient().Get("http://example.org/")
		for _, err := range []error{fetch, get, poll, discover, other} {
			require.ErrorContains(t, err, says)
		}
		require.Nil(t, h)
		require.Equal(t, feedhistory.VerdictUnknown, h.Verdict())
		require.Zero(t, c.Wait("http://example.org/"))
		c.CloseIdle()
		_, err := c.Clone().Get(t.Context(), "ftp://example.org/")
		require.Error(t, err)
	}
}

// The header of a response, such as a cookie, is not in the JSON of a document or a history.
func TestHeadersNotInJSON(t *testing.T) {
	s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
		feedURL:                    {Body: feed("urn:2", `<link rel="prev-archive" href="http://a.example/archive"/>`), Header: []string{"Set-Cookie: session=s3cret"}},
		"http://a.example/archive": {Status: http.StatusForbidden, Header: []string{"Set-Cookie: session=s3cret"}},
	}}
	client := clientOf(s)
	doc, err := client.Get(t.Context(), feedURL)
	require.NoError(t, err)
	require.Equal(t, "session=s3cret", doc.Response.Header.Get("Set-Cookie"))
	h, err := client.Fetch(t.Context(), feedURL)
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	for _, value := range []any{doc, h, doc.Entries[0], h.Gaps[0], h.Gaps[0].Err} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.NotContains(t, string(text), "s3cret", "%T", value)
	}
}

// CloseIdle closes the transport's idle connections, and the client still works afterwards.
func TestCloseIdle(t *testing.T) {
	new(feedhistory.Client).CloseIdle() // nothing is kept yet
	(&feedhistory.Client{AllowPrivate: true, Transport: feedtest.RoundTrip(nil)}).CloseIdle()

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
		client := &feedhistory.Client{AllowPrivate: true, Transport: transport}
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
		s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
			feedURL:                   feedtest.RedirectTo(301, "/new"),
			"http://a.example/new":    {Body: feed("urn:3", `<link rel="prev-archive" href="/2"/>`)},
			"http://a.example/2":      {Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="http://reader:SECRET@a.example/1"/>`)},
			"http://a.example/0":      {Status: 304},
			"http://a.example/secret": {Status: 403},
		}}
		var out bytes.Buffer
		client := clientOf(s)
		client.Credentials = []feedhistory.Credential{{Origin: "http://a.example", Header: http.Header{"Authorization": {"Bearer SECRET"}}}}
		client.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "duration" {
					return slog.Attr{}
				}
				return a
			},
		}))
		yields := walked(t, client, &chain.Memory[feedhistory.Known, *feedhistory.Document]{
			Known: func(url string) feedhistory.Known {
				return map[string]feedhistory.Known{"http://a.example/0": {ETag: `"0"`}}[url]
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
	s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
		feedURL:                   {Body: feed("urn:5", `<link rel="prev-archive" href="/5"/>`)},
		"http://a.example/5":      {Body: feed("urn:5a", `<fh:archive/><link rel="prev-archive" href="http://b.example/4"/>`)},
		"http://b.example/4":      {Body: feed("urn:4", `<fh:archive/><link rel="prev-archive" href="http://a.example:8080/3"/>`)},
		"http://a.example:8080/3": {Body: feed("urn:3", `<fh:archive/><link rel="prev-archive" href="http://sub.a.example/2"/>`)},
		"http://sub.a.example/2":  feedtest.RedirectTo(302, "http://c.example/2"),
		"http://c.example/2":      {Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="http://c.example/1"/>`)},
		"http://c.example/1":      feedtest.RedirectTo(302, "http://a.example/1"),
		"http://a.example/1":      {Body: feed("urn:1", `<fh:archive/><link rel="prev-archive" href="http://A.EXAMPLE:80/0"/>`)},
		"http://A.EXAMPLE:80/0":   {Status: 403},
	}}
	client := clientOf(s)
	client.Credentials = []feedhistory.Credential{
		{Origin: "http://a.example", Header: http.Header{"Authorization": {"Bearer A"}}}, {Origin: "http://b.example/", Header: http.Header{"Authorization": {"Bearer B"}}},
		{Origin: "https://c.example", Header: http.Header{"Authorization": {"Bearer C"}}},
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
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", client.Credentials, client.Credentials, client.Credentials), "Bearer")
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
	client := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	defer client.CloseIdle()
	client.Credentials = []feedhistory.Credential{{Origin: server.URL, Header: http.Header{"x-key": {"k"}, "Cookie": {"c=1"}}}}
	_, err := client.Get(t.Context(), server.URL+"/feed")
	require.NoError(t, err)
	require.Equal(t, []string{"/feed k c=1", "other "}, got.All())
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", client.Credentials, client.Credentials, client.Credentials), "c=1")
	for _, name := range []string{"Host", "User-Agent", "If-None-Match", "a b"} {
		own := client.Clone()
		own.Credentials = []feedhistory.Credential{{Origin: server.URL, Header: http.Header{name: {"x"}}}}
		_, err = own.Get(t.Context(), server.URL+"/feed")
		refused := feedtest.ErrorAs[*feedhistory.FetchError](t, err, name)
		require.ErrorContains(t, refused, "invalid header field")
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

	safe := new(feedhistory.Client)
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
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: first, "http://a.example/redirects": feedtest.RedirectTo(302, private)}}
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
			require.Equal(t, feedhistory.VerdictPartial, h.Verdict())
			require.Len(t, h.Gaps, 1)
			require.Equal(t, feedhistory.ReasonRefused, h.Gaps[0].Reason, "%v", h.Gaps[0])
			refused := feedtest.ErrorAs[*feedhistory.FetchError](t, h.Gaps[0])
			require.ErrorIs(t, refused, feedhistory.ErrPrivateAddress)
			require.Equal(t, []string{"urn:1"}, ids(h.Entries))
		}
		_, err := feedhistory.Fetch(t.Context(), private)
		require.Equal(t, feedhistory.ReasonRefused, feedhistory.NewGap("", err).Reason, "%v", err)
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
		s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Body: feed("urn:1", `<link rel="prev-archive" href="`+link+`"/>`)}}}
		h, err := clientOf(s).Fetch(t.Context(), feedURL)
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		require.Equal(t, feedhistory.ReasonRefused, h.Gaps[0].Reason, "%v", h.Gaps[0])
		require.Equal(t, []string{feedURL}, s.Took())
		require.NotContains(t, h.Gaps[0].Err.Error(), "secret")
	}
}

// A credential is for the scheme, host and port of its origin. The first for an origin counts,
// and its Authorization replaces a field of that name.
func TestSecrets(t *testing.T) {
	var sent http.Header
	p := feedhistory.Client{Tries: 1, AllowPrivate: true, Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		sent = http.Header{}
		for _, name := range []string{"Authorization", "X-Key", "Cookie"} {
			if values := r.Header[name]; values != nil {
				sent[name] = values
			}
		}
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
	}), Credentials: []feedhistory.Credential{
		{Header: http.Header{"Authorization": {"nobody"}}}, {Origin: "http://[", Header: http.Header{"Authorization": {"nobody"}}}, {Origin: "a", Header: http.Header{"Authorization": {"nobody"}}}, {Origin: "http:///x", Header: http.Header{"Authorization": {"nobody"}}},
		{Origin: "https://a", Header: http.Header{"Authorization": {"secure"}}},
		{Origin: "http://A:80/x", Header: http.Header{"authorization": {"a"}, "x-key": {"c", "d"}}},
		{Origin: "http://a", Header: http.Header{"Authorization": {"second"}}},
		{Origin: "http://a:8080", User: "me", Password: "secret"},
		{Origin: "http://b", Header: http.Header{"Cookie": {"b"}}},
	}}
	for address, want := range map[string]http.Header{
		"http://a/feed":      {"Authorization": {"a"}, "X-Key": {"c", "d"}},
		"https://a:443/feed": {"Authorization": {"secure"}},
		"http://a:8080/":     {"Authorization": {"Basic bWU6c2VjcmV0"}},
		"http://b?x":         {"Cookie": {"b"}},
		"http://sub.a/":      {},
		"http://a:81/":       {},
		"https://b/":         {},
	} {
		_, err := p.Get(t.Context(), address)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Equal(t, want, sent, address)
	}
}

const discoverSite = `
-- /page --
Content-Type: text/html

<!doctype html><link rel=alternate type=application/rss+xml href=/feed.rss><link rel=alternate type=application/atom+xml href=/feed.atom title=News>
-- /comments --
Content-Type: text/html

<!doctype html><link rel=alternate type=application/atom+xml href=/comments.atom title=Comments><link rel=alternate type=application/atom+xml href=/feed.atom title=News>
-- /sloppy --
Content-Type: text/html

<title>x</title><p>no root, &nbsp; <br><link rel=alternate type=application/atom+xml href=f>
-- /xhtml --
Content-Type: application/xhtml+xml

<html xmlns="http://www.w3.org/1999/xhtml"><head><base href="/dir/"/><link rel="alternate" type="application/atom+xml" href="f"/></head></html>
-- /mislabelled --
Content-Type: text/html

<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>Feed</title><entry><id>urn:1</id></entry></feed>
-- /sub/bare.html --
Content-Type: text/html

<html><body>nothing</body></html>
-- /feed.xml --
Content-Type: text/html

<html>not here
-- /atom.xml --
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>Known</title></feed>
-- /data.xml --
<opml/>
-- /data.json --
{}
`

func TestDiscover(t *testing.T) {
	site := feedtest.Serve(t, discoverSite)
	c := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	defer c.CloseIdle()
	atom := func(path, title string) feedhistory.Links {
		return feedhistory.Links{{Rel: "alternate", Href: site.URL + path, Type: "application/atom+xml", Title: title}}
	}
	for path, want := range map[string]feedhistory.Links{
		"/page":          atom("/feed.atom", "News"),
		"/page#top":      atom("/feed.atom", "News"),
		"/comments":      append(atom("/feed.atom", "News"), feedhistory.Link{Rel: "replies", Href: site.URL + "/comments.atom", Type: "application/atom+xml", Title: "Comments"}),
		"/sloppy":        atom("/f", ""),
		"/xhtml":         atom("/dir/f", ""),
		"/mislabelled":   atom("/mislabelled", "Feed"),
		"/sub/bare.html": atom("/atom.xml", "Known"),
		"/data.xml":      nil,
		"/data.json":     nil,
	} {
		links, err := c.Discover(t.Context(), site.URL+path)
		require.NoError(t, err, path)
		require.Equal(t, want, links, path)
	}
	_, err := c.Discover(t.Context(), site.URL+"/nothing")
	feedtest.ErrorAs[*feedhistory.FetchError](t, err)
	refused := &feedhistory.Client{}
	_, err = refused.Discover(t.Context(), site.URL+"/page")
	feedtest.ErrorAs[*feedhistory.FetchError](t, err)
}

func TestNotFeedError(t *testing.T) {
	site := feedtest.Serve(t, discoverSite)
	c := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	defer c.CloseIdle()
	for path, page := range map[string]bool{"/page": true, "/sloppy": true, "/sub/bare.html": true, "/data.xml": false, "/data.json": false} {
		_, err := c.Fetch(t.Context(), site.URL+path)
		other := feedtest.ErrorAs[*feedhistory.ParseError](t, err, path)
		require.Equal(t, page, errors.Is(err, feedhistory.ErrWebPage), path)
		require.Equal(t, site.URL+path, other.URL)
		require.Equal(t, feedhistory.ReasonNotFeed, other.Reason)
		require.Equal(t, feedhistory.ReasonNotFeed, feedhistory.NewGap("", err).Reason)
	}
}

// A page that names one feed in several formats has the others, too.
func TestNotFeedFormats(t *testing.T) {
	site := feedtest.Serve(t, `
-- /page --
Content-Type: text/html

<!doctype html><title>Harbour</title><link rel="alternate" type="application/rss+xml" title="Harbour" href="/index.rss"><link rel="alternate" type="application/atom+xml" title="Harbour" href="/index.atom"><link rel="alternate" type="application/rss+xml" title="Comments" href="/comments.rss">
`)
	c := &feedhistory.Client{AllowPrivate: true}
	defer c.CloseIdle()
	_, err := c.Get(t.Context(), site.URL+"/page")
	page := feedtest.ErrorAs[*feedhistory.ParseError](t, err)
	link := func(rel, kind, path, title string) feedhistory.Link {
		return feedhistory.Link{Rel: rel, Type: "application/" + kind, Href: site.URL + path, Title: title}
	}
	require.Equal(t, feedhistory.Links{
		link("alternate", "atom+xml", "/index.atom", "Harbour"), link("replies", "rss+xml", "/comments.rss", "Comments"),
	}, page.Feeds)
	require.Equal(t, map[string]feedhistory.Links{
		site.URL + "/index.atom": {link("alternate", "rss+xml", "/index.rss", "Harbour")},
	}, page.Formats)
}

// An answer that concerns the whole host ends the search.
func TestDiscoverStops(t *testing.T) {
	var asked atomic.Int32
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "<!doctype html>")
	}))
	c := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	defer c.CloseIdle()
	links, err := c.Discover(t.Context(), server.URL)
	require.Empty(t, links)
	feedtest.ErrorAs[*feedhistory.FetchError](t, err)
	require.EqualValues(t, 2, asked.Load())
}

func clientOf(s *feedtest.MemorySites) *feedhistory.Client {
	return &feedhistory.Client{AllowPrivate: true, Transport: &feedtest.Line{Serve: s.Answer}, PerHost: 1, Tries: 1}
}

// feed returns a document with one entry, after the given elements.
func feed(id, head string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">` + head +
		"<entry><id>" + id + "</id></entry></feed>"
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

const feedURL = "http://a.example/feed"

func TestPoll(t *testing.T) {
	text, broken := feed("urn:1", ""), "<feed><entry>"
	tests := []struct {
		name  string
		known feedhistory.Known
		reply feedtest.Reply
		want  string // "unchanged", "document", or the reason of the error
	}{
		{"304", feedhistory.Known{ETag: `"1"`}, feedtest.Reply{Status: 304}, "unchanged"},
		{"304, by date", feedhistory.Known{LastModified: "yesterday"}, feedtest.Reply{Status: 304}, "unchanged"},
		{"304 that nobody asked for", feedhistory.Known{}, feedtest.Reply{Status: 304}, "status"},
		{"304 though only a digest was known", feedhistory.Known{Digest: digestOf(text)}, feedtest.Reply{Status: 304}, "status"},
		{"the same bytes", feedhistory.Known{Digest: digestOf(text)}, feedtest.Reply{Body: text}, "unchanged"},
		{"the same bytes, in spite of validators", feedhistory.Known{ETag: `"1"`, Digest: digestOf(text)}, feedtest.Reply{Body: text}, "unchanged"},
		{"the same bytes, compressed", feedhistory.Known{Digest: digestOf(text)},
			feedtest.Reply{Header: []string{"Content-Encoding: gzip"}, Body: gzipped(text)}, "unchanged"},
		{"the same bytes, which are not parsed again", feedhistory.Known{Digest: digestOf(broken)}, feedtest.Reply{Body: broken}, "unchanged"},
		{"the same bytes, but cut short", feedhistory.Known{Digest: digestOf(text[:40])},
			feedtest.Reply{Header: []string{"Content-Length: " + strconv.Itoa(len(text))}, Body: text[:40]}, "truncated"},
		{"other bytes", feedhistory.Known{Digest: digestOf(text)}, feedtest.Reply{Body: text + " "}, "document"},
		{"the same length", feedhistory.Known{Digest: digestOf(text)}, feedtest.Reply{Body: feed("urn:2", "")}, "document"},
		{"nothing, again", feedhistory.Known{Digest: digestOf("")}, feedtest.Reply{}, "unchanged"},
		{"nothing known", feedhistory.Known{}, feedtest.Reply{Body: text}, "document"},
		{"other bytes, broken", feedhistory.Known{Digest: digestOf(text)}, feedtest.Reply{Body: broken}, "truncated"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: test.reply}}
			r, err := clientOf(s).Poll(t.Context(), feedURL, test.known)
			switch test.want {
			case "document":
				require.NoError(t, err)
				require.False(t, r.Unchanged)
				require.Equal(t, digestOf(test.reply.Body), r.Known.Digest)
				require.Equal(t, r.Known, r.Document.Known())
			case "unchanged":
				require.NoError(t, err)
				require.True(t, r.Unchanged)
				require.Nil(t, r.Document)
				require.Equal(t, test.known, r.Known)
				require.Equal(t, feedURL, r.Response.Requested)
				require.False(t, r.Response.Received.IsZero())
			default:
				require.Error(t, err)
				require.Equal(t, test.want, string(feedhistory.NewGap("", err).Reason), "%v", err)
			}
		})
	}
}

// A document's Known makes the next poll conditional, whatever the validators look like.
func TestPollValidators(t *testing.T) {
	for _, etag := range []string{
		``, `"1"`, `W/"1"`, `w/"1"`, `1`, `"`, `""`, `""1""`, `"1", "2"`, `W/"1-gzip"`, `"1;gzip"`, `'1'`, "\"\xe9t\xe9\"", `"été"`, `*`,
		`"` + strings.Repeat("x", 4000) + `"`,
	} {
		for _, date := range []string{
			``, "Sat, 1 Jan 2000 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT", "Saturday, 01-Jan-00 00:00:00 GMT",
			"2000-01-01T00:00:00Z", "0", "yesterday", "Sat, 01 Jan 2000 00:00:00 +0100",
		} {
			header, conditions := []string(nil), ""
			if etag != "" {
				header, conditions = append(header, "Etag: "+etag), " If-None-Match: "+etag
			}
			if date != "" {
				header, conditions = append(header, "Last-Modified: "+date), conditions+" If-Modified-Since: "+date
			}
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Header: header, Body: feed("urn:1", "")}}}
			client := clientOf(s)
			doc, err := client.Get(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, []string{feedURL}, s.Took())
			known := doc.Known()
			require.Equal(t, etag, known.ETag)
			require.Equal(t, date, known.LastModified)
			s.Replies[feedURL] = feedtest.Reply{Status: 304, Body: ""}
			if conditions == "" {
				s.Replies[feedURL] = feedtest.Reply{Body: feed("urn:1", "")}
			}
			unchanged, err := client.Poll(t.Context(), feedURL, known)
			require.NoError(t, err)
			require.True(t, unchanged.Unchanged)
			require.Equal(t, []string{feedURL + conditions}, s.Took())
			inForce, since := unchanged.Response.Validators()
			require.Equal(t, etag, inForce, "those that a 304 does not repeat stay in force")
			require.Equal(t, date, since)
		}
	}
}

// A 304 may give newer validators.
func TestPollNewValidators(t *testing.T) {
	s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Status: 304, Header: []string{`Etag: W/"2"`, "Cache-Control: max-age=60"}}}}
	unchanged, err := clientOf(s).Poll(t.Context(), feedURL, feedhistory.Known{ETag: `"1"`, LastModified: "then"})
	require.NoError(t, err)
	require.True(t, unchanged.Unchanged)
	require.Equal(t, 304, unchanged.Response.Status)
	require.Equal(t, `W/"2"`, unchanged.Known.ETag, "which replaces the one before (RFC 9111 §4.3.4)")
	etag, date := unchanged.Response.Validators()
	require.Equal(t, `W/"2"`, etag)
	require.Equal(t, "then", date)
	require.Equal(t, time.Minute, unchanged.Response.Fresh.Sub(unchanged.Response.Received))
}

// Validators are sent only to the origin that they came from, in any hop.
func TestPollValidatorsOfAnOrigin(t *testing.T) {
	const other = "http://b.example/feed"
	tests := []struct {
		name  string
		from  string // Known.URL
		other string // where it redirects to
		want  []string
	}{
		{"of where it leads", other, other, []string{feedURL, other + ` If-None-Match: "1"`}},
		{"of where it came from", feedURL, other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of the URL itself, if it does not say", "", other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of somewhere else", "http://c.example/feed", other, []string{feedURL, other}},
		{"of another port", "http://a.example:8080/feed", other, []string{feedURL, other}},
		{"of another scheme", "https://a.example/feed", other, []string{feedURL, other}},
		{"of the same port, written out", "http://a.example:80/feed", other, []string{feedURL + ` If-None-Match: "1"`, other}},
		{"of the same host", "http://A.example/other", "http://a.example/2",
			[]string{feedURL + ` If-None-Match: "1"`, `http://a.example/2 If-None-Match: "1"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
				feedURL: feedtest.RedirectTo(302, test.other), test.other: {Body: feed("urn:1", "")},
			}}
			r, err := clientOf(s).Poll(t.Context(), feedURL, feedhistory.Known{URL: test.from, ETag: `"1"`})
			require.NoError(t, err)
			require.Equal(t, test.want, s.Took())
			require.Equal(t, test.other, r.Known.URL)
			require.Equal(t, feedURL, r.Response.Requested)
		})
	}
}

// What a document says about itself is known when it has not changed.
func TestKnown(t *testing.T) {
	text := feed("urn:1", `<link rel="prev-archive" href="archive"/>`)
	s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Header: []string{`Etag: "1"`}, Body: text}}}
	doc, err := clientOf(s).Get(t.Context(), feedURL)
	require.NoError(t, err)
	require.Equal(t, feedhistory.Known{
		URL: feedURL, ETag: `"1"`, Digest: digestOf(text), Kind: feedhistory.KindArchived, Older: "http://a.example/archive",
	}, doc.Known())

	parsed, err := feedhistory.Parse(strings.NewReader(feed("urn:1", "")), feedURL)
	require.NoError(t, err)
	require.Equal(t, feedhistory.Known{URL: feedURL, Kind: feedhistory.KindPlain}, parsed.Known())
	require.Zero(t, parsed.Response)
	require.True(t, parsed.Schedule.Next(parsed.Response).IsZero())
}

func TestPermanent(t *testing.T) {
	tests := []struct {
		statuses []int // of the redirects, one after the other
		want     int   // how many of them are to be remembered
	}{
		{nil, 0}, {[]int{301}, 1}, {[]int{308}, 1}, {[]int{302}, 0}, {[]int{303}, 0}, {[]int{307}, 0},
		{[]int{301, 308}, 2}, {[]int{301, 302}, 1}, {[]int{302, 301}, 0}, {[]int{301, 307, 301}, 1},
	}
	for _, test := range tests {
		for _, final := range []feedtest.Reply{{Body: feed("urn:1", "")}, {Status: 304}} {
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{}}
			url := func(i int) string { return "http://a.example/" + strconv.Itoa(i) }
			for i, status := range test.statuses {
				s.Replies[url(i)] = feedtest.RedirectTo(status, url(i+1))
			}
			s.Replies[url(len(test.statuses))] = final
			want := ""
			if test.want > 0 {
				want = url(test.want)
			}
			r, err := clientOf(s).Poll(t.Context(), url(0), feedhistory.Known{ETag: `"1"`})
			require.NoError(t, err)
			require.Equal(t, want, r.Response.Permanent, "%v", test.statuses)
			if require.Equal(t, final.Status == 304, r.Unchanged); r.Unchanged {
				continue
			}
			require.Equal(t, url(len(test.statuses)), r.Document.URL)
		}
	}
}

// 410 is the end of a feed, unless a temporary redirect led there.
func TestGone(t *testing.T) {
	for status, want := range map[int]bool{0: true, 301: true, 308: true, 302: false, 307: false} {
		s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Status: 410}}}
		if status > 0 {
			s.Replies = map[string]feedtest.Reply{feedURL: feedtest.RedirectTo(status, "/gone"), "http://a.example/gone": {Status: 410}}
		}
		for _, poll := range []func(*feedhistory.Client) error{
			func(c *feedhistory.Client) error {
				_, err := c.Poll(t.Context(), feedURL, feedhistory.Known{ETag: `"1"`})
				return err
			},
			func(c *feedhistory.Client) error {
				_, err := c.Fetch(t.Context(), feedURL)
				return err
			},
		} {
			gone := feedtest.ErrorAs[*feedhistory.FetchError](t, poll(clientOf(s)))
			require.Equal(t, want, gone.Gone, "%d", status)
		}
	}
	s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Status: 404}}}
	_, err := clientOf(s).Get(t.Context(), feedURL)
	status := feedtest.ErrorAs[*feedhistory.FetchError](t, err)
	require.False(t, status.Gone)
}

// A client does not wait for a Retry-After longer than MaxWait: the error says when to ask
// again. Until then no client asks the host.
func TestRetryAfterBeyondMaxWait(t *testing.T) {
	for _, header := range []string{"Retry-After: 3600", "Retry-After: Sat, 01 Jan 2000 01:00:00 GMT"} {
		for _, code := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: {Status: code, Header: []string{header}}}}
				client := clientOf(s)
				client.Tries = 0
				start := time.Now()
				_, err := client.Get(t.Context(), feedURL)
				status := feedtest.ErrorAs[*feedhistory.FetchError](t, err)
				require.True(t, start.Add(time.Hour).Equal(status.RetryAt))
				require.NoError(t, status.Err)
				require.Equal(t, []string{feedURL}, s.Took())

				time.Sleep(time.Hour - time.Minute)
				_, err = client.Fetch(t.Context(), "http://a.example/other")
				require.ErrorAs(t, err, &status)
				require.ErrorContains(t, status, "from an earlier answer")
				require.Equal(t, code, status.Status)
				require.True(t, start.Add(time.Hour).Equal(status.RetryAt))
				require.Empty(t, s.Took(), "the host is left alone")

				time.Sleep(time.Minute)
				s.Replies[feedURL] = feedtest.Reply{Body: feed("urn:1", "")}
				_, err = client.Get(t.Context(), feedURL)
				require.NoError(t, err)
				require.True(t, start.Add(time.Hour).Equal(time.Now()))
			})
		}
	}
}

// An archive that must be requested later is a gap that says when; a short wait is not.
func TestRetryAfterOfAnArchive(t *testing.T) {
	for _, perHost := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			const archive = "http://a.example/archive"
			s := &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
				feedURL: {Body: feed("urn:2", `<link rel="prev-archive" href="/archive"/>`)},
				archive: {Status: 429, Header: []string{"Retry-After: 3600"}},
			}}
			client := clientOf(s)
			client.PerHost, client.Tries = perHost, 0
			h, err := client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Len(t, h.Gaps, 1)
			require.Equal(t, feedhistory.ReasonStatus, h.Gaps[0].Reason)
			status := feedtest.ErrorAs[*feedhistory.FetchError](t, h.Gaps[0])
			require.Equal(t, time.Hour, time.Until(status.RetryAt))
			require.Equal(t, []string{feedURL, archive}, s.Took())

			time.Sleep(time.Hour)
			started, asked := time.Now(), 0
			client.Transport.(*feedtest.Line).Serve = func(r *http.Request) feedtest.Reply {
				if asked++; asked == 2 {
					return feedtest.Reply{Status: 503, Header: []string{"Retry-After: 10"}}
				}
				return feedtest.Reply{Body: map[string]string{
					feedURL: s.Replies[feedURL].Body, archive: feed("urn:1", "<fh:archive/>"),
				}[r.URL.String()]}
			}
			h, err = client.Fetch(t.Context(), feedURL)
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWhole, h.Verdict())
			require.Equal(t, 10*time.Second, time.Since(started))
		})
	}
}

// A carelessFeed is a chain whose publisher may break each SHOULD of RFC 5005: its relations and
// marks are mixed, documents repeat entries, name others too, or have an id and a self of their own.
type carelessFeed []string

func (f carelessFeed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}
	if i, err := strconv.Atoi(r.URL.Path[1:]); err == nil && i < len(f) {
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(f[i]))
	}
	return resp, nil
}

var carelessFeeds = rapid.Custom(func(t *rapid.T) (f carelessFeed) {
	n := rapid.IntRange(1, 7).Draw(t, "documents")
	rels := []string{"prev-archive", "prev-archive", "prev-archive", "prev-archive", "next", "previous", "last", "next-archive"}
	rarely := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="%s"><title>T</title>`, feedxml.History)
		link := func(rel string, to int) { fmt.Fprintf(&b, `<link rel="%s" href="/%d"/>`, rel, to) }
		marked := i > 0 && rapid.Bool().Draw(t, "marked")
		if marked {
			b.WriteString("<fh:archive/>")
		}
		if id := "urn:feed"; rarely("no id") || marked && rarely("own id") {
			fmt.Fprintf(&b, "<id>%s:%d</id>", id, i)
		} else {
			fmt.Fprintf(&b, "<id>%s</id>", id)
		}
		if rarely("complete") {
			b.WriteString("<fh:complete/>")
		}
		if i+1 < n {
			link(rapid.SampledFrom(rels).Draw(t, "older"), i+1)
		}
		if i > 0 && rapid.Bool().Draw(t, "newer") {
			link("next-archive", rapid.SampledFrom([]int{i - 1, i - 1, 0, n - 1}).Draw(t, "newer is"))
		}
		if rarely("another") {
			link(rapid.SampledFrom(rels).Draw(t, "another by"), rapid.IntRange(0, n-1).Draw(t, "another is"))
		}
		if rarely("stale self") {
			link("self", rapid.IntRange(0, n-1).Draw(t, "self"))
		}
		fmt.Fprintf(&b, "<entry><id>urn:%d</id></entry>", i)
		if rarely("repeats") {
			b.Reset()
			fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><title>%d</title><id>urn:feed</id>`, i)
			if i+1 < n {
				link(rapid.SampledFrom(rels).Draw(t, "older again"), i+1)
			}
			fmt.Fprintf(&b, "<entry><id>urn:%d</id></entry>", max(i-1, 0))
		}
		b.WriteString("</feed>")
		f = append(f, b.String())
	}
	return f
})

// Whatever a publisher mixes up: what is called whole has every entry, and a walk reads no document
// twice.
func TestCarelessPublisher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := carelessFeeds.Draw(t, "feed")
		var requests atomic.Int64
		c := &feedhistory.Client{Tries: 1, NoGuess: true, PerHost: 1, Wrap: func(next http.RoundTripper) http.RoundTripper {
			return counting{next, &requests}
		}, AllowPrivate: true, Transport: f}
		h, err := c.Fetch(t.Context(), "http://example.org/0")
		require.NoError(t, err)
		require.LessOrEqual(t, int(requests.Load()), len(f)+1)
		if h.Verdict() != feedhistory.VerdictWhole {
			return
		}
		there := map[string]bool{}
		for _, e := range h.Entries {
			there[e.ID] = true
		}
		for _, text := range f {
			_, id, _ := strings.Cut(text, "<entry><id>")
			id, _, _ = strings.Cut(id, "<")
			require.True(t, there[id], "%s is missing", id)
		}
	})
}

type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}

// A subscriber is a small poll loop, as a user of the package would write it.
type subscriber struct {
	client   *feedhistory.Client
	url      string
	known    map[string]feedhistory.Known
	schedule feedhistory.Schedule
	archives map[string]bool // that have been stored
	entries  map[string]bool
	whole    bool // read the archives as well
}

const halfAnHour = 30 * time.Minute

// run polls until the given time, or until the feed is gone.
func (s *subscriber) run(ctx context.Context, until time.Time) {
	for time.Now().Before(until) {
		next, gone := s.poll(ctx)
		if gone {
			return
		}
		if now := time.Now(); next.Before(now.Add(halfAnHour)) {
			next = s.schedule.Next(feedhistory.Response{Received: now, Fresh: now.Add(halfAnHour)})
		}
		time.Sleep(max(time.Until(next), time.Minute)) // so that a mistake here is seen, and ends
	}
}

// poll asks once, and returns when to ask again.
func (s *subscriber) poll(ctx context.Context) (next time.Time, gone bool) {
	if !s.whole {
		return s.head(s.client.Poll(ctx, s.url, s.known[s.url]))
	}
	first := true
	for r, err := range walkFrom(ctx, s.client, s.url, &memory{
		Known:     func(url string) feedhistory.Known { return s.known[url] },
		Processed: func(url string) bool { return s.archives[url] },
	}) {
		if first {
			first = false
			next, gone = s.head(r, err)
		} else if err == nil && r.Document != nil {
			s.archives[r.Document.URL] = true
			s.store(r.Document)
		}
	}
	return next, gone
}

// head learns from the answer for the feed itself.
func (s *subscriber) head(r *feedhistory.Reading, err error) (next time.Time, gone bool) {
	status, _ := errors.AsType[*feedhistory.FetchError](err)
	var resp feedhistory.Response
	var known feedhistory.Known
	switch {
	case err == nil && r.Unchanged:
		resp, known = r.Response, r.Known
	case err == nil:
		s.store(r.Document)
		resp, known, s.schedule = r.Response, r.Known, r.Document.Schedule
	case status != nil && status.Gone:
		return time.Time{}, true
	case status != nil && !status.RetryAt.IsZero():
		return s.schedule.Next(feedhistory.Response{Received: time.Now(), Fresh: status.RetryAt}), false
	default:
		return time.Now().Add(time.Hour), false
	}
	if resp.Permanent != "" {
		s.url = resp.Permanent
	}
	s.known[s.url] = known
	return s.schedule.Next(resp), false
}

func (s *subscriber) store(doc *feedhistory.Document) {
	for _, e := range doc.Entries {
		s.entries[e.ID] = true
	}
}

const week = 7 * 24 * time.Hour

// A week of polls is a week of good manners.
func TestEtiquette(t *testing.T) {
	for _, whole := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatcher()
			s := &subscriber{
				client: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Pipe(t, w)}, url: "http://feed.example" + feedPath,
				known: map[string]feedhistory.Known{}, archives: map[string]bool{}, entries: map[string]bool{}, whole: whole,
			}
			s.run(t.Context(), time.Now().Add(week))
			t.Logf("whole history: %v\n%s", whole, w.Report())
			require.Empty(t, w.Broken(), "%s", w.Report())
			require.Equal(t, "http://feed.example"+movedPath, s.url)
			require.True(t, w.Gone)
			require.Greater(t, w.Unchanged, 30, "few polls were conditional with success")
			for _, what := range []string{"429", "503", "short 503", "moved"} {
				require.True(t, w.Told[what], what)
			}
			for n := range 6 { // what was there at the end of a day or so has come
				require.Equal(t, whole, s.entries[fmt.Sprintf("urn:old:%d", n)])
			}
			require.Greater(t, len(s.entries), 15)
		})
	}
}

// The watcher condemns a loop that polls every minute.
func TestEtiquetteCondemnsARudePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		client := &http.Client{Transport: feedtest.Pipe(t, w)}
		for range int(week / time.Minute) {
			resp, err := client.Get("http://feed.example" + feedPath)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			time.Sleep(time.Minute)
		}
		t.Logf("\n%s", w.Report())
		require.Equal(t, []string{
			ruleConditional, ruleVerbatim, ruleSpacing, ruleHours, ruleRetryAfter, ruleAgent,
			rulePrivate, // a Referer, after the redirect
			ruleMoved, ruleGone,
		}, w.Broken())
	})
}

// It also condemns one that polls every three hours and thinks it knows better.
func TestEtiquetteCondemnsASlyPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Transport: feedtest.Pipe(t, w), Jar: jar}
		etag, lastModified := "", ""
		for range 20 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://feed.example"+feedPath+"?nocache="+url.QueryEscape(time.Now().String()), nil)
			require.NoError(t, err)
			req.Header.Set("User-Agent", "sly/1.0 (+https://sly.example)")
			req.SetBasicAuth("user", "secret")
			if etag != "" {
				req.Header.Set("If-None-Match", strings.TrimPrefix(etag, "W/"))
			}
			if at, err := time.Parse("Mon, 2 Jan 2006 15:04:05 GMT", lastModified); err == nil {
				req.Header.Set("If-Modified-Since", at.Format(http.TimeFormat))
			}
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			etag, lastModified = resp.Header.Get("Etag"), resp.Header.Get("Last-Modified")
			time.Sleep(3 * time.Hour)
		}
		t.Logf("\n%s", w.Report())
		broken := w.Broken()
		for _, name := range []string{ruleVerbatim, rulePrivate, ruleQuery} {
			require.Contains(t, broken, name)
		}
		for _, name := range []string{ruleAgent, ruleGone} {
			require.NotContains(t, broken, name)
		}
	})
}

// A watcher is a website with one feed and its archives, which records how a visitor
// behaves. In a week the feed changes now and then, and so do its validators and its
// freshness. Twice the server asks the visitor to wait, once the feed moves, and in
// the end it is gone. Make one with newWatcher, in a synctest bubble.
type watcher struct {
	Told      map[string]bool // Told has the events that happened once: "429", "503", "short 503" and "moved".
	Gone      bool            // Gone reports whether the visitor has got a 410.
	Wasted    int             // Wasted is the number of requests for archives that do not exist.
	Unchanged int             // Unchanged is the number of answers with the status 304.

	mu        sync.Mutex
	start     time.Time
	documents map[string]*watchedDocument // by path, before the feed moved
	alone     time.Time                   // the server wants no request before
	moved     bool                        // a 301 has been given
	sent      bool                        // the last answer was that 301
	requests  int
	rules     []rule
	margin    time.Duration // the shortest time by which a request came later than allowed
}

// A watchedDocument is a document with its last answer.
type watchedDocument struct {
	etag, lastModified string    // as last given; "" means none
	given              bool      // it has been given at least once
	asked, again       time.Time // when it was requested, and when it may be again
}

// A rule is a line of the report.
type rule struct {
	name  string
	kept  int
	wrong []string
	note  string // the result, for the report
}

// The rules a watcher checks.
const (
	ruleConditional = "at most one unconditional request per URL"
	ruleVerbatim    = "validators echoed exactly"
	ruleSpacing     = "spacing as Cache-Control and ttl ask"
	ruleHours       = "skipHours kept"
	ruleRetryAfter  = "Retry-After kept"
	ruleAgent       = "User-Agent with a URL"
	rulePrivate     = "no Cookie, Referer or Authorization"
	ruleQuery       = "no URL that was not published"
	ruleMoved       = "permanent redirect remembered"
	ruleGone        = "no request after 410"
	ruleWasted      = "at most four requests in vain"
)

var allRules = []string{
	ruleConditional, ruleVerbatim, ruleSpacing, ruleHours, ruleRetryAfter, ruleAgent, rulePrivate, ruleQuery, ruleMoved, ruleGone, ruleWasted,
}

// newWatcher returns a website whose week begins now.
func newWatcher() *watcher {
	w := &watcher{start: time.Now(), margin: 1 << 62, Told: map[string]bool{}, documents: map[string]*watchedDocument{}}
	for _, name := range allRules {
		w.rules = append(w.rules, rule{name: name})
	}
	return w
}

// The paths of the feed, before and after it moves.
const (
	feedPath  = "/feed.rss"
	movedPath = "/moved/feed.rss"
)

// require records whether a request kept a rule.
func (w *watcher) require(name string, kept bool, format string, args ...any) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == name })]
	if kept {
		r.kept++
		return
	}
	r.wrong = append(r.wrong, w.elapsed().String()+": "+fmt.Sprintf(format, args...))
}

// Broken returns the rules broken, or put to the test by no request.
func (w *watcher) Broken() (names []string) {
	for _, r := range w.rules {
		if len(r.wrong) > 0 || r.kept == 0 {
			names = append(names, r.name)
		}
	}
	return names
}

// Report returns a table of the rules for people.
func (w *watcher) Report() string {
	var b strings.Builder
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%d requests in %v, %d of them answered with 304\n", w.requests, w.elapsed(), w.Unchanged)
	fmt.Fprintln(out, "rule\tkept\tbroken\t")
	for _, r := range w.rules {
		note := r.note
		if len(r.wrong) > 0 {
			note = "BAD: first after " + r.wrong[0]
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%s\n", r.name, r.kept, len(r.wrong), cmp.Or(note, "good"))
	}
	_ = out.Flush()
	return b.String()
}

func (w *watcher) elapsed() time.Duration { return time.Since(w.start) }

// once reports whether to do something now that is done once, after some hours.
func (w *watcher) once(what string, hours int) bool {
	if w.Told[what] || w.elapsed() < time.Duration(hours)*time.Hour {
		return false
	}
	w.Told[what] = true
	return true
}

// ServeHTTP implements http.Handler.
func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	name := r.URL.Path
	if name == movedPath {
		name = feedPath
	}
	d := w.documents[name]
	if d == nil {
		d = new(watchedDocument)
		w.documents[name] = d
	}
	w.watch(r, d)
	rw.Header().Set("Set-Cookie", "visitor=1; Path=/; Max-Age=31536000") // which must not come back, but for where a redirect leads
	switch {
	case time.Now().Before(w.alone):
		w.leaveAlone(rw, http.StatusTooManyRequests, "3600")
	case name != feedPath:
		w.archive(rw, r, d)
	case w.once("429", 30):
		w.alone = time.Now().Add(5400 * time.Second)
		w.leaveAlone(rw, http.StatusTooManyRequests, "5400")
	case w.once("503", 54):
		w.alone = time.Now().Add(4 * time.Hour).Truncate(time.Second)
		w.leaveAlone(rw, http.StatusServiceUnavailable, w.alone.UTC().Format(http.TimeFormat))
	case w.once("short 503", 80):
		w.alone = time.Now().Add(20 * time.Second)
		w.leaveAlone(rw, http.StatusServiceUnavailable, "20")
	case w.elapsed() > 160*time.Hour:
		w.Gone = true
		http.Error(rw, "withdrawn", http.StatusGone)
	case r.URL.Path == feedPath && (w.moved || w.once("moved", 100)):
		w.moved, w.sent = true, true
		rw.Header().Set("Location", movedPath)
		rw.WriteHeader(http.StatusMovedPermanently)
	default:
		w.feed(rw, r, d)
	}
}

func (w *watcher) leaveAlone(rw http.ResponseWriter, status int, retryAfter string) {
	rw.Header().Set("Retry-After", retryAfter)
	http.Error(rw, "busy", status)
}

// watch checks the rules on a request.
func (w *watcher) watch(r *http.Request, d *watchedDocument) {
	now := time.Now()
	etag, since := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
	if d.given && (d.etag != "" || d.lastModified != "") {
		w.require(ruleConditional, etag+since != "", "%s, though its validators are known", r.URL)
		w.require(ruleVerbatim, etag == d.etag && since == d.lastModified, "%s with %q and %q, which should be %q and %q",
			r.URL, etag, since, d.etag, d.lastModified)
	} else {
		w.require(ruleVerbatim, etag+since == "", "%s with %q and %q, which are of no answer", r.URL, etag, since)
	}
	w.require(ruleSpacing, !now.Before(d.again), "%s after %v, though %v was asked for", r.URL, now.Sub(d.asked), d.again.Sub(d.asked))
	w.require(ruleRetryAfter, !now.Before(w.alone), "%v before the time that it gave", w.alone.Sub(now))
	if r.URL.Path == feedPath || r.URL.Path == movedPath {
		hour := now.UTC().Hour()
		w.require(ruleHours, hour != 3 && hour != 4 || !d.given, "%s at %v", r.URL, now.UTC())
		w.require(ruleMoved, !w.moved || r.URL.Path == movedPath, "%s, which has moved", r.URL)
		w.require(ruleGone, !w.Gone, "%s, which is gone", r.URL)
	}
	agent := r.UserAgent()
	w.require(ruleAgent, strings.Contains(agent, "/") && strings.Contains(agent, "(+https://"), "%q", agent)
	for _, name := range []string{"Cookie", "Referer", "Authorization"} {
		onTheWay := name == "Cookie" && w.sent // what a redirect has set lives as long as its request
		w.require(rulePrivate, r.Header.Get(name) == "" || onTheWay, "%s: %q", name, r.Header.Get(name))
	}
	w.sent = false
	published := r.URL.Path == feedPath || r.URL.Path == movedPath && w.moved || strings.HasPrefix(r.URL.Path, "/archive/")
	w.require(ruleWasted, w.Wasted <= 4, "%s", r.URL)
	w.require(ruleQuery, published && r.URL.RawQuery == "", "%s", r.URL)
}

// edition counts the changes of the feed: one every four hours at first, and every
// eleven later.
func (w *watcher) edition() int {
	hours := int(w.elapsed().Hours())
	return 1 + min(hours, 40)/4 + max(hours-40, 0)/11
}

// feed serves the feed as it is now.
func (w *watcher) feed(rw http.ResponseWriter, r *http.Request, d *watchedDocument) {
	n := w.edition()
	etag := []string{`"v%d"`, `W/"v%d"`, `v%d`, `""v%d""`, ``, `W/"v%d-gzip, (odd) é"`}[n%6]
	if strings.Contains(etag, "%d") {
		etag = fmt.Sprintf(etag, n)
	}
	lastModified := w.start.Add(time.Duration(n-1)*4*time.Hour - time.Second).UTC().Format("Mon, 2 Jan 2006 15:04:05 GMT") // a day of one digit
	if n%6 == 1 {
		lastModified = ""
	}
	age := []int{1800, 9000, -1, 0, 3600}[n%5]
	ttl := []int{60, 45, 120}[n%3]
	wait := time.Duration(ttl) * time.Minute
	switch {
	case age == 0:
		rw.Header().Set("Cache-Control", "no-cache")
	case age > 0:
		rw.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", age))
		wait = max(wait, time.Duration(age)*time.Second)
	}
	body := fmt.Sprintf(`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>Feed</title>
<ttl>%d</ttl><skipHours><hour>3</hour><hour>4</hour></skipHours>
<atom:link rel="prev-archive" href="/archive/%d.rss"/>
<item><guid>urn:%d</guid><title>Edition %[3]d</title></item>
</channel></rss>`, ttl, n/3, n)
	w.answer(rw, r, d, etag, lastModified, wait, body)
}

// archive serves an archive document, which never changes.
func (w *watcher) archive(rw http.ResponseWriter, r *http.Request, d *watchedDocument) {
	var n int
	_, err := fmt.Sscanf(r.URL.Path, "/archive/%d.rss", &n)
	exists := err == nil && n >= 0 && n <= w.edition()/3
	if !exists {
		w.Wasted++
	}
	if !exists {
		http.NotFound(rw, r)
		return
	}
	link := ""
	if n > 0 {
		link = fmt.Sprintf(`<atom:link rel="prev-archive" href="/archive/%d.rss"/>`, n-1)
	}
	rw.Header().Set("Cache-Control", "max-age=31536000, immutable")
	w.answer(rw, r, d, fmt.Sprintf(`"archive %d"`, n), "", 365*24*time.Hour, fmt.Sprintf(
		`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><channel>
<title>Feed</title><fh:archive/>%s<item><guid>urn:old:%d</guid><title>Old</title></item></channel></rss>`, link, n))
}

// answer answers with a document, or a 304 if the visitor has it.
func (w *watcher) answer(rw http.ResponseWriter, r *http.Request, d *watchedDocument, etag, lastModified string, wait time.Duration, body string) {
	now := time.Now()
	if d.given && !now.Before(d.again) {
		w.shortest(now.Sub(d.asked), d.again.Sub(d.asked))
	}
	d.asked, d.again, d.given = now, now.Add(wait), true
	same := etag != "" && r.Header.Get("If-None-Match") == etag ||
		etag == "" && r.Header.Get("If-None-Match") == "" && lastModified != "" && r.Header.Get("If-Modified-Since") == lastModified
	if !same || w.requests%2 == 0 { // a 304 may leave them out
		if etag != "" {
			rw.Header()["Etag"] = []string{etag}
		}
		if lastModified != "" {
			rw.Header().Set("Last-Modified", lastModified)
		}
	}
	d.etag, d.lastModified = etag, lastModified
	if same {
		w.Unchanged++
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	rw.Header().Set("Content-Type", "application/rss+xml")
	_, _ = io.WriteString(rw, body)
}

// shortest remembers the shortest spacing for the report.
func (w *watcher) shortest(was, asked time.Duration) {
	r := &w.rules[slices.IndexFunc(w.rules, func(r rule) bool { return r.name == ruleSpacing })]
	if was-asked < w.margin {
		w.margin = was - asked
		r.note = fmt.Sprintf("good, such as %v where %v was asked for", was, asked)
	}
}

// feedServers starts a server of a feed without and with TLS, by an authority of its own,
// and a proxy for both, at whatever address the feed is asked for.
func feedServers(t *testing.T) (proxy, plain, secure *httptest.Server, asked *feedtest.List[string]) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, feed("urn:1", "")) })
	plain, secure, asked = feedtest.Server(t, handler), httptest.NewTLSServer(handler), new(feedtest.List[string])
	t.Cleanup(secure.Close)
	proxy = feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(r.Method + " " + r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
		switch {
		case strings.HasPrefix(r.Host, "login."):
			w.WriteHeader(http.StatusProxyAuthRequired)
		case strings.HasPrefix(r.Host, "refused."):
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodConnect:
			to, err := net.Dial("tcp", secure.Listener.Addr().String())
			require.NoError(t, err)
			from, _, err := http.NewResponseController(w).Hijack()
			require.NoError(t, err)
			_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
			go func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}()
			_, _ = io.Copy(from, to)
			_ = from.Close()
		default:
			handler(w, r)
		}
	}))
	return proxy, plain, secure, asked
}

// A proxy may be at a loopback address, and the feeds behind it may not. It sees plain
// requests, and tunnels the others, whose certificates are those of the feeds.
func TestProxy(t *testing.T) {
	proxy, plain, secure, asked := feedServers(t)
	address, err := url.Parse(strings.Replace(proxy.URL, "://", "://me:SECRET@", 1))
	require.NoError(t, err)
	c := &feedhistory.Client{
		Proxy: http.ProxyURL(address), RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, Tries: 1,
	}
	defer c.CloseIdle()
	for _, feed := range []string{"http://example.com/feed", "https://example.com/feed"} {
		doc, err := c.Get(t.Context(), feed)
		require.NoError(t, err)
		require.Equal(t, feed, doc.URL)
	}
	require.Equal(t, []string{
		"GET http://example.com/feed Basic bWU6U0VDUkVU", "CONNECT example.com:443 Basic bWU6U0VDUkVU",
	}, asked.Took())

	direct := c.Clone()
	direct.Proxy = nil
	for _, c := range []*feedhistory.Client{c, direct} {
		for _, feed := range []string{plain.URL, secure.URL, strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), proxy.URL} {
			_, err := c.Get(t.Context(), feed)
			require.ErrorIs(t, err, feedhistory.ErrPrivateAddress, feed)
		}
	}
	direct.CloseIdle()
	require.Empty(t, asked.Took())

	other := c.Clone()
	other.RootCAs = nil
	_, err = other.Get(t.Context(), "https://example.com/feed")
	require.ErrorContains(t, err, "certificate")
	require.NotContains(t, err.Error(), "proxy")
	own := &feedhistory.Client{RootCAs: c.RootCAs, AllowPrivate: true, Tries: 1}
	defer own.CloseIdle()
	_, err = own.Get(t.Context(), secure.URL)
	require.NoError(t, err)
}

// An error names the proxy if the fault is the proxy's. Its status says nothing about the feed.
func TestProxyErrors(t *testing.T) {
	proxy, _, _, asked := feedServers(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for _, test := range []struct{ proxy, feed, says string }{
		{proxy.URL, "http://login.example/", "it answers 407 Proxy Authentication Required"},
		{proxy.URL, "https://login.example/", "it answers 407 Proxy Authentication Required"},
		{proxy.URL, "https://refused.example/", "it answers 403 Forbidden"},
		{closed.URL, "http://example.com/", "connection refused"},
		{closed.URL, "https://example.com/", "connection refused"},
		{"https://" + silent.Addr().String(), "http://example.com/", "tls took longer than 1s"},
	} {
		address, err := url.Parse(strings.Replace(test.proxy, "://", "://me:SECRET@", 1))
		require.NoError(t, err)
		c := &feedhistory.Client{Proxy: http.ProxyURL(address), Tries: 2, MaxWait: time.Millisecond}
		if address.Host == silent.Addr().String() { // the others answer, however late
			c.Tries, c.Timeout = 1, 2*time.Second
		}
		_, err = c.Get(t.Context(), test.feed)
		failed := feedtest.ErrorAs[*feedhistory.FetchError](t, err)
		require.Equal(t, feedhistory.ReasonNetwork, failed.Reason)
		require.Zero(t, failed.Status)
		require.Equal(t, "the proxy "+address.Host+": "+test.says, feedhistory.Describe(err))
		require.ErrorContains(t, err, "the proxy "+address.Host+": ")
		require.NotContains(t, err.Error(), "SECRET")
		require.False(t, errors.Is(err, &feedhistory.FetchError{Status: http.StatusForbidden}))
		c.CloseIdle()
	}
	require.Len(t, asked.Took(), 3, "a refusal is not asked for again")
	c := &feedhistory.Client{Proxy: func(*http.Request) (*url.URL, error) { return nil, io.EOF }, Tries: 1}
	_, err = c.Get(t.Context(), "http://example.com/")
	require.ErrorContains(t, err, "choosing its proxy")
}

// An HTTPClient gets an episode of any length, as a whole or the rest of it, and is told
// where the answer came from. It sends the Client's credentials, and takes nothing else
// than a Client does.
func TestHTTPClient(t *testing.T) {
	const size = 30 << 20
	episode := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var encodings feedtest.List[string]
	mux := http.NewServeMux()
	mux.HandleFunc("/episode.mp3", func(w http.ResponseWriter, r *http.Request) {
		encodings.Add(r.Header.Get("Accept-Encoding") + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Own"))
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(episode))
	})
	mux.Handle("/moved", http.RedirectHandler("/episode.mp3", http.StatusFound))
	mux.HandleFunc("/zipped", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, gzipped("short"))
	})
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	server := feedtest.Server(t, mux)
	c := &feedhistory.Client{AllowPrivate: true, Tries: 1, Credentials: []feedhistory.Credential{{Origin: server.URL, Header: http.Header{"Authorization": {"Bearer B"}}}}}
	defer c.CloseIdle()
	get := func(method, path string, header http.Header) (*http.Response, int64) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		require.NoError(t, err)
		r.Header = header
		resp, err := c.HTTPClient().Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		return resp, n
	}
	resp, n := get("GET", "/moved", http.Header{"X-Own": {"x"}})
	require.Equal(t, 200, resp.StatusCode)
	require.EqualValues(t, size, n)
	require.EqualValues(t, size, resp.ContentLength)
	require.Equal(t, server.URL+"/episode.mp3", resp.Request.URL.String())
	resp, n = get("GET", "/episode.mp3", http.Header{"Range": {"bytes=100-"}, "If-Range": {`"1"`}})
	require.Equal(t, http.StatusPartialContent, resp.StatusCode)
	require.EqualValues(t, size-100, n)
	resp, n = get("HEAD", "/episode.mp3", http.Header{})
	require.EqualValues(t, size, resp.ContentLength)
	require.Zero(t, n)
	resp, n = get("GET", "/episode.mp3", http.Header{"If-None-Match": {`"1"`}})
	require.Equal(t, http.StatusNotModified, resp.StatusCode)
	require.Zero(t, n)
	require.Equal(t, []string{"gzip, zstd Bearer B x", "identity Bearer B ", "gzip, zstd Bearer B ", "gzip, zstd Bearer B "}, encodings.Took())
	resp, n = get("GET", "/zipped", http.Header{})
	require.EqualValues(t, 5, n)
	require.True(t, resp.Uncompressed)
	require.Empty(t, resp.Header.Get("Content-Encoding"))
	resp, _ = get("GET", "/gone", http.Header{})
	require.Equal(t, &feedhistory.FetchError{URL: server.URL + "/gone", Reason: feedhistory.ReasonStatus, Status: http.StatusGone}, feedhistory.NewFetchError(resp))
	for _, request := range []func() (*http.Response, error){
		func() (*http.Response, error) {
			return c.HTTPClient().Post(server.URL, "text/plain", strings.NewReader("x"))
		},
		func() (*http.Response, error) { return new(feedhistory.Client).HTTPClient().Get(server.URL) },
	} {
		_, err := request()
		require.Equal(t, feedhistory.ReasonRefused, feedtest.ErrorAs[*feedhistory.FetchError](t, err).Reason)
	}
	_, err := c.Get(t.Context(), server.URL+"/episode.mp3")
	require.True(t, is[*http.MaxBytesError](err), "a document ends at MaxBytes: %v", err)
}
