package main

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal/terminaltest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// wrong returns wrong values of a flag.
func wrong(f *kong.Flag) (values []string, known bool) {
	if values := terminaltest.WrongValues(f); values != nil {
		return values, true
	}
	switch f.Name {
	case "db":
		return []string{"feeds.db", "http://example.org/"}, true
	case "proxy":
		return []string{"ftp://example.org/"}, true
	case "ca-file", "opml":
		return []string{"/no/such/file"}, true
	}
	return nil, f.Name == "user-agent"
}

// A wrong value of a flag is refused, in one line that names the flag or its file, before
// anything is requested.
func TestWrongValues(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("requested: %s", r.URL) }))
	t.Setenv("FEEDHISTORY_DB", "postgres://127.0.0.1:1/none")
	parser, err := kong.New(&commandLine{}, kong.Vars{"version": "", "agent": ""})
	require.NoError(t, err)
	tried := 0
	for _, verb := range parser.Model.Leaves(true) {
		for _, group := range verb.AllFlags(true) {
			for _, f := range group {
				if f.Name == "help" || f.Name == "version" {
					continue
				}
				values, known := wrong(f)
				require.True(t, known, "%s --%s: %v", verb.Name, f.Name, reflect.TypeOf(f.Target.Interface()))
				for _, value := range values {
					args := []string{verb.Name, "--allow-private", "--" + f.Name + "=" + value}
					if strings.HasSuffix(verb.Name, "subscribe") && f.Name != "opml" {
						args = append(args, server.URL+"/feed")
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					var stdout, stderr bytes.Buffer
					status := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
					cancel()
					if f.Name == "opml" {
						require.Equal(t, terminal.ExitFailed, status, "%q: %s", args, &stderr)
						require.Empty(t, stdout.String(), "%q", args)
						require.Equal(t, "feedfleet: /no/such/file: there is no such file\n", stderr.String(), "%q", args)
					} else {
						require.Equal(t, terminal.ExitUsage, status, "%q: %s", args, &stderr)
						terminaltest.RequireRefused(t, "feedfleet", verb.Name, f.Name, stdout.String(), stderr.String(), args)
					}
					tried++
				}
			}
		}
	}
	require.Greater(t, tried, 40)
}
