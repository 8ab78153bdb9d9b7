package show

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
