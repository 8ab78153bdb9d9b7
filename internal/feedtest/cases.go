package feedtest

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "pgregory.net/rapid" // has the flags and variables of seeds and checks
)

// Unless a run is long, its random tests draw few cases, the same ones each time, so a
// change fails by its own fault only.
const (
	usualSeed   = "5005"
	usualChecks = "25" // of a property
	usualShare  = 8    // Count divides by it
)

// LongRun reports whether random tests draw all their cases, and others in each run:
// whether FEEDHISTORY_LONG is 1. A seed in RAPID_SEED repeats such a run.
func LongRun() bool { return os.Getenv("FEEDHISTORY_LONG") == "1" }

// Count returns how many of the n random cases of a test to draw, such as schedules, kills or
// faults: an eighth, at least one; all n in a long run. It may be a flag's default.
func Count(n int) int {
	if LongRun() {
		return n
	}
	return max(1, n/usualShare)
}

// Stride returns the distance between the faults a test tries, of all it counts through: n in a
// long run, else eight times as far.
func Stride(n int) int {
	if LongRun() {
		return n
	}
	return n * usualShare
}

// Random returns a source of random numbers. Those of each stream are the same in every
// run that has the same seed, also in the processes a test starts.
func Random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed(), stream)) }

// Seeds returns n seeds of random cases, the run's own first, so RAPID_SEED repeats one case.
func Seeds(n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range uint64(n) {
			if !yield(seed() + i) {
				return
			}
		}
	}
}

// seed returns the run's seed.
func seed() uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("RAPID_SEED"), usualSeed), 0, 64)
	if err != nil {
		panic(fmt.Sprintf("RAPID_SEED: %v", err))
	}
	return n
}

// Main runs a package's tests with the run's random cases, and fails if they leave goroutines
// behind: func TestMain(m *testing.M) { feedtest.Main(m) }.
func Main(m *testing.M) { os.Exit(Run(m.Run)) }

// Run is Main for a package that does something around its tests. It returns the exit code.
func Run(tests func() int) int {
	flag.Parse()
	fixCases()
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400) // tests live on little memory, and make much garbage: usually a third of their time goes into it
	}
	code := leaks(tests())
	if code != 0 && LongRun() {
		fmt.Fprintln(os.Stderr, "this run is repeated by:", command())
	}
	return code
}

// fixCases sets rapid's flags, unless they are given, and tells the processes of tests the seed.
func fixCases() {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["rapid.checks"] && os.Getenv("RAPID_CHECKS") == "" && !LongRun() {
		_ = flag.Set("rapid.checks", usualChecks) // the flag exists
	}
	const unset = "0"
	if flag.Lookup("rapid.seed").Value.String() == unset {
		seed := usualSeed
		if LongRun() {
			seed = strconv.Itoa(1 + rand.IntN(1_000_000_000))
		}
		_ = flag.Set("rapid.seed", seed) // the flag exists
	}
	_ = os.Setenv("RAPID_SEED", flag.Lookup("rapid.seed").Value.String())
}

// command returns the command that repeats this run of a package.
func command() string {
	words := []string{"FEEDHISTORY_LONG=1", "RAPID_SEED=" + os.Getenv("RAPID_SEED")}
	if checks := os.Getenv("RAPID_CHECKS"); checks != "" {
		words = append(words, "RAPID_CHECKS="+checks)
	}
	words = append(words, "go test")
	build, _ := debug.ReadBuildInfo()
	if slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		words = append(words, "-race")
	}
	flag.Visit(func(f *flag.Flag) {
		name, ofTesting := strings.CutPrefix(f.Name, "test.")
		if !ofTesting || slices.Contains([]string{"short", "run", "skip", "cpu", "count"}, name) {
			words = append(words, fmt.Sprintf("-%s='%s'", name, f.Value))
		}
	})
	return strings.Join(append(words, strings.TrimSuffix(build.Path, ".test")), " ")
}
