package feedxml

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table into docs/FORMATS.md")

var meanings = [Meanings]string{
	MeansNothing: "–", IsKept: "kept", MeansID: "id", MeansTitle: "title", MeansSubtitle: "subtitle", MeansSummary: "summary",
	MeansContent: "content", MeansUpdated: "update time", MeansPublished: "time of publication", MeansAuthor: "author",
	MeansCategory: "category", MeansLink: "link", MeansEnclosure: "enclosure", MeansIcon: "icon", MeansLanguage: "language",
	MeansSchedule: "schedule of polls", MeansFlag: "kind of history", MeansDeleted: "deletion", MeansCoverage: "coverage",
	MeansKeptBy: "reader whose copy it is", MeansGroup: "texts within",
}

// prefixes are those of namespaces that gofeed does not name.
var prefixes = map[string]string{History: "fh", Tombstones: "at", Coverage: "m"}

// The page on formats has the table.
func TestFormats(t *testing.T) {
	const path, from, until = "../../docs/FORMATS.md", "<!-- table -->\n", "<!-- /table -->"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), from)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, until)
	require.True(t, ok)
	page := before + from + formatsTable() + until + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	require.Equal(t, page, string(data), "go test ./internal/feedxml -run TestFormats -update")
}

func formatsTable() string {
	var b strings.Builder
	b.WriteString("| element | clause | in a head | in an entry | rank: Atom · RSS | written: Atom · RSS | at most one |\n|---|---|---|---|---|---|---|\n")
	rank := func(n uint8) string { return strings.Replace(fmt.Sprint(n), "0", "–", 1) }
	for _, row := range Rows() {
		if row.Form == Part || row.Form == Wrapper {
			continue
		}
		one := map[Number]string{OneInFeed: "head", OneInEntry: "entry", One: "head, entry"}[row.Number&One]
		fmt.Fprintf(&b, "| %s%s | %s | %s | %s | %s · %s | %s · %s | %s |\n", strings.TrimPrefix(cmp.Or(UsualPrefix(row.Space), prefixes[row.Space])+":", ":"), row.Name,
			row.Clause, meanings[row.Feed], meanings[row.Entry], rank(row.AtomRank), rank(row.RSSRank),
			cmp.Or(row.Atom, "itself"), cmp.Or(row.RSS, "itself"), one)
	}
	return b.String()
}

// Each row has a place and is found by its name, and each element RSS or Atom allows once by
// the format it belongs to.
func TestTable(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, row := range Rows() {
		key := [2]string{row.Space, row.Name}
		require.False(t, seen[key], "%v is there twice", key)
		seen[key] = true
		require.LessOrEqual(t, len(row.Name), longestName)
		require.NotZero(t, row.AtomRank+row.RSSRank, key)
		for _, format := range []Format{FormatAtom, FormatRSS} {
			require.Equal(t, row.Rank(format) > 0, RowOf(format, row.Space, row.Name).Name == row.Name, key)
		}
		if row.Form != Part && row.Form != Entries && row.Form != Wrapper {
			require.True(t, row.Feed != MeansNothing || row.Entry != MeansNothing, key)
		}
	}
}
