//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

// A full is standard output on a full disk.
type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Output that cannot be written is an error. The command reports it once, and blames
// nothing else.
func TestFullOutput(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<rss version="2.0"><channel><title>F</title>`))
		for range 2000 {
			_, _ = w.Write([]byte(`<item><title>One ` + strings.Repeat("x", 100) + `</title></item>`))
		}
		_, _ = w.Write([]byte(`<item><guid>urn:1</guid><title>One</title></item></channel></rss>`))
	}))
	defer server.Close()
	db := filepath.Join(t.TempDir(), "feeds.db")
	done(t, "", "sync", "--db", db, "--allow-private", server.URL)
	for _, args := range []string{
		"entries", "entries --json", "entries --long", "entry urn:1", "entry --json urn:1", "list", "list --json",
		"export", "export --raw", "export --format csv", "export --format opml", "export --format json " + server.URL, "export --format rss " + server.URL,
		"export --format greader", "export --format nextcloud", "fetch", "fetch --format json", "fetch --format rss", "fetch --raw", "inspect", "check --json",
		"sync --all", "help", "help list", "version", "--version", "man", "completion fish",
	} {
		words := strings.Fields(args)
		switch words[0] {
		case "entries", "entry", "list", "export", "sync":
			words = append(words, "--db", db)
		}
		switch words[0] {
		case "fetch", "inspect", "check":
			words = append(words, server.URL)
		}
		switch words[0] {
		case "fetch", "inspect", "check", "sync":
			words = append(words, "--allow-private")
		}
		var stderr strings.Builder
		status := run(t.Context(), words, strings.NewReader(""), full{}, &stderr)
		require.Equal(t, exit.Failed, status, "%s: %s", args, stderr.String())
		require.Equal(t, "feedhistory: no space left on device\n", stderr.String(), args)
	}
}

// The output file of an interrupted fetch keeps its old content.
func TestInterruptedOutput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.atom" {
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="slow.atom"/><entry><id>urn:1</id></entry></feed>`))
	}))
	defer server.Close()
	name := filepath.Join(t.TempDir(), "out.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("before"), 0o600))
	var stderr strings.Builder
	status := run(ctx, []string{"fetch", "--allow-private", "--output", name, server.URL}, strings.NewReader(""), io.Discard, &stderr)
	require.Equal(t, exit.Interrupted, status, stderr.String())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before", string(text), stderr.String())
}
