package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/conformance/suite"
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
