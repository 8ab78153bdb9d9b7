package feedtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Each package with random tests draws the run's cases.
func TestAllDrawTheRunsCases(t *testing.T) {
	random := regexp.MustCompile(`\brapid\.(Check|MakeCheck|MakeFuzz)\b|\bfeedtest\.(Random|Seeds|Count)\(`)
	main := regexp.MustCompile(`\bfeedtest\.(Main|Run)\(|\bMain\(m\)`)
	draws, fixes := map[string]bool{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(name string, file fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, dir := ReadFile(t, name), filepath.Dir(name)
		draws[dir] = draws[dir] || random.Match(text)
		fixes[dir] = fixes[dir] || main.Match(text)
		return nil
	}))
	require.True(t, draws["../.."])
	for dir := range draws {
		require.True(t, !draws[dir] || fixes[dir], "%s has random tests and does not begin with Main", dir)
	}
}

// TestRuns runs TestDrawn in processes of its own, and reads its log.
func TestDrawn(t *testing.T) {
	if os.Getenv("FEEDTEST_DRAWN") == "" {
		t.Skip("TestRuns runs it")
	}
	checks, values := 0, []uint64{}
	rapid.Check(t, func(t *rapid.T) {
		if checks++; checks < 4 {
			values = append(values, rapid.Uint64().Draw(t, "n"))
		}
	})
	t.Log(checks, values, Count(80), Count(3), Random(1).Uint64(), slices.Collect(Seeds(2)))
	require.Equal(t, "1", os.Getenv("FEEDTEST_DRAWN"))
}

// A run draws the same cases as the one before it, unless it is long or its seed is given;
// the command that a failed long run prints has its seed.
func TestRuns(t *testing.T) {
	run := func(fails bool, variables ...string) (cases, output string) {
		t.Helper()
		c := exec.Command(os.Args[0], "-test.run=^TestDrawn$", "-test.v", "-rapid.nofailfile")
		c.Env = slices.DeleteFunc(os.Environ(), func(s string) bool {
			return strings.HasPrefix(s, "RAPID_") || strings.HasPrefix(s, "FEEDHISTORY_LONG=")
		})
		drawn := "FEEDTEST_DRAWN=1"
		if fails {
			drawn = "FEEDTEST_DRAWN=fails"
		}
		c.Env = append(append(c.Env, drawn), variables...)
		all, err := c.CombinedOutput()
		require.Equal(t, fails, err != nil, "%s", all)
		line := regexp.MustCompile(`cases_test\.go:\d+: (\d+ .*)`).FindSubmatch(all)
		require.NotNil(t, line, "%s", all)
		return string(line[1]), string(all)
	}
	usual, output := run(true)
	require.Regexp(t, `^25 \[\d+ \d+ \d+\] 10 1 \d+ \[5005 5006\]$`, usual)
	require.NotContains(t, output, "repeated")
	again, _ := run(false, "RAPID_SEED=5005")
	require.Equal(t, usual, again)
	few, _ := run(false, "RAPID_SEED=7", "RAPID_CHECKS=10")
	require.Regexp(t, `^10 .* 10 1 \d+ \[7 8\]$`, few)
	require.NotEqual(t, strings.Fields(usual)[1], strings.Fields(few)[1])

	long, output := run(true, "FEEDHISTORY_LONG=1")
	require.Regexp(t, `^100 \[\d+ \d+ \d+\] 80 3 `, long)
	command := regexp.MustCompile(`this run is repeated by: FEEDHISTORY_LONG=1 (RAPID_SEED=\d+) go test .*-run='\^TestDrawn\$'.* github.com/feedhistory/feedhistory/internal/feedtest\n`).FindStringSubmatch(output)
	require.NotNil(t, command, output)
	repeated, _ := run(false, "FEEDHISTORY_LONG=1", command[1])
	require.Equal(t, long, repeated)
	other, _ := run(false, "FEEDHISTORY_LONG=1")
	require.NotEqual(t, long, other)
}
