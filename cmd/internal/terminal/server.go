package terminal

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ListenAt listens at the address that --listen gives.
func ListenAt(address Listen) (net.Listener, error) {
	listener, err := net.Listen("tcp", string(address))
	if err == nil {
		return listener, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if system, ok := errors.AsType[*os.SyscallError](err); ok {
		err = system.Err
	}
	text := "--listen: " + string(address) + ": " + err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text += "; another program listens there: give another port, or 0 for any free one"
	case errors.Is(err, syscall.EACCES):
		text += "; give a port from 1024 on"
	}
	return nil, errors.New(text)
}

// AddressOf returns where a listener can be reached from this machine.
func AddressOf(l net.Listener) string {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return l.Addr().String()
}

// serverPatience is how long answers under way may take when a server ends.
const serverPatience = 10 * time.Second

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
	ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}
