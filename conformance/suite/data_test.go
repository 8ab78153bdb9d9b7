package suite_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/conformance/suite"
)

// dataFiles returns the files of the folder data that are made from the cases.
func dataFiles(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	add := func(name string, data io.WriterTo) {
		var b bytes.Buffer
		_, err := data.WriteTo(&b)
		require.NoError(t, err)
		files[filepath.Join("data", name)] = b.String()
	}
	manifest, err := suite.NewManifest(cases(t))
	require.NoError(t, err)
	add("manifest.json", manifest)
	for _, c := range cases(t) {
		site, err := c.Website()
		require.NoError(t, err)
		add(c.Name+".json", site)
	}
	return files
}

// The folder data, which other projects copy, has just the cases of this version.
func TestData(t *testing.T) {
	files := dataFiles(t)
	if *update {
		for name, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		}
	}
	found, err := filepath.Glob("data/*/*.json")
	require.NoError(t, err)
	require.Equal(t, slices.Sorted(maps.Keys(files)), slices.Sorted(slices.Values(append(found, "data/manifest.json"))), "data has other files than the cases: run go test ./conformance/suite -run TestData -update")
	for name, text := range files {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		if string(got) != text {
			t.Fatalf("%s is not what the cases say: run go test ./conformance/suite -run TestData -update, and decide whether the version must change", name)
		}
		require.NotContains(t, text, "{{", "a template")
	}
	var packed struct{ Version string }
	text, err := os.ReadFile("data/package.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &packed))
	require.Equal(t, suite.Version, "v"+strings.TrimSuffix(packed.Version, ".0.0"))
	require.Contains(t, read(t, "data/CHANGELOG.md"), "\n## "+suite.Version+"\n")
}

// A player is a server of the folder data in some language.
type player struct {
	in    io.Writer
	out   *bufio.Scanner
	sites map[string]played
}

type played struct{ Name, URL, Site, Other string }

func play(t *testing.T, count int, command ...string) *player {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Skip("there is no " + command[0])
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { require.NoError(t, in.Close()); _ = cmd.Wait() })
	p := &player{in: in, out: bufio.NewScanner(out), sites: map[string]played{}}
	p.out.Buffer(nil, 1<<24)
	for range count {
		var site played
		require.NoError(t, json.Unmarshal(p.line(t), &site))
		p.sites[site.Name] = site
	}
	return p
}

func (p *player) line(t *testing.T) []byte {
	t.Helper()
	require.True(t, p.out.Scan(), "the server has ended")
	return p.out.Bytes()
}

// An answer is everything of a response that does not depend on the clock or on how
// the body is framed.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Ends   string
}

func ask(t *testing.T, url, etag string) answer {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return answer{Ends: "no answer"}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a := answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Ends: "whole"}
	if err != nil {
		a.Ends = "short"
	}
	for _, name := range []string{"Date", "Connection", "Content-Length", "Transfer-Encoding"} {
		a.Header.Del(name)
	}
	return a
}

// The servers in Python and JavaScript answer byte for byte as this one does, at
// each poll, for the first request and the second, with and without a validator.
func TestPlayers(t *testing.T) {
	t.Parallel()
	all := cases(t)
	for _, command := range [][]string{{"python3", "data/serve.py"}, {"node", "data/serve.mjs"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			p := play(t, len(all), command...)
			for _, c := range all {
				comparePlayed(t, p, c)
			}
		})
	}
}

func comparePlayed(t *testing.T, p *player, c *suite.Case) {
	t.Helper()
	ours, err := c.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, ours.Close()) }()
	theirs, site := p.sites[c.Name], strings.TrimSuffix(ours.URL, c.Start)
	website, err := c.Website()
	require.NoError(t, err)
	paths := []string{"/nowhere"}
	for _, r := range website.Resources {
		paths = append(paths, r.Path, r.Path+"?unknown=1")
	}
	otherURL := ours.Other()
	same := strings.NewReplacer("http://"+theirs.Site, site, "http://"+theirs.Other, otherURL,
		theirs.Site, strings.TrimPrefix(site, "http://"), theirs.Other, strings.TrimPrefix(otherURL, "http://"))
	for {
		for _, path := range paths {
			for range 2 {
				want, got := ask(t, site+path, ""), ask(t, "http://"+theirs.Site+path, "")
				ourTag, theirTag := want.Header.Get("ETag"), got.Header.Get("ETag")
				compareAnswers(t, c.Name+path, want, got, same)
				if ourTag != "" {
					want, got = ask(t, site+path, ourTag), ask(t, "http://"+theirs.Site+path, theirTag)
					compareAnswers(t, c.Name+path, want, got, same)
				}
			}
		}
		if !ours.Next() {
			break
		}
		_, err := io.WriteString(p.in, "poll "+c.Name+"\n")
		require.NoError(t, err)
		require.NotEqual(t, "null", string(p.line(t)))
	}
}

// compareAnswers compares two answers. An ETag is a digest of a body that names the
// website, so only whether there is one is compared.
func compareAnswers(t *testing.T, name string, want, got answer, same *strings.Replacer) {
	t.Helper()
	for _, values := range got.Header {
		for i := range values {
			values[i] = same.Replace(values[i])
		}
	}
	for _, header := range []http.Header{want.Header, got.Header} {
		if etag := header.Get("ETag"); len(etag) == 66 {
			header.Set("ETag", "a digest")
		}
	}
	got.Body = same.Replace(got.Body)
	if len(want.Body) > 1000 && want.Body == got.Body {
		want.Body, got.Body = "", ""
	}
	require.Equal(t, want, got, name)
}
