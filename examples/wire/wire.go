// Package wire serves the output of the harvest protocols' examples, and shows
// the requests and answers.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Site is the URL at which the examples' servers seem to be.
const Site = "http://example.org/"

// Serve serves a handler on a free port of the loopback interface, until stop
// is called. The client reaches it as Site. Serve writes the requests and
// answers to log, with only the named header fields.
func Serve(handler http.Handler, log io.Writer, fields ...string) (client *feedhistory.Client, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: tap(handler, log, fields), ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}}
	stop = func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	}
	return &feedhistory.Client{HTTP: &http.Client{Transport: transport}}, stop, nil
}

// tap logs each request, and its answer.
func tap(handler http.Handler, log io.Writer, fields []string) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		r.Header.Del("Accept-Encoding") // so that the answer is readable
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		fmt.Fprintf(log, "> %s %s\n", r.Method, r.URL.RequestURI())
		write(log, "> ", r.Header, fields)
		fmt.Fprintf(log, "< %d %s\n", rec.Code, http.StatusText(rec.Code))
		write(log, "< ", rec.Header(), fields)
		for line := range strings.Lines(strings.ReplaceAll(rec.Body.String(), "\r\n", "\n")) {
			fmt.Fprintf(log, "%s\n", strings.TrimRight("< "+strings.TrimSuffix(line, "\n"), " "))
		}
		fmt.Fprintln(log)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

func write(log io.Writer, prefix string, header http.Header, fields []string) {
	for _, name := range fields {
		for _, value := range header.Values(name) {
			fmt.Fprintf(log, "%s%s: %s\n", prefix, name, value)
		}
	}
}

// Check returns an error for each part that a README lacks: the given functions
// of an example's source, each in a block of Go, and the exchange.
func Check(readme, source, exchange string, functions ...string) error {
	var all []error
	for _, name := range functions {
		_, text, ok := strings.Cut(source, "\nfunc "+name+"(")
		text, _, end := strings.Cut(text, "\n}\n")
		block := "```go\nfunc " + name + "(" + text + "\n}\n```\n"
		if !ok || !end || !strings.Contains(readme, block) {
			all = append(all, fmt.Errorf("the README should have\n%s", block))
		}
	}
	if block := "```\n" + strings.TrimSpace(exchange) + "\n```\n"; !strings.Contains(readme, block) {
		all = append(all, fmt.Errorf("the README should have\n%s", block))
	}
	return errors.Join(all...)
}
