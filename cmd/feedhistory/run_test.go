package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// After an interrupt, fetch prints the entries that it has, and says that some are missing.
func TestInterruptedStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.atom" {
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id></entry>`+
			`<link rel="prev-archive" href="slow.atom"/></feed>`) // a link that ends the document is not followed before its end
	}))
	status, stdout, stderr := call(ctx, "", "fetch", "--allow-private", server.URL+"/feed.atom")
	if status != exit.Partial || !strings.Contains(stdout, "urn:1") || !strings.Contains(stderr, "interrupted") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputFails(t *testing.T) {
	const feed = `<rss><channel><item><guid>1</guid></item></channel></rss>`
	for _, args := range [][]string{{"inspect", "-"}, {"inspect", "--json", "-"}} {
		var stderr bytes.Buffer
		status := run(t.Context(), args, strings.NewReader(feed), brokenWriter{}, &stderr)
		if status != exit.Failed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: status %d, %s", args, status, &stderr)
		}
	}
}

// call runs the command.
func call(ctx context.Context, stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestFailure(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://x/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}),
			"https://x/: the host x cannot be looked up: no such host; check the address"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}),
			"https://x/: the host x cannot be looked up: server misbehaving; try again later"},
		{&feedhistory.TimeoutError{URL: "https://x/", Step: "headers", Max: time.Second},
			"https://x/: headers took longer than 1s; try again later"},
		{&feedhistory.StatusError{URL: "https://x/", Status: 503, RetryAfter: time.Hour, At: time.Unix(0, 0)},
			"https://x/: 503 Service Unavailable; the host asks to be left alone until 1970-01-01T00:00:00Z; try again later"},
		{&feedhistory.LimitError{URL: "https://x/", Limit: "ratio", Max: 200},
			"https://x/: it decompresses to more than 200 times its size"},
		{&feedhistory.ParseError{Reason: feedhistory.ReasonLimit, Err: &feedhistory.LimitError{Limit: "bytes", Max: 5}},
			"https://x/: limit: the document is larger than 5 bytes; " + explain.TooLargeRemedy},
		{&feedhistory.ParseError{Reason: feedhistory.ReasonLimit, Err: errors.New("its id has more than 4096 bytes")},
			"https://x/: limit: its id has more than 4096 bytes"},
		{errors.New("odd"), "https://x/: odd"},
		{&fs.PathError{Op: "read", Path: "https://x/", Err: syscall.EIO}, "https://x/: input/output error"},
		{&modifiedrange.StampError{URL: "https://x/", ID: "1", Clause: "c"},
			"https://x/: 1 does not say when it was last modified, or not as the others do (c)"},
		{&datareplication.CutShortError{URL: "https://x/", Whole: 2, Err: &feedhistory.TruncatedError{URL: "https://x/", Err: io.ErrUnexpectedEOF}, Clause: "c"},
			"https://x/: the page is cut short after 2 entities: the body was cut short: unexpected EOF (c); try again later"},
	} {
		if got := explain.Failure("https://x/", test.err).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// Entries belong to the address that was asked for, or that the feed has permanently
// moved to, not to where a temporary redirect led this time.
func TestFetchRedirected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/temporary":
			http.Redirect(w, r, "/today?signature=abc", http.StatusFound)
		case "/permanent":
			http.Redirect(w, r, "/temporary", http.StatusMovedPermanently)
		default:
			_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:1</id></entry></feed>`)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{"/temporary": "/temporary", "/permanent": "/temporary", "/today": "/today"} {
		for _, args := range [][]string{nil, {"--raw"}, {"--limit=5"}, {"--format=json"}, {"--format=csv"}} {
			status, stdout, stderr := call(t.Context(), "", append([]string{"fetch", "--allow-private", server.URL + path}, args...)...)
			require.Equal(t, exit.OK, status, stderr)
			require.Regexp(t, server.URL+want+`["\n,]`, stdout, args)
			require.NotRegexp(t, `"(feed|url)":"[^"]*signature`, stdout, args) // with --raw, references resolve against it
		}
	}
}

// With --since, an entry counts if it was published or updated since.
func TestSinceTakesEitherTime(t *testing.T) {
	const feed = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>
<entry><id>urn:edited</id><published>2003-01-01T00:00:00Z</published><updated>2020-01-01T00:00:00Z</updated></entry>
<entry><id>urn:dated ahead</id><published>2020-01-01T00:00:00Z</published><updated>2003-01-01T00:00:00Z</updated></entry>
<entry><id>urn:undated</id></entry>
<entry><id>urn:old</id><published>2003-01-01T00:00:00Z</published><updated>2003-01-02T00:00:00Z</updated></entry></feed>`
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, feed) }))
	_, stdout, _ := call(t.Context(), "", "fetch", "--allow-private", "--since", "2019-01-01", server.URL)
	for id, want := range map[string]bool{"urn:edited": true, "urn:dated ahead": true, "urn:undated": true, "urn:old": false} {
		require.Equal(t, want, strings.Contains(stdout, `"id":"`+id+`"`), id)
	}
}
