package modules

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	measurement = regexp.MustCompile("`[^`]*go test -run ([^`]*)`")
	repetition  = regexp.MustCompile(` -benchtime \S+| -(million|page-bytes|rows|harvested|harvest-kills) \d+`)
	result      = regexp.MustCompile(`(?m)^(Benchmark\w+).* ns/op|^--- PASS: (\w+)`)
)

// A measured package has tests and benchmarks that BENCHMARKS.md names.
type measured struct{ tests, benchmarks []string }

// Each command of BENCHMARKS.md measures something. The commands of a package run as one,
// once, with small inputs.
func TestBenchmarks(t *testing.T) {
	text, err := os.ReadFile("../../docs/BENCHMARKS.md")
	require.NoError(t, err)
	commands := measurement.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(commands), 10)
	packages := map[string]*measured{}
	for _, c := range commands {
		dir, tests, benchmarks := parse(t, c[1])
		if packages[dir] == nil {
			packages[dir] = &measured{}
		}
		packages[dir].tests = append(packages[dir].tests, tests)
		packages[dir].benchmarks = append(packages[dir].benchmarks, benchmarks)
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		t.Run(dir, func(t *testing.T) {
			m := packages[dir]
			tests, benchmarks := slices.DeleteFunc(slices.Compact(m.tests), isNone), slices.DeleteFunc(slices.Compact(m.benchmarks), isNone)
			found := run(t, dir, union(tests), union(benchmarks))
			for _, pattern := range append(tests, benchmarks...) {
				require.True(t, slices.ContainsFunc(found, regexp.MustCompile(pattern).MatchString), "%s measures nothing: %v", pattern, found)
			}
		})
	}
}

// parse returns the package and the patterns of the arguments after `go test -run`.
func parse(t *testing.T, command string) (dir, tests, benchmarks string) {
	words := strings.Fields(strings.ReplaceAll(repetition.ReplaceAllString(command, ""), "'", ""))
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&tests, "run", "", "")
	flags.StringVar(&benchmarks, "bench", "", "")
	_, _ = flags.Bool("v", false, ""), flags.String("timeout", "", "")
	require.NoError(t, flags.Parse(append([]string{"-run"}, words...)))
	require.Equal(t, 1, flags.NArg(), "%s: a package and no more", command)
	require.DirExists(t, filepath.Join("../..", flags.Arg(0)))
	return flags.Arg(0), tests, benchmarks
}

func isNone(pattern string) bool { return pattern == "" || pattern == "^$" }

// union returns a pattern for all that one of the patterns matches.
func union(patterns []string) string {
	if len(patterns) == 0 {
		return "^$"
	}
	return strings.Join(patterns, "|")
}

// run runs tests and benchmarks of a package briefly, and returns the names of those that
// have a result.
func run(t *testing.T, dir, tests, benchmarks string) (names []string) {
	command := exec.Command("go", "test", "-vet=off", "-short", "-v", "-benchtime=1x", "-run", tests, "-bench", benchmarks, "./"+dir)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "GOWORK=")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, line := range result.FindAllStringSubmatch(string(out), -1) {
		names = append(names, line[1]+line[2])
	}
	return names
}
