package harvest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// TestDutyList checks the list of duties: it has each number of the three checklists, and
// the tests it names exist and cite the number.
func TestDutyList(t *testing.T) {
	want := map[string]bool{}
	for prefix, n := range map[string]int{
		"atom-pmh#": 34, "atom-pmh consumer#": 7, "modified-range#": 12,
		"datareplication#feed-": 7, "datareplication#consumer-": 6, "datareplication#snapshot-": 2, "datareplication#producer-": 2,
	} {
		for i := range n {
			want[fmt.Sprint(prefix, i+1)] = true
		}
	}
	folders := map[string]string{"internal/harvest": "../internal/harvest", "harvest": ".", "check": "../check"}
	row := regexp.MustCompile("(?m)^\\| ([a-z]+[^|]*#[^|]*) \\| (`[^|]+`) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(feedtest.ReadFile(t, "DUTIES.md")), -1) {
		require.True(t, want[m[1]], "no such duty, or twice: %s", m[1])
		delete(want, m[1])
		for name := range strings.SplitSeq(m[2], ", ") {
			pkg, test, _ := strings.Cut(strings.Trim(name, "`"), ".")
			folder, ok := folders[pkg]
			if !ok {
				folder = pkg
			}
			require.True(t, cites(t, folder, test, m[1]), "%s: %s does not cite it, or does not exist", m[1], name)
		}
	}
	require.Empty(t, want, "duties without a test")
}

// cites reports whether a test of a folder, with its comment, has the number of a duty.
func cites(t *testing.T, folder, test, duty string) bool {
	function := regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)*)^func ` + test + `\(.*?^}$`)
	number := regexp.MustCompile(regexp.QuoteMeta(duty) + `(\D|$)`)
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if f := function.Find(text); f != nil {
			return number.MatchString(strings.ReplaceAll(string(f), "\n// ", " "))
		}
	}
	return false
}
