package suite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// A reader that knows only HTTP and JSON can be judged through the server.
func TestServer(t *testing.T) {
	all := cases(t)
	served, err := suite.NewServer(all)
	require.NoError(t, err)
	server := httptest.NewServer(served)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, served.Close())
		http.DefaultClient.CloseIdleConnections()
	})
	do := func(method, url, body string, status int, value any) string {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, status, resp.StatusCode, "%s %s: %s", method, url, data)
		if value != nil {
			require.NoError(t, json.Unmarshal(data, value))
		}
		return string(data)
	}
	var index struct {
		Version string
		Cases   []struct{ Name, URL string }
	}
	do("GET", server.URL+"/index.json", "", 200, &index)
	require.Equal(t, suite.Version, index.Version)
	require.Len(t, index.Cases, len(all))
	require.Contains(t, do("GET", server.URL+"/", "", 200, nil), "walk/archived\n  http://127.0.0.1:")

	at := server.URL + "/cases/polls/archived"
	var live struct {
		URL, Source string
		Poll        int
	}
	do("GET", at, "", 200, &live)
	require.Equal(t, 1, live.Poll)
	require.Contains(t, live.Source, "-- /feed.atom --")

	var judged struct {
		Outcome  suite.Outcome
		Findings []suite.Assessment
	}
	do("POST", at+"/judge", "", 200, &judged)
	require.Equal(t, suite.Errored, judged.Outcome, "nothing was reported")
	do("GET", live.URL, "", 200, nil)
	do("POST", at+"/judge", `{"entries":["urn:1","urn:2","urn:3"]}`, 200, &judged)
	require.Equal(t, suite.Passed, judged.Outcome)
	do("POST", at+"/judge", `{"entries":["urn:3","urn:2"],"verdict":"whole"}`, 200, &judged)
	require.Equal(t, suite.Failed, judged.Outcome)
	do("POST", at+"/judge", `{"entries":`, 400, nil)

	for poll := range 3 {
		do("POST", at+"/poll", "", 200, &live)
		require.Equal(t, poll+2, live.Poll)
	}
	do("POST", at+"/poll", "", 409, nil)
	require.Contains(t, do("GET", live.URL, "", 200, nil), "deleted-entry")
	var asked []suite.Request
	do("GET", at+"/requests", "", 200, &asked)
	require.Len(t, asked, 2)
	require.Equal(t, suite.Request{Poll: 4, Method: "GET", URL: "/feed.atom", Status: 200, Agent: "Go-http-client/1.1"}, asked[1])
	do("POST", at+"/reset", "", 200, &live)
	require.Equal(t, 1, live.Poll)
	do("GET", at+"/requests", "", 200, &asked)
	require.Empty(t, asked)
	do("GET", server.URL+"/cases/walk/none", "", 404, nil)
}

// A program that prints something has a result, however it exits. A test ends with
// its context.
func TestExits(t *testing.T) {
	t.Parallel()
	some, err := suite.Match(cases(t), "walk/archived")
	require.NoError(t, err)
	reader := suite.Command(nil, "sh", "-c", `echo '{"entries":["urn:1","urn:2","urn:3"]}'; exit 3`)
	report, err := suite.Run(t.Context(), reader, some, &suite.Options{Timeout: patience})
	require.NoError(t, err)
	require.Equal(t, suite.Passed, report.Trials[0].Outcome)
	require.Zero(t, report.Errors)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = suite.Run(ctx, walked, some, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// A reader without a state is not tested on cases with several polls.
func TestNoState(t *testing.T) {
	some, err := suite.Match(cases(t), "polls/archived", "polls/archived-chain-moved-undated")
	require.NoError(t, err)
	report, err := suite.Run(t.Context(), walked, some, &suite.Options{NoState: true, Timeout: patience})
	require.NoError(t, err)
	require.Empty(t, report.Trials[0].Assessments)
	require.NotEmpty(t, report.Trials[1].Assessments)
}

// The page has every case and what is wrong, and escapes all markup.
func TestPage(t *testing.T) {
	some, err := suite.Match(cases(t), "walk/archived", "walk/archive-404")
	require.NoError(t, err)
	report, err := suite.Run(t.Context(), func(context.Context, string, string) (*suite.Result, error) {
		return &suite.Result{Entries: []suite.ReaderEntry{{ID: "<script>"}}, Verdict: "whole"}, nil
	}, some, &suite.Options{Timeout: patience})
	require.NoError(t, err)
	report.Reader = "<b>wrong</b>"
	var b strings.Builder
	require.NoError(t, suite.WritePage(&b, report, report))
	require.Contains(t, b.String(), `id="walk/archive-404"`)
	require.Contains(t, b.String(), "no document has the id")
	require.Contains(t, b.String(), "RFC 5005 has no MUST for readers")
	require.Contains(t, b.String(), "conformance serve --case walk/archive-404")
	require.NotContains(t, b.String(), "<script>")
	require.NotContains(t, b.String(), "<b>wrong")
	require.Error(t, suite.WritePage(&b))
}

// A badge says how many cases with requirements of RFCs are passed.
func TestBadge(t *testing.T) {
	some, err := suite.Match(cases(t), "walk/archived", "walk/archive-404")
	require.NoError(t, err)
	for _, test := range []struct {
		result *suite.Result
		want   string
	}{
		{&suite.Result{Entries: []suite.ReaderEntry{{ID: "urn:1"}, {ID: "urn:2"}, {ID: "urn:3"}}}, `{"schemaVersion":1,"label":"RFC 5005","message":"1/1 cases","color":"brightgreen"}`},
		{&suite.Result{Entries: []suite.ReaderEntry{}, Verdict: "whole"}, `{"schemaVersion":1,"label":"RFC 5005","message":"0/2 cases","color":"red"}`},
		{nil, `{"schemaVersion":1,"label":"RFC 5005","message":"does not run","color":"red"}`},
	} {
		report, err := suite.Run(t.Context(), func(context.Context, string, string) (*suite.Result, error) {
			if test.result == nil {
				return nil, errors.New("no")
			}
			return test.result, nil
		}, some, &suite.Options{Timeout: patience})
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, suite.WriteBadge(&b, report))
		require.JSONEq(t, test.want, b.String())
	}
}

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
	feedtest.Program(t, "FEEDHISTORY_RUNNERS", command[0])
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
	otherURL := ours.Other
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

// The judges in Python and JavaScript judge as this one does, whether a reader is right or
// wrong, at each poll. They are only asked about requests that are well-formed: Node refuses
// others.
func TestJudges(t *testing.T) {
	t.Parallel()
	some, err := suite.Match(cases(t), "walk/archive*", "walk/duplicate-*", "walk/rss-*", "walk/tombstone*", "walk/other-origin",
		"walk/link-to-*", "walk/link-with-*", "walk/*-fails", "walk/feed-4*", "polls/a*", "polls/moved-*", "behaviour/*")
	require.NoError(t, err)
	for _, command := range [][]string{{"python3", "data/serve.py"}, {"node", "data/serve.mjs"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, c := range some {
				names = append(names, c.Name)
			}
			p := play(t, len(some), append(command, names...)...)
			for _, c := range some {
				for _, f := range []faults{{}, {keepsOldest: true}, {keepsAll: true, noGaps: true, alwaysWhole: true}, {oneDocument: true}} {
					p.compareJudged(t, c, f)
				}
			}
		})
	}
}

func (p *player) ask(t *testing.T, line string) []byte {
	t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(t, err)
	return p.line(t)
}

func (p *player) compareJudged(t *testing.T, c *suite.Case, f faults) {
	t.Helper()
	site, err := c.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, site.Close()) }()
	ours, theirs := &strict{faults: f}, &strict{faults: f}
	p.ask(t, "reset "+c.Name)
	for {
		var want, got []string
		for _, a := range site.Judge(ours.read(site.URL)) {
			want = append(want, fmt.Sprintf("%s: %s", a.Outcome, a.Requirement))
		}
		report, err := json.Marshal(reported(theirs.read(p.sites[c.Name].URL)))
		require.NoError(t, err)
		var outcomes []json.RawMessage
		require.NoError(t, json.Unmarshal(p.ask(t, "judge "+c.Name+" "+string(report)), &outcomes))
		for _, outcome := range outcomes {
			var tuple []string
			var object struct{ Outcome, Requirement string }
			if json.Unmarshal(outcome, &tuple) != nil {
				require.NoError(t, json.Unmarshal(outcome, &object))
				tuple = []string{object.Outcome, object.Requirement}
			}
			got = append(got, strings.NewReplacer("http://other.invalid", "{{other}}", "site.invalid", "{{host}}").Replace(tuple[0]+": "+tuple[1]))
		}
		require.Equal(t, want, got, "%s, poll %d, %+v", c.Name, site.Poll(), f)
		if !site.Next() {
			return
		}
		p.ask(t, "poll "+c.Name)
	}
}

// reported returns a result as the JSON that readers print.
func reported(r *suite.Result) map[string]any {
	entries := []map[string]string{}
	for _, e := range r.Entries {
		entries = append(entries, map[string]string{"id": e.ID, "title": e.Title})
	}
	return map[string]any{"entries": entries, "verdict": r.Verdict, "gaps": r.Gaps, "deleted": r.Deleted, "failed": r.Failed}
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
