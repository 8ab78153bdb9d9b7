//go:build unix

package main

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/usage/usagetest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// wrongTexts has a wrong value for each flag of text and each verb's flag that differs;
// "" where every value, or the value of another program, may be right.
var wrongTexts = map[string]string{
	"accept": "", "add": "", "against": "/no/such/file", "author": "", "backfill-archive": "x y", "badge": "/no/such/file", "base": "x y", "by": "week", "ca-file": "/no/such/file",
	"case": "x y", "cookies": "/no/such/file", "db": "http://example.org/", "delete": "", "deletions": "x y", "dialect": "x y", "digests": "/no/such/file",
	"edit": "", "entry-id": "{nothing}", "erase --name": "", "feed": "", "flag": "x y", "format": "x y", "from": "x y", "header": "x y", "html": "/no/such/file", "id": "",
	"key": "", "link": "{nothing}", "name": "", "opml": "", "out": "", "profile": "x y", "protocol": "x y", "proxy": "x y", "publish --from": "",
	"publish --name": "../feed.atom", "published": "", "s3-endpoint": "x y", "save": "/no/such/file", "search": "", "site": "x y", "site-dir": "", "snapshot": "x y",
	"state": "", "status": "x y", "through": "x y", "timezone": "x y", "title": "", "to": "x y", "token": "", "token-env": "x y",
	"token-file": "/no/such/file", "type": "", "user": "a:b", "user-agent": "",
	"download --name": "{nothing}", "output": "/no/such/file",
}

// wrong returns wrong values of a flag.
func wrong(verb string, f *kong.Flag) (values []string, known bool) {
	if values := usagetest.WrongValues(f); values != nil {
		return values, true
	}
	value, known := wrongTexts[verb+" --"+f.Name]
	if !known {
		value, known = wrongTexts[f.Name]
	}
	if value == "" {
		return nil, known
	}
	return []string{value}, known
}

// A wrong value of a flag is refused, in one line that names the flag, before anything is
// requested or written.
func TestWrongValues(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"FEEDHISTORY_CONFIG": "", "FEEDHISTORY_DB": "", "XDG_DATA_HOME": dir, "MINIFLUX_TOKEN": "secret", "FEEDHISTORY_ALLOW_PRIVATE": "true",
	} {
		t.Setenv(name, value)
	}
	server := feedtest.Server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("requested: %s", r.URL) }))
	url, file := server.URL+"/feed", func(name string) string { return filepath.Join(dir, name) }
	arguments := map[string][]string{
		"inspect": {url}, "fetch": {url}, "check": {"--chain", url}, "publish": {"--out=" + file("out"), "--base=https://example.org/"},
		"harvest": {"--protocol=modified-range", url}, "produce": {"--protocol=atom-pmh", "--base=https://example.org/", "--out=" + file("out")},
		"sync": {url}, "entry": {"urn:1"}, "download": {"--out=" + file("out")}, "move": {url, url + "2"}, "rm": {url}, "erase": {"urn:1"},
		"db backup": {file("b.db")}, "handover": {"--to=" + server.URL, url}, "completion": {"bash"},
		"conformance run": {"--", "true"}, "conformance page": {file("report")}, "conformance publisher": {"--add=true", url},
		"import": {"--from=miniflux", server.URL},
	}
	seen := map[string]bool{}
	verbs := leaves(t)
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		if verb == "help" || verb == "version" {
			continue
		}
		for _, f := range slices.Concat(verbs[verb].AllFlags(true)...) {
			shared := f.Name + f.Help
			if f.Name == "help" || f.Name == "version" || testing.Short() && seen[shared] {
				continue
			}
			seen[shared] = true
			values, known := wrong(verb, f)
			require.True(t, known, "%s --%s: %v", verb, f.Name, reflect.TypeOf(f.Target.Interface()))
			if testing.Short() && len(values) > 0 {
				values = values[:1]
			}
			for _, value := range values {
				words := append(strings.Fields(verb), "--"+f.Name+"="+value)
				for _, arg := range arguments[verb] {
					if !strings.HasPrefix(arg, "--"+f.Name+"=") {
						words = append(words, arg)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				status, stdout, stderr := call(ctx, "", words...)
				cancel()
				require.Equal(t, exit.Usage, status, "%q: %s%s", words, stdout, stderr)
				usagetest.RequireRefused(t, "feedhistory", verb, f.Name, stdout, stderr, words)
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left, "%q", words)
			}
		}
	}
}
