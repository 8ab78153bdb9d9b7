package feedhistory_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// TestDuties checks the list of RFC 5005's duties: it has each number once, and the code, the
// tests and the cases that a row names exist and cite it.
func TestDuties(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| 5005#(\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$`)
	rows := row.FindAllStringSubmatch(string(feedtest.ReadFile(t, "docs/DUTIES.md")), -1)
	require.Len(t, rows, 28)
	for i, m := range rows {
		require.Equal(t, fmt.Sprint(i+1), m[1])
		cited := regexp.MustCompile("5005#" + m[1] + `(\D|$)`)
		for _, file := range names(m[2]) {
			require.Regexp(t, cited, string(feedtest.ReadFile(t, file)), "%s: %s", m[1], file)
		}
		for _, name := range names(m[3]) {
			folder, test := filepath.Dir(strings.Replace(name, ".Test", "/Test", 1)), name[strings.LastIndex(name, ".")+1:]
			function := regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)*)^func ` + test + `\(.*?^}$`)
			text := ""
			for _, file := range feedtest.Glob(t, filepath.Join(folder, "*_test.go")) {
				text += function.FindString(string(feedtest.ReadFile(t, file)))
			}
			require.Regexp(t, cited, strings.ReplaceAll(text, "\n// ", " "), "%s: %s", m[1], name)
		}
		for _, name := range names(m[4]) {
			_, clauses, _ := strings.Cut(string(feedtest.ReadFile(t, "conformance/cases/"+name+".txtar")), "\nclauses ")
			clauses, _, _ = strings.Cut(clauses, "\n")
			require.Regexp(t, cited, clauses, "%s: %s", m[1], name)
		}
	}
}

// names returns the names in a cell of the list.
func names(cell string) (names []string) {
	for name := range strings.SplitSeq(cell, ", ") {
		if name = strings.Trim(name, "` "); name != "" {
			names = append(names, name)
		}
	}
	return names
}
