package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// A world is a network in memory: servers by address. In a synctest bubble
// its time is virtual, so that a test may wait for hours.
type world struct {
	mu      sync.Mutex
	servers map[string]func(net.Conn)
	dialled []string
	clients []*Client
}

// bubble runs a test in a world of its own.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.close()
		f(t, w)
	})
}

func newWorld() *world { return &world{servers: make(map[string]func(net.Conn))} }

func (w *world) close() {
	for _, c := range w.clients {
		c.CloseIdle()
	}
}

// client returns a client that lives in the world and tries once.
func (w *world) client() *Client {
	c := &Client{dial: w.dial, Tries: 1}
	w.clients = append(w.clients, c)
	return c
}

func (w *world) dial(_ context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialled = append(w.dialled, address)
	serve := w.servers[address]
	if serve == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		serve(theirs)
	}()
	return ours, nil
}

// serve puts a server at an address; without a port, at 80.
func (w *world) serve(host string, f func(net.Conn)) {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "80")
	}
	w.servers[host] = f
}

// answers passes each request of a connection to f, which writes to the wire.
func answers(f func(conn net.Conn, r *http.Request)) func(net.Conn) {
	return func(conn net.Conn) {
		requests := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(requests)
			if err != nil {
				return
			}
			f(conn, r)
		}
	}
}

// says answers one request with a text, and then hangs up.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, text)
		}
	}
}

// forever writes the head, and then the rest again and again.
func forever(head, rest string) func(net.Conn) {
	return func(conn net.Conn) {
		says(head)(conn)
		again := []byte(rest) // once: the memory is counted
		for {
			if _, err := conn.Write(again); err != nil {
				return
			}
		}
	}
}

// ok returns a whole answer with a body.
func ok(body string, headers ...string) string {
	s := "HTTP/1.1 200 OK\r\n"
	for _, h := range headers {
		s += h + "\r\n"
	}
	return s + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// status returns a whole answer without a body.
func status(code int, headers ...string) string {
	s := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\n", code, http.StatusText(code))
	for _, h := range headers {
		s += h + "\r\n"
	}
	return s + "\r\n"
}

// outcome fetches a URL, reads the body, and describes the result in a few words, with the number of
// bytes.
func outcome(c *Client, req Request) (string, int64) {
	resp, err := c.Do(context.Background(), req)
	if err != nil {
		return "do: " + describe(err), 0
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		return "read: " + describe(err), n
	}
	return fmt.Sprint("ok ", resp.Status), n
}

// describe names an error by its kind and fields.
func describe(err error) string {
	switch e := err.(type) {
	case *Failure:
		switch {
		case e.Kind == Encoding && e.Err != nil:
			return "corrupt " + e.Name
		case e.Remembered:
			return fmt.Sprint("remembered ", e.Status)
		case e.Kind == Status:
			return fmt.Sprint("status ", e.Status)
		case errors.Is(err, context.Canceled):
			return "cancelled"
		case errors.Is(err, context.DeadlineExceeded):
			return "deadline"
		}
		return strings.TrimSpace(string(e.Kind) + " " + e.Name)
	}
	return fmt.Sprintf("untyped %T: %v", err, err)
}
