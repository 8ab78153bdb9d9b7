// Package benchmarks runs the commands of BENCHMARKS.md, briefly, so that each figure
// there can be measured again.
package benchmarks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	command = regexp.MustCompile("`([^`]*go test [^`]*-bench [^`]*)`")
	argWord = regexp.MustCompile(`'[^']*'|\S+`)
)

// Each command measures something. It runs once and with -short, by which benchmarks
// that take long are made smaller; large numbers of its own flags are left out.
func TestCommands(t *testing.T) {
	text, err := os.ReadFile("../../BENCHMARKS.md")
	require.NoError(t, err)
	found := command.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(found), 8)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, m := range found {
		t.Run(m[1], func(t *testing.T) {
			args := brief(m[1])
			cmd := exec.Command("go", args...)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
			require.Contains(t, string(out), "\nBenchmark", "nothing was measured:\n%s", out)
		})
	}
}

// brief returns the arguments of the go command that a command line has, changed to run
// each benchmark once.
func brief(line string) []string {
	_, after, _ := strings.Cut(line, "go test ")
	args := []string{"test"}
	words := argWord.FindAllString(after, -1)
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "'")
		switch {
		case word == "-benchtime" || word == "-million" || word == "-count":
			i++
		default:
			args = append(args, word)
		}
		if word == "-bench" && i+1 < len(words) {
			i++
			args = append(args, strings.Trim(words[i], "'"), "-benchtime", "1x", "-short", "-timeout", "5m")
		}
	}
	return args
}
