package show

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

func TestInWords(t *testing.T) {
	call := func(err error) error { return &url.Error{Op: "Get", URL: "https://ann:pw@x.example/v1", Err: err} }
	dial := func(err error) error {
		return call(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)})
	}
	unmarshal := func(text string) error { return json.Unmarshal([]byte(text), new(struct{ Title string })) }
	list := func(text string) error { return xml.Unmarshal([]byte(text), new(struct{})) }
	for _, test := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), "https://x.example/v1: connection refused; check the address, or try again later"},
		{dial(syscall.ECONNRESET), "https://x.example/v1: connection reset by peer; try again later"},
		{call(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x.example", IsNotFound: true}}),
			"https://x.example/v1: the host x.example cannot be looked up: no such host; check the address"},
		{fmt.Errorf("http://x.example/v1: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
			"http://x.example/v1: connection refused; check the address, or try again later"},
		{fmt.Errorf("http://x.example/v1: %w", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x.example", IsNotFound: true}}),
			"http://x.example/v1: the host x.example cannot be looked up: no such host; check the address"},
		{call(io.ErrUnexpectedEOF), "https://x.example/v1: the server closed the connection before the end of its answer; try again later"},
		{call(io.EOF), "https://x.example/v1: the server closed the connection without an answer; try again later"},
		{call(context.DeadlineExceeded), "https://x.example/v1: there was no answer in time; try again later"},
		{fmt.Errorf("get s3://b/x: %w", dial(syscall.EHOSTUNREACH)), "get s3://b/x: https://x.example/v1: no route to host"},
		{fmt.Errorf("line 1: not an entry in JSON: %w", unmarshal("rubbish")), "line 1: not an entry in JSON: this is not JSON from column 1 on"},
		{unmarshal(`{"a":`), "the JSON breaks off"},
		{unmarshal(`{"title":5}`), "its member Title cannot be a number"},
		{json.Unmarshal([]byte(`{"id":5}`), new(publish.Line)), "its member id cannot be a number"},
		{unmarshal(`[]`), "it cannot be an array"},
		{list("<opml><outline"), "line 1: the document breaks off"},
		{list("<a\n<b>"), "line 2: the document is not well-formed XML: expected attribute name in element"},
	} {
		got := InWords(test.err)
		require.EqualError(t, got, test.want)
		require.ErrorIs(t, got, test.err)
	}
	require.Equal(t, os.ErrExist, InWords(os.ErrExist))
}

// A failure names the document that failed if a redirect or a page has led to it.
func TestFailure(t *testing.T) {
	missing := func(url string) error {
		return &feedhistory.FetchError{URL: url, Reason: feedhistory.ReasonStatus, Status: 404}
	}
	broken := func(url string) error {
		return &feedhistory.ParseError{URL: url, Reason: feedhistory.ReasonTruncated, Line: 2, Column: 3, Err: io.ErrUnexpectedEOF}
	}
	for _, test := range []struct {
		arg  string
		err  error
		want string
	}{
		{"https://a.example/f", missing("https://a.example/f"), "https://a.example/f: 404 Not Found; check the address"},
		{"https://a.example/f", missing("https://b.example/g"), "https://a.example/f: it leads to https://b.example/g: 404 Not Found; check the address"},
		{"https://a.example/f", missing("https://b.example/g?token=SECRET"), "https://a.example/f: it leads to https://b.example/g?…: 404 Not Found; check the address"},
		{"https://a.example/f?…", missing("https://a.example/f?token=SECRET"), "https://a.example/f?…: 404 Not Found; check the address"},
		{"https://a.example/f", missing("https://a.example/f?page=2"), "https://a.example/f: it leads to https://a.example/f?page=2: 404 Not Found; check the address"},
		{"https://a.example/f", broken("https://a.example/g"), "https://a.example/f: it leads to https://a.example/g:2:3: truncated: unexpected EOF"},
		{"a.example", missing("https://a.example/"), "a.example: 404 Not Found; check the address"},
		{"HTTPS://A.example:443", missing("https://a.example/"), "HTTPS://A.example:443: 404 Not Found; check the address"},
		{"https://ä.example/ö?ü", missing("https://ä.example/%C3%B6?%C3%BC"), "https://ä.example/ö?ü: 404 Not Found; check the address"},
		{"feed.atom", &feedhistory.ParseError{Reason: feedhistory.ReasonNotFeed, Err: errors.New("the root element is opml")},
			"feed.atom: not a feed: the root element is opml"},
		{"page.html", &feedhistory.ParseError{Reason: feedhistory.ReasonNotFeed, Err: feedhistory.ErrWebPage},
			"page.html: not a feed: it is an HTML page; give the feed's own file or address"},
		{"https://a.example/f", &feedhistory.ParseError{Reason: feedhistory.ReasonNotFeed, Err: errors.New("the root element is opml")},
			"https://a.example/f: not a feed: the root element is opml; check the address"},
		{"feed.atom", broken("https://a.example/feed.atom"), "feed.atom:2:3: truncated: unexpected EOF"},
		{"https://a.example/f", errors.New("https://a.example/f: not the feed that you subscribed to"), "https://a.example/f: not the feed that you subscribed to"},
		{"feed.atom", broken(""), "feed.atom:2:3: truncated: unexpected EOF"},
	} {
		require.EqualError(t, Failure(test.arg, test.err), test.want)
	}
}
