package modules

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	measurement = regexp.MustCompile("`[^`]*(go test -run [^`]*)`")
	repetition  = regexp.MustCompile(` -benchtime \S+| -(million|page-bytes|rows|harvested|harvest-kills) \d+`)
	result      = regexp.MustCompile(`(?m)^Benchmark.* ns/op|^--- PASS`)
)

// Each command of BENCHMARKS.md runs and measures something. With -short, its inputs are
// small.
func TestBenchmarks(t *testing.T) {
	text, err := os.ReadFile("../../BENCHMARKS.md")
	require.NoError(t, err)
	commands := measurement.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(commands), 10)
	for _, c := range commands {
		t.Run(c[1], func(t *testing.T) {
			command := exec.Command("bash", "-c", repetition.ReplaceAllString(c[1], "")+" -short -benchtime 1x")
			command.Dir = "../.."
			command.Env = append(os.Environ(), "GOWORK=")
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Regexp(t, result, string(out))
		})
	}
}
