package feedtest

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// Pipe serves a handler over pipes until the test ends, and returns the transport to
// reach it. It may be used in a synctest bubble.
func Pipe(t testing.TB, handler http.Handler) *http.Transport {
	conns := make(pipes)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(conns) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return transport
}

// pipes are a net.Listener: the server's ends of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }
