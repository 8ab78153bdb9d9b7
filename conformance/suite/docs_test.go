package suite_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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

// The readers in this directory run, and have the expected results.
func TestRunners(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	gofeed := t.TempDir() + "/gofeed"
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", gofeed, "./runners/gofeed").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, test := range []struct {
		name    string
		needs   []string // a command that succeeds if the reader can run
		command []string
		loops   bool
	}{
		{"gofeed", []string{"true"}, []string{gofeed, "{url}"}, true},
		{"feedparser", []string{"/usr/bin/python3", "-c", "import feedparser"}, []string{"/usr/bin/python3", "runners/feedparser/reader.py", "{url}"}, false},
		{"feedparser with walk.py", []string{"/usr/bin/python3", "-c", "import feedparser"}, []string{"/usr/bin/python3", "runners/feedparser/walk.py", "{url}"}, true},
		{"feedsmith", []string{"test", "-x", "runners/feedsmith/node_modules/.bin/tsx"}, []string{"runners/feedsmith/node_modules/.bin/tsx", "runners/feedsmith/walk.ts", "{url}"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if exec.CommandContext(t.Context(), test.needs[0], test.needs[1:]...).Run() != nil {
				if os.Getenv("FEEDHISTORY_RUNNERS") == "required" {
					t.Fatalf("%q fails", test.needs)
				}
				t.Skipf("%q fails", test.needs)
			}
			some, err := suite.Match(cases(t), "walk/archived", "walk/complete")
			require.NoError(t, err)
			report, err := suite.Run(t.Context(), suite.Command(os.Stderr, test.command...), some, &suite.Options{Parallel: 2, NoState: true, Timeout: patience})
			require.NoError(t, err)
			for _, trial := range report.Trials {
				want := suite.Passed
				if !test.loops && strings.HasPrefix(trial.Name, "walk/archived") {
					want = suite.Failed
				}
				require.Equal(t, want, trial.Outcome, "%s: %s", trial.Name, said(t, report, true))
			}
		})
	}
}

// The readers that may be copied are short, and pass every case with the flag rfc
// that needs no state. The long form runs all of these cases.
func TestWalkers(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	some, err := suite.Flagged(cases(t), "rfc", "!polls")
	require.NoError(t, err)
	if !*every {
		some, err = suite.Match(some, "*-given-first", "archive-404", "archived*", "complete", "duplicate-*", "ids-*", "paged")
		require.NoError(t, err)
	}
	for file, command := range map[string][]string{
		"runners/feedparser/walk.py": {"/usr/bin/python3"}, "runners/feedsmith/walk.ts": {"runners/feedsmith/node_modules/.bin/tsx"},
	} {
		t.Run(file, func(t *testing.T) {
			require.LessOrEqual(t, strings.Count(read(t, file), "\n"), 150)
			if exec.CommandContext(t.Context(), command[0], "--version").Run() != nil || strings.HasSuffix(file, ".py") && exec.CommandContext(t.Context(), command[0], "-c", "import feedparser").Run() != nil {
				t.Skip("cannot run here")
			}
			report, err := suite.Run(t.Context(), suite.Command(nil, append(command, file, "{url}")...), some, &suite.Options{Parallel: 2, Timeout: patience})
			require.NoError(t, err)
			require.False(t, report.Failed(), said(t, report, false))
		})
	}
}
