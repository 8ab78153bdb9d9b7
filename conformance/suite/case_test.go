package suite_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "write the folder data")
	every  = flag.Bool("all", feedtest.LongRun(), "run the readers of other projects on all cases")
)

// The tests read the files of the folder above.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	feedtest.Main(m)
}

var clause = regexp.MustCompile(`^(5005(#([1-9]|1[0-9]|2[0-8])| §[0-9.]+| Appendix B)|RFC [0-9]+( §[0-9.]+)?|XML 1\.0 §[0-9.]+|JSON Feed 1\.1|erratum [0-9]+|feedhistory mirror/1\.0)$`)

// elsewhere is a link that a reader may follow away from the loopback interface.
var elsewhere = regexp.MustCompile(`(<[\w:]*link [^>]*href=|Location: *|xml:base=|"next_url": *|Link: *<)"?https?://[a-z0-9.:-]+[/"]`)

// Each case has a comment, names its clauses, and can be failed.
func TestCases(t *testing.T) {
	for _, c := range cases(t) {
		require.NotEmpty(t, c.Clauses, c.Name)
		for _, text := range c.Clauses {
			require.Regexp(t, clause, text, c.Name)
		}
		require.True(t, strings.HasSuffix(c.Why, ".") || strings.HasSuffix(c.Why, ".)"), "%s: %q", c.Name, c.Why)
		strong, seen := 0, map[string]bool{}
		for _, q := range c.Requirements {
			if q.Strength == suite.Must || q.Strength == suite.MustNot {
				strong++
			}
			key := strings.Join([]string{string(rune(q.Poll)), q.What, q.Of}, " ")
			require.False(t, seen[key], "%s: %s is said twice", c.Name, q)
			seen[key] = true
		}
		if c.Name != "walk/base-iri" { // it tests only an erratum
			require.NotZero(t, strong, c.Name)
		}
		require.NotRegexp(t, elsewhere, c.Source, "%s sends readers elsewhere", c.Name)
	}
}

func TestParse(t *testing.T) {
	const feed = "A case.\n-- /feed.atom --\n<feed/>\n"
	for text, problem := range map[string]string{
		"":   "no comment",
		feed: "no file judge",
		feed + "-- judge --\nlevel entries\nmust entry\n":                                 "the argument is missing",
		feed + "-- judge --\nlevel entries\nmust entrys urn:1\n":                          "unknown requirement",
		feed + "-- judge --\nlevel entries\nshall entry urn:1\n":                          "unknown strength",
		feed + "-- judge --\nlevel all\nmust entry urn:1\n":                               "unknown level",
		feed + "-- judge --\nlevel entries\nmust requests many\n":                         "the number is missing",
		feed + "-- judge --\nlevel entries\nmust request /a\n":                            "the number is missing",
		feed + "-- judge --\nlevel entries\nmust version urn:1\n":                         "the title of the version is missing",
		feed + "-- judge --\nlevel entries\nshould once more\n":                           "once takes no argument",
		feed + "-- judge --\nlevel entries\npoll 1\n":                                     "no poll 1",
		feed + "-- polls --\nfirst\n-- judge --\nlevel state\nmust entry urn:1\n":         "the poll is missing",
		feed + "-- polls --\nfirst\n-- judge --\nlevel state\npoll 2\nmust entry urn:1\n": "no poll 2",
	} {
		_, err := suite.Parse("walk/x", text)
		require.ErrorContains(t, err, problem, text)
	}
	c, err := suite.Parse("polls/x", feed+"-- polls --\nfirst\nagain\n-- judge --\nlevel state\nclauses 5005#19, RFC 6721\nstart /a\npoll 2\nmust version urn:1 Two words\n")
	require.NoError(t, err)
	require.Equal(t, []string{"first", "again"}, c.Polls)
	require.Equal(t, []string{"5005#19", "RFC 6721"}, c.Clauses)
	require.Equal(t, "/a", c.Start)
	require.Equal(t, []suite.Requirement{
		{Poll: 2, Strength: suite.Must, What: "version", Of: "urn:1", Value: "Two words", Level: suite.LevelState},
	}, c.Requirements)
}

func TestMatch(t *testing.T) {
	all := cases(t)
	for pattern, want := range map[string][]string{
		"walk/archived":  {"walk/archived"},
		"archived":       {"polls/archived", "walk/archived"},
		"walk/rfc5005-*": {"walk/rfc5005-archived-atom", "walk/rfc5005-archived-rss", "walk/rfc5005-paged-atom"},
		"none":           nil,
	} {
		matched, err := suite.Match(all, pattern)
		require.NoError(t, err)
		var names []string
		for _, c := range matched {
			names = append(names, c.Name)
		}
		require.Equal(t, want, names)
	}
	_, err := suite.Match(all, "[")
	require.Error(t, err)
}

func TestReadResult(t *testing.T) {
	for text, want := range map[string]*suite.Result{
		`{"entries":["urn:1",{"id":"urn:2","title":"Two"}]}`: {Entries: []suite.ReaderEntry{{ID: "urn:1"}, {ID: "urn:2", Title: "Two"}}},
		`{"entries":[]}`: {},
		`{"entries":[],"verdict":"partial","gaps":["http://a/",{"url":"http://b/","reason":"status"}],"deleted":[{"ref":"urn:3"},"urn:4"]}`: {
			Verdict: "partial", Gaps: []string{"http://a/", "http://b/"}, Deleted: []string{"urn:3", "urn:4"},
		},
		`{"gaps":[],"deleted":[]}`: {Gaps: []string{}, Deleted: []string{}},
		"{\"id\":\"urn:1\",\"title\":\"One\"}\n{\"id\":\"urn:2\"}\n{\"verdict\":\"whole\",\"deleted\":0}\n": {
			Entries: []suite.ReaderEntry{{ID: "urn:1", Title: "One"}, {ID: "urn:2"}}, Verdict: "whole",
		},
		`{"failed":true}`: {Failed: true},
		`{"id":"urn:1","title":{"type":"html","body":"<b>One</b> &amp; all"}}`: {Entries: []suite.ReaderEntry{{ID: "urn:1", Title: "One & all"}}},
		`{"entries":[{"id":"urn:1","title":{"type":"text","body":"<b>"}}]}`:    {Entries: []suite.ReaderEntry{{ID: "urn:1", Title: "<b>"}}},
	} {
		got, err := suite.ReadResult(strings.NewReader(text))
		require.NoError(t, err, text)
		if len(want.Entries) == 0 {
			require.Empty(t, got.Entries)
			got.Entries = nil
		}
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "  ", "<feed/>", `{"entries":[1]}`, `{"entries":["urn:1"]`, `[]`} {
		_, err := suite.ReadResult(strings.NewReader(text))
		require.Error(t, err, text)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text := feedtest.ReadFile(t, name)
	return string(text)
}

// What the documents say about the cases is correct.
func TestDocuments(t *testing.T) {
	all, names := cases(t), map[string]bool{}
	for _, c := range all {
		names[c.Name] = true
	}
	require.Contains(t, read(t, "README.md"), fmt.Sprintf("It has %d websites", len(all)))
	require.Equal(t, read(t, "../LICENSE"), read(t, "data/LICENSE"), "who copies the folder has its licence")
	mistakes := read(t, "MISTAKES.md")
	shown := regexp.MustCompile("`((?:walk|polls)/[a-z0-9-]+)`").FindAllStringSubmatch(mistakes, -1)
	require.NotEmpty(t, shown)
	for _, m := range shown {
		require.True(t, names[m[1]], m[1])
	}
	require.Len(t, regexp.MustCompile(`(?m)^[0-9]+\. \*\*`).FindAllString(mistakes, -1), 10)
	format := read(t, "FORMAT.md")
	for _, c := range all {
		for _, q := range c.Requirements {
			require.Contains(t, format, "\n| `"+q.What, "a requirement that FORMAT.md does not explain")
		}
	}
}

// The curl commands in README work as described.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	suite, err := suite.NewServer(cases(t))
	require.NoError(t, err)
	server := httptest.NewServer(suite)
	t.Cleanup(func() { server.Close(); require.NoError(t, suite.Close()) })
	n := 0
	for line := range strings.Lines(read(t, "README.md")) {
		line, ok := strings.CutPrefix(line, "    curl ")
		if !ok {
			continue
		}
		n++
		command := "curl -sSf " + strings.ReplaceAll(line, "http://127.0.0.1:5005", server.URL)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		require.NotEmpty(t, out, command)
	}
	require.Equal(t, 7, n)
}

// The readers in this directory that are no packages run, and have the expected results.
func TestRunners(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	gofeed := t.TempDir() + "/gofeed"
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", gofeed, "./runners/gofeed").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, test := range []struct {
		name    string
		command []string
		ours    bool // it is built here, and follows links in a loop
	}{
		{"gofeed", []string{gofeed, "{url}"}, true},
		{"feedparser", []string{"/usr/bin/python3", "runners/feedparser/reader.py", "{url}"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !test.ours {
				feedtest.Required(t, "FEEDHISTORY_RUNNERS")
			}
			some, err := suite.Match(cases(t), "walk/archived", "walk/complete")
			require.NoError(t, err)
			report, err := suite.Run(t.Context(), suite.Command(os.Stderr, test.command...), some, &suite.Options{Parallel: 2, NoState: true, Timeout: patience})
			require.NoError(t, err)
			for _, trial := range report.Trials {
				want := suite.Passed
				if !test.ours && strings.HasPrefix(trial.Name, "walk/archived") {
					want = suite.Failed
				}
				require.Equal(t, want, trial.Outcome, "%s: %s", trial.Name, said(t, report, true))
			}
		})
	}
}

// The readers in Python and TypeScript install from their directory, and pass every must,
// with and without a ledger. The long form runs all cases.
func TestWalkers(t *testing.T) {
	feedtest.Required(t, "FEEDHISTORY_RUNNERS")
	t.Parallel()
	some := cases(t)
	if !*every {
		var err error
		some, err = suite.Match(some, "*-given-first", "archive-404", "archived*", "complete", "duplicate-*", "ids-*", "paged*", "rss-*",
			"polls/archive-*", "polls/plain*", "window-*", "link-mended-*")
		require.NoError(t, err)
	}
	for name, install := range map[string]string{
		"feedparser": `cp -r runners/feedparser "$DIR/source"; /usr/bin/python3 -m venv --system-site-packages "$DIR/venv"
			"$DIR/venv/bin/pip" -q install --no-index --no-build-isolation --no-deps "$DIR/source"; ln -s venv/bin/feedwalk "$DIR/feedwalk"`,
		"feedsmith": `cd runners/feedsmith; npm pack --silent --pack-destination "$DIR" >/dev/null; cd "$DIR"; tar xzf feedwalk-*.tgz
			ln -s "$OLDPWD/node_modules" .; chmod +x package/dist/feedwalk.js; ln -s package/dist/feedwalk.js feedwalk`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", install)
			cmd.Env = append(os.Environ(), "DIR="+dir)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			report, err := suite.Run(t.Context(), suite.Command(nil, dir+"/feedwalk", "{url}", "{state}/ledger"), some, &suite.Options{Parallel: 2, Timeout: patience})
			require.NoError(t, err)
			require.False(t, report.Failed(), said(t, report, false))
		})
	}
}
