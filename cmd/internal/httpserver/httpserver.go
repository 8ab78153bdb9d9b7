// Package httpserver has the common parts of commands with an HTTP server.
package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Listen listens at an address. The error names its flag.
func Listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return nil, errors.New(flag + ": " + op.Addr.String() + ": " + op.Err.Error())
	}
	if err != nil {
		return nil, errors.New(flag + ": " + err.Error())
	}
	return listener, nil
}

// Address returns where a listener can be reached from this machine.
func Address(l net.Listener) string {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return l.Addr().String()
}

// patience is how long answers under way may take when a server ends.
const patience = 10 * time.Second

// Serve serves until the context ends; then it calls ending, and lets answers under way
// come to their end.
func Serve(ctx context.Context, server *http.Server, l net.Listener, ending func()) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
