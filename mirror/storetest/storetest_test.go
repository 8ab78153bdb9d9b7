package storetest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

var update = flag.Bool("update", false, "write the Memory's answers again")

// TestAnswers compares the answers of a Memory, by which the suite judges all stores, with
// those that were found right once.
func TestAnswers(t *testing.T) {
	var log strings.Builder
	for _, rule := range rules {
		fmt.Fprintf(&log, "== %s\n", rule.name)
		m := mirror.NewMemory()
		rule.run(t, &world{tester: t, Store: m, other: m, memory: mirror.NewMemory(), ctx: t.Context(), answered: func(question string, answer any, err error) {
			line := strconv.QuoteToASCII(fmt.Sprintf("%.150s: %s", question, names(answer, err)))
			fmt.Fprintln(&log, line[1:len(line)-1])
		}})
	}
	const file = "testdata/answers.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(log.String(), "\n"))
}

// names returns the names of what was answered.
func names(answer any, err error) string {
	var all []string
	switch answer := answer.(type) {
	case *mirror.Feed:
		if answer != nil {
			all = append(all, fmt.Sprint(answer.Commits, " ", answer.Title))
		}
	case *mirror.DocumentRecord:
		if answer != nil {
			all = append(all, answer.URL)
		}
	case map[string]*mirror.Record:
		all = slices.Sorted(maps.Keys(answer))
	case []*mirror.Feed:
		for _, f := range answer {
			all = append(all, f.URL)
		}
	case []*mirror.Record:
		for _, r := range answer {
			if r.Feed == "" { // a version
				all = append(all, r.Copy.Digest)
				continue
			}
			all = append(all, strings.TrimSuffix(r.ID+" "+r.Feed, " "+feedURL))
		}
	case []*mirror.DocumentRecord:
		for _, d := range answer {
			all = append(all, d.URL)
		}
	}
	if err != nil {
		return err.Error()
	}
	text := strings.Join(all, "|")
	if len(text) > 300 {
		text = fmt.Sprintf("%s…, %x", text[:100], sha256.Sum256([]byte(text)))
	}
	return fmt.Sprintf("%d [%s]", len(all), text)
}
