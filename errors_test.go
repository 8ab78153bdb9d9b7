package feedhistory_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/stretchr/testify/require"
)

// is reports whether an error of type E is in err's chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Every error of a request is a type of this package, by whichever method it is returned.
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
	server := feedtest.Server(t, mux)

	for path, want := range map[string]struct {
		reason feedhistory.Reason
		says   string
	}{
		"/missing": {feedhistory.ReasonStatus, "404"},
		"/large":   {feedhistory.ReasonLimit, "bytes"},
		"/cut":     {feedhistory.ReasonTruncated, "cut short"},
		"/encoded": {feedhistory.ReasonMalformed, `"compress"`},
		"/slow":    {feedhistory.ReasonNetwork, "headers"},
		"/circle":  {feedhistory.ReasonLoop, "redirects in a circle"},
	} {
		c := &feedhistory.Client{AllowPrivate: true, MaxBytes: 1000, Tries: 1}
		if path == "/slow" {
			c.Timeout = 50 * time.Millisecond
		}
		_, err := c.Get(t.Context(), server.URL+path)
		failed := feedtest.ErrorAs[*feedhistory.FetchError](t, err)
		require.Equal(t, want.reason, failed.Reason, "%v", err)
		require.Equal(t, path == "/slow", errors.Is(err, os.ErrDeadlineExceeded))
		require.Equal(t, path == "/missing", errors.Is(err, fs.ErrNotExist))
		require.Equal(t, path == "/missing", errors.Is(err, &feedhistory.FetchError{Status: 404}))
		require.Equal(t, path == "/large", is[*http.MaxBytesError](err))
		require.ErrorContains(t, err, want.says)
		_, err = c.Fetch(t.Context(), server.URL+path)
		require.Equal(t, want.reason, feedtest.ErrorAs[*feedhistory.FetchError](t, err).Reason)
		c.CloseIdle()
	}
	_, err := new(feedhistory.Client).Get(t.Context(), "ftp://example.org/feed")
	require.EqualError(t, err, `fetch "ftp://example.org/feed": refused: unsupported scheme: "ftp"`)
	for _, address := range []string{"", "/feed", "example.org/feed"} {
		_, err = new(feedhistory.Client).Get(t.Context(), address)
		require.ErrorContains(t, err, "not an absolute URL with a host")
	}
	var timeout net.Error
	step := feedhistory.NewFailure(&fetch.Failure{Kind: fetch.Timeout, Name: "headers"})
	require.ErrorAs(t, error(&feedhistory.FetchError{Err: step}), &timeout)
	require.True(t, timeout.Timeout())
	require.Empty(t, feedhistory.Describe(nil))
}

// The error of a gap names the rule that the caller has set.
func TestSameOriginRule(t *testing.T) {
	elsewhere := feedtest.Serve(t, "-- /1.atom --\n<feed xmlns=\"http://www.w3.org/2005/Atom\"></feed>\n")
	for _, link := range []string{elsewhere.URL + "/1.atom", "/redirect"} {
		server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/redirect" {
				http.Redirect(w, r, elsewhere.URL+"/1.atom", http.StatusFound)
			}
			fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="%s"/></feed>`, link)
		}))
		c := &feedhistory.Client{AllowPrivate: true, OneOrigin: true}
		h, err := c.Fetch(t.Context(), server.URL)
		c.CloseIdle()
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		refused, ok := errors.AsType[*feedhistory.FetchError](h.Gaps[0])
		require.True(t, ok, "%v", h.Gaps[0])
		require.Equal(t, feedhistory.FetchError{URL: elsewhere.URL + "/1.atom", Reason: feedhistory.ReasonRefused, Err: refused.Err}, *refused)
		require.EqualError(t, refused.Err, "its origin is not the feed's")
		require.ErrorContains(t, h.Gaps[0], "its origin is not the feed's")
	}
}

// What is appended to the credentials of one clone is not sent by another.
func TestCloneOwnsItsCredentials(t *testing.T) {
	c := feedhistory.Client{Credentials: make([]feedhistory.Credential, 0, 4)}
	one, two := c.Clone(), c.Clone()
	one.Credentials = append(one.Credentials, feedhistory.Credential{Header: http.Header{"Authorization": {"one"}}})
	two.Credentials = append(two.Credentials, feedhistory.Credential{Header: http.Header{"Authorization": {"two"}}})
	require.Equal(t, "one", one.Credentials[0].Header.Get("Authorization"))
}

// A clone has its own settings, but knows what hosts have asked of the original.
func TestClone(t *testing.T) {
	var agents feedtest.List[string]
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agents.Add(r.UserAgent()+" "+r.Header.Get("Authorization")) > 2 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	}))
	first := &feedhistory.Client{UserAgent: "first", AllowPrivate: true, Tries: 1}
	defer first.CloseIdle()
	second := first.Clone()
	second.UserAgent = "second"
	second.Credentials = []feedhistory.Credential{{Origin: server.URL, Header: http.Header{"Authorization": {"Bearer 2"}}}}
	for _, c := range []*feedhistory.Client{first, second} {
		_, err := c.Get(t.Context(), server.URL)
		require.NoError(t, err)
	}
	_, err := second.Get(t.Context(), server.URL)
	require.True(t, errors.Is(err, &feedhistory.FetchError{Status: http.StatusServiceUnavailable}), "%v", err)
	_, err = first.Clone().Get(t.Context(), server.URL)
	require.ErrorContains(t, feedtest.ErrorAs[*feedhistory.FetchError](t, err), "from an earlier answer")
	require.Equal(t, []string{"first ", "second Bearer 2", "second Bearer 2"}, agents.All())
}

// A caller's own Transport reaches no private address, however it dials, unless AllowPrivate is
// set; of one that is no *http.Transport nobody knows, so it is refused.
func TestTransport(t *testing.T) {
	var asked, connections atomic.Int32
	count := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	})
	plain, secure, proxy := httptest.NewServer(count), httptest.NewTLSServer(count), httptest.NewUnstartedServer(count)
	proxy.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	proxy.Start()
	defer proxy.Close()
	defer plain.Close()
	defer secure.Close()
	trust := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for name, transport := range map[string]*http.Transport{
		"default":        http.DefaultTransport.(*http.Transport),
		"zero":           {},
		"TLS":            {TLSClientConfig: trust},
		"DialContext":    {DialContext: new(net.Dialer).DialContext, TLSClientConfig: trust},
		"Dial":           {Dial: net.Dial, TLSClientConfig: trust},
		"DialTLSContext": {DialTLSContext: (&tls.Dialer{Config: trust}).DialContext},
		"DialTLS":        {DialTLS: func(network, address string) (net.Conn, error) { return tls.Dial(network, address, trust) }},
		"guarded":        {DialContext: (&net.Dialer{Control: fetch.Guard()}).DialContext},
	} {
		for _, url := range []string{plain.URL, secure.URL} {
			_, err := (&feedhistory.Client{Transport: transport, Tries: 1}).Get(t.Context(), url)
			require.ErrorIs(t, err, feedhistory.ErrPrivateAddress, name)
		}
	}
	_, err := (&feedhistory.Client{Tries: 1, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		conn, _ := net.Pipe()
		return conn, nil
	}}}).Get(t.Context(), "http://feed.example/")
	require.ErrorIs(t, err, feedhistory.ErrPrivateAddress)
	_, err = (&feedhistory.Client{Transport: feedtest.Direct{Handler: count}}).Get(t.Context(), "http://feed.example/")
	require.ErrorContains(t, err, "Client.Transport, a feedtest.Direct, may request private addresses: set AllowPrivate")
	require.Zero(t, asked.Load())

	// Its proxy may be anywhere, but not what is behind it.
	address, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	client := &feedhistory.Client{Tries: 1, Transport: &http.Transport{Proxy: http.ProxyURL(address)}}
	defer client.CloseIdle()
	for range 2 {
		_, err = client.Get(t.Context(), "http://feed.example/")
		require.NoError(t, err)
		client = client.Clone()
	}
	require.EqualValues(t, 1, connections.Load(), "clones share them")
	_, err = client.Get(t.Context(), "http://127.1/")
	require.ErrorIs(t, err, feedhistory.ErrPrivateAddress)
	require.EqualValues(t, 2, asked.Load())
	_, err = (&feedhistory.Client{AllowPrivate: true, Transport: &http.Transport{DisableKeepAlives: true}}).Get(t.Context(), plain.URL)
	require.NoError(t, err)
}

// stuck is a server that never answers.
var stuck = feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

// failures are requests that fail: what the log calls the failure, the error's reason, its text
// without the URL, and of that the part Describe leaves out.
var failures = []struct {
	name  string
	reply feedtest.Reply
	set   func(*feedhistory.Client, *http.Request)
	logs  string
	why   feedhistory.Reason
	kind  string
	text  string
}{
	{"status", feedtest.Reply{Status: 404}, nil, "failure", feedhistory.ReasonStatus, "status ", "404 Not Found"},
	{"gone", feedtest.Reply{Status: 410}, nil, "failure", feedhistory.ReasonStatus, "status ", "410 Gone"},
	{"asked to wait", feedtest.Reply{Status: 429, Header: []string{"Retry-After: 60"}}, nil,
		"failure", feedhistory.ReasonStatus, "status ", "429 Too Many Requests; the host asks to be left alone until 2000-01-01T00:01:00Z"},
	{"asked to wait before", feedtest.Reply{Status: 503, Header: []string{"Retry-After: 60"}},
		func(c *feedhistory.Client, r *http.Request) { c.Tries = 1; r.Header = http.Header{"Twice": {"1"}} },
		"failure failure", feedhistory.ReasonStatus, "status ", "503 Service Unavailable; the host asks to be left alone until 2000-01-01T00:01:00Z (from an earlier answer)"},
	{"tried again", feedtest.Reply{Status: 503, Header: []string{"Retry-After: 0"}}, func(c *feedhistory.Client, _ *http.Request) { c.Tries, c.MaxWait = 3, -1 },
		"retry retry failure", feedhistory.ReasonStatus, "status ", "503 Service Unavailable; the host asks to be left alone until 2000-01-01T00:00:00Z"},
	{"scheme", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.URL.Scheme = "ftp" },
		"refusal scheme", feedhistory.ReasonRefused, "refused: ", `unsupported scheme: "ftp"`},
	{"length", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.URL.Path += strings.Repeat("more", 2049) },
		"refusal length", feedhistory.ReasonRefused, "refused: ", "the URL is too long"},
	{"no URL", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { *r.URL = url.URL{} }, "refusal url", feedhistory.ReasonRefused, "refused: ", "not an absolute URL with a host"},
	{"method", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.Method = "POST" }, "refusal method", feedhistory.ReasonRefused, "refused: ", "unsupported method"},
	{"field", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.Header = http.Header{"Cookie": {"a"}} },
		"refusal header", feedhistory.ReasonRefused, "refused: ", "invalid header field: a field of this name cannot be added"},
	{"value", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.Header = http.Header{"A": {"a\n"}} }, "refusal header", feedhistory.ReasonRefused, "refused: ", "invalid header field"},
	{"secret", feedtest.Reply{}, func(c *feedhistory.Client, _ *http.Request) {
		c.Credentials = []feedhistory.Credential{{Origin: feedURL, Header: http.Header{"X": {"SECRET\n"}}}}
	}, "refusal header", feedhistory.ReasonRefused, "refused: ", "invalid header field: the value has a control character"},
	{"userinfo", feedtest.Reply{}, func(_ *feedhistory.Client, r *http.Request) { r.URL.User = url.UserPassword("me", "SECRET") },
		"refusal userinfo", feedhistory.ReasonRefused, "refused: ", "a user or password in the URL"},
	{"loop", feedtest.RedirectTo(301, "/feed"), nil, "refusal loop", feedhistory.ReasonLoop, "refused: ", "it redirects in a circle"},
	{"no location", feedtest.Reply{Status: 301}, nil, "refusal location", feedhistory.ReasonRefused, "refused: ", "it redirects without saying where to"},
	{"headers too long", feedtest.Reply{Header: []string{"X: " + strings.Repeat("x", 1<<16)}}, nil,
		"failure", feedhistory.ReasonLimit, "", "the headers have more than 65536 bytes"},
	{"announced too long", feedtest.Reply{Header: []string{"Content-Length: 99999999"}}, nil, "failure", feedhistory.ReasonLimit, "", "more than 16777216 bytes"},
	{"too long", feedtest.Reply{Body: "0123456789"}, func(c *feedhistory.Client, _ *http.Request) { c.MaxBytes = 5 }, "body", feedhistory.ReasonLimit, "", "more than 5 bytes"},
	{"bomb", feedtest.Reply{Header: []string{"Content-Encoding: gzip"}, Body: gzipped(strings.Repeat("x", 3<<20))}, nil,
		"body", feedhistory.ReasonLimit, "", "it decompresses to more than 200 times its size"},
	{"no answer", feedtest.Reply{}, func(c *feedhistory.Client, _ *http.Request) { c.AllowPrivate, c.Transport = true, stuck }, "failure", feedhistory.ReasonNetwork, "timeout: ", "headers took longer than 20s"},
	{"no end", feedtest.Reply{Stalls: true}, nil, "body", feedhistory.ReasonNetwork, "timeout: ", "idle took longer than 15s"},
	{"cut", feedtest.Reply{Body: "x", Header: []string{"Content-Length: 9"}}, nil, "body", feedhistory.ReasonTruncated, "", "the body was cut short: unexpected EOF"},
	{"reset", feedtest.Reply{Body: "x", End: io.ErrClosedPipe}, nil, "body", feedhistory.ReasonTruncated, "", "the body was cut short: io: read/write on closed pipe"},
	{"encoding", feedtest.Reply{Header: []string{"Content-Encoding: br"}}, nil, "failure", feedhistory.ReasonMalformed, "", `unsupported content encoding "br"`},
	{"corrupt", feedtest.Reply{Header: []string{"Content-Encoding: gzip"}, Body: "<feed/> and more than ten bytes"}, nil,
		"body", feedhistory.ReasonMalformed, "", "corrupt gzip: gzip: invalid header"},
}

// A failure has the same text in the error and in the log, and no secret in either.
func TestFailures(t *testing.T) {
	for _, test := range failures {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				c := clientOf(&feedtest.MemorySites{Replies: map[string]feedtest.Reply{feedURL: test.reply}})
				c.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				req := httptest.NewRequest("GET", feedURL, nil)
				if test.set != nil {
					test.set(c, req)
				}
				twice := req.Header.Get("Twice") != ""
				req.Header.Del("Twice")
				ask := func() error { // a Client's own requests have neither a method nor further fields
					if req.Method == "GET" && len(req.Header) == 0 {
						_, err := c.Get(t.Context(), req.URL.String())
						return err
					}
					_, err := c.HTTPClient().Transport.RoundTrip(req.WithContext(t.Context()))
					return err
				}
				if twice {
					require.True(t, errors.Is(ask(), &feedhistory.FetchError{Status: 503}))
				}
				err := ask()
				text := test.kind + test.text
				if url := feedhistory.Redact(req.URL.String()); url != "" {
					text = fmt.Sprintf("fetch %q: %s", url[:min(len(url), 8<<10)], text)
				}
				require.Equal(t, test.why, feedtest.ErrorAs[*feedhistory.FetchError](t, err).Reason)
				require.EqualError(t, err, text)
				require.Equal(t, test.text, feedhistory.Describe(fmt.Errorf("wrapped: %w", err)))
				require.Equal(t, test.logs, errorsOf(t, &log, strings.TrimSuffix(text, " (from an earlier answer)")))
				require.NotContains(t, log.String()+text, "SECRET")
			})
		})
	}
}

// errorsOf names the events that have an error, whose text is the given one.
func errorsOf(t *testing.T, log io.Reader, text string) string {
	var events []string
	for d := json.NewDecoder(log); ; {
		var event struct{ Msg, Rule, Error string }
		if d.Decode(&event) != nil {
			return strings.Join(events, " ")
		}
		if event.Error != "" {
			require.Equal(t, text, strings.TrimSuffix(event.Error, " (from an earlier answer)"))
			events = append(events, strings.TrimSpace(event.Msg+" "+event.Rule))
		}
	}
}

// Errors without an answer have texts, too, and those of the fields in which they differ.
func TestErrorTexts(t *testing.T) {
	for _, test := range []struct {
		err        error
		text, says string
	}{
		{&feedhistory.FetchError{Reason: feedhistory.ReasonStatus, URL: "u", Status: 999}, `fetch "u": status 999`, "999"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonRefused, URL: "u", Err: fmt.Errorf("%w: %w", feedhistory.ErrPrivateAddress, io.EOF)},
			`fetch "u": refused: a loopback, private or special-purpose address: EOF`, "a loopback, private or special-purpose address"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonRefused}, "refused: refused", "refused"},
		{&feedhistory.FetchError{Reason: feedhistory.ReasonNetwork, URL: "http://a/?token=SECRET", Err: io.EOF}, `fetch "http://a/?token=…": EOF`, "the server closed the connection without an answer"},
		{feedhistory.NewFailure(&fetch.Failure{Kind: fetch.Refused, URL: "u", Name: fetch.RuleDowngrade, Err: io.EOF}),
			`fetch "u": refused: it redirects from https to http: EOF`, "it redirects from https to http: EOF"},
		{feedhistory.NewFailure(&fetch.Failure{Kind: fetch.Limit, Name: "window", Max: 8}), "its compression needs a window of more than 8 bytes", "its compression needs a window of more than 8 bytes"},
		{feedhistory.NewFailure(&fetch.Failure{Kind: fetch.Limit, Name: "wire", Max: 8}), "more than 8 bytes before decompression", "more than 8 bytes before decompression"},
		{&feedhistory.ParseError{URL: "http://a/?token=SECRET", Reason: feedhistory.ReasonLimit, Clause: "c", Err: feedhistory.NewTooLarge(5)}, "http://a/?token=…: limit: more than 5 bytes (c)", "more than 5 bytes"},
		{&feedhistory.ParseError{URL: "u", Reason: feedhistory.ReasonLimit, Clause: "c", Line: 1, Column: 2, Err: feedhistory.NewTooLarge(5)},
			"u:1:2: limit: more than 5 bytes (c)", "line 1, column 2: more than 5 bytes"},
		{&feedhistory.ParseError{URL: "u", Reason: feedhistory.ReasonNotFeed, Clause: "c", Err: feedhistory.ErrWebPage}, "u: not-feed: it is an HTML page (c)", "it is an HTML page"},
		{&feedhistory.FetchError{}, "unknown", "unknown"},
		{&feedhistory.ParseError{}, "unknown: the reason was not recorded", "the reason was not recorded"},
		{&feedhistory.Gap{}, "unknown", ""},
		{feedhistory.NewGap("u", &feedhistory.ParseError{URL: "u", Reason: feedhistory.ReasonLimit, Clause: "c", Line: 1, Column: 2, Err: feedhistory.NewTooLarge(5)}),
			"limit: u: line 1, column 2: more than 5 bytes (c)", "line 1, column 2: more than 5 bytes (c)"},
		{feedhistory.NewGap("u", &feedhistory.ParseError{URL: "u", Reason: feedhistory.ReasonLimit, Err: feedhistory.NewTooLarge(5)}), "limit: u: more than 5 bytes", "more than 5 bytes"},
		{feedhistory.NewGap("u", &feedhistory.ParseError{URL: "v", Reason: feedhistory.ReasonLimit, Line: 1, Column: 2, Err: feedhistory.NewTooLarge(5)}),
			"limit: u: v:1:2: limit: more than 5 bytes", "v:1:2: limit: more than 5 bytes"},
		{feedhistory.NewGap("", nil), "unknown: the reason was not recorded", "the reason was not recorded"},
	} {
		require.EqualError(t, test.err, test.text)
		require.Equal(t, test.says, feedhistory.Describe(test.err))
	}
	secret := feedhistory.Credential{Origin: "http://a", Password: "SECRET", Header: http.Header{"Authorization": {"SECRET"}, "X": {"SECRET"}}}
	encoded, err := json.Marshal([]any{secret, &secret, feedhistory.Client{Credentials: []feedhistory.Credential{secret}}.Credentials})
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", secret, "p", &secret, "all", []feedhistory.Credential{secret})
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %v", secret, secret, secret, []feedhistory.Credential{secret})+string(encoded)+log.String(), "SECRET")
	require.Contains(t, log.String(), "http://a")
}

// Gaps a document declares are the same if they concern the same document for the same
// reason, in whichever words of its own the publisher gives one.
func TestDeclaredGapsOnce(t *testing.T) {
	const url = `href="http://example.org/1"`
	doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0">
		<m:mirror verdict="partial"><m:gap reason="status" `+url+`/><m:gap reason="eaten by the dog" `+url+`/></m:mirror>
		<m:mirror verdict="lossy"><m:gap reason="status" `+url+`/><m:gap reason="loop" `+url+`/><m:gap reason="eaten by the dog" `+url+`/>
			<m:gap reason="lost" `+url+`/><m:gap reason="declared" `+url+`/></m:mirror></feed>`), "")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, doc.Coverage.Verdict)
	var words []string
	for _, g := range doc.Coverage.Gaps {
		words = append(words, g.Word())
	}
	require.Equal(t, []string{"status", "eaten by the dog", "loop", "lost", "declared"}, words)
}
