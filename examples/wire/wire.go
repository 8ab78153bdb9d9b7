// Package wire serves the results of the examples of the harvest protocols, and shows
// the exchange on the wire.
package wire

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory"
)

// Main is the main function of an example: it calls run, which writes its result to out
// and, if the flag -wire is set, all requests and responses to exchange as well.
func Main(run func(ctx context.Context, out, exchange io.Writer) error) {
	show := flag.Bool("wire", false, "show what crosses the wire")
	flag.Parse()
	exchange := io.Discard
	if *show {
		exchange = os.Stdout
	}
	if err := run(context.Background(), os.Stdout, exchange); err != nil {
		log.Fatal(err)
	}
}

// Site is the address under which a client reaches the examples' servers.
const Site = "http://example.org/"

// Serve serves a handler on a free port of the loopback interface, until stop is
// called. The client reaches it as Site. Serve writes each request and response to
// log; of their headers, only the given fields.
func Serve(handler http.Handler, log io.Writer, fields ...string) (client *feedhistory.Client, stop func()) {
	server := httptest.NewServer(tap(handler, log, fields))
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	stop = func() {
		transport.CloseIdleConnections()
		server.Close()
	}
	return &feedhistory.Client{AllowPrivate: true, Transport: transport}, stop
}

// tap returns a handler that logs each request with its response.
func tap(handler http.Handler, log io.Writer, fields []string) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		r.Header.Del("Accept-Encoding") // the answer can be read
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
		maps.Copy(w.Header(), rec.Header())
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

// Check compares the README at a path with the example, and reports differences: the
// functions of main.go in the current directory, each in a block of Go, and the
// exchange on the wire.
func Check(path, exchange string, functions ...string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	main, err := os.ReadFile("main.go")
	if err != nil {
		return err
	}
	readme, source := string(text), string(main)
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
