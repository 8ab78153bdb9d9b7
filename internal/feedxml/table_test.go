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

// Each row is found by its name, and only its own; it has a rank in some format, and a place
// unless it is a part of another element.
func TestTable(t *testing.T) {
	for i := range table {
		row := &table[i]
		require.Same(t, row, RowOf(row.Space, row.Name), "%s %s", row.Space, row.Name)
		require.NotZero(t, row.AtomRank+row.RSSRank, row.Name)
		if row.Form != Part && row.Form != Entries && row.Form != Wrapper {
			require.False(t, row.Feed == MeansNothing && row.Entry == MeansNothing, row.Name)
		}
	}
	for local, want := range map[string]string{"GUID": "guid", "PubDate": "pubDate", "textinput": "", "": "", "averyveryverylongname": ""} {
		row, _ := wordsOf("").find(local, true)
		require.Equal(t, want, row.Name, local)
	}
	row, exact := wordsOf(Atom).find("Title", false)
	require.Same(t, &extension, row)
	require.True(t, exact)
	row, exact = wordsOf(Atom).find("Title", true)
	require.Equal(t, "title", row.Name)
	require.False(t, exact)
}

var update = flag.Bool("update", false, "write the table in docs/FORMATS.md")

// The table in the documentation is made from the one that readers, writers and the checker use.
func TestTableInDocs(t *testing.T) {
	const path, begin = "../../docs/FORMATS.md", "\n| element "
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	intro, _, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	want := intro + "\n" + tableForPeople()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/feedxml -run TestTableInDocs -update")
}

// tableForPeople returns the table in Markdown.
func tableForPeople() string {
	meanings := [Meanings]string{
		MeansNothing: "–", MeansKept: "kept", MeansID: "id", MeansTitle: "title", MeansSubtitle: "subtitle", MeansSummary: "summary",
		MeansContent: "content", MeansUpdated: "updated", MeansPublished: "published", MeansAuthor: "author", MeansCategory: "category",
		MeansLink: "link", MeansEnclosure: "enclosure", MeansIcon: "icon", MeansLanguage: "language", MeansSchedule: "schedule",
		MeansFlag: "flag of RFC 5005", MeansDeleted: "deletion", MeansCoverage: "coverage", MeansKeptBy: "reader that kept it", MeansGroup: "texts and files in it",
		MeansContributor: "contributor", MeansRights: "rights", MeansGenerator: "generator", MeansLogo: "logo, icon", MeansSource: "source",
		MeansComments: "comments", MeansImage: "image", MeansFile: "file", MeansDuration: "duration",
	}
	forms := [...]string{
		AsPublished: "as published", Entries: "an entry", Wrapper: "entries", Part: "a part", TextForm: "text", IDForm: "id", DateForm: "date",
		PersonForm: "person", CategoryForm: "category", LinkForm: "link", GeneratorForm: "generator", URLForm: "URL", HrefForm: "URL in href",
		ContactForm: "email and name", EnclosureForm: "file", SourceForm: "source", LanguageForm: "language", ImageForm: "image", HTMLForm: "HTML", Dropped: "not written",
	}
	rank := func(n uint8) string {
		switch n {
		case 0:
			return "extension"
		case FirstRank:
			return "own"
		}
		return fmt.Sprint(n)
	}
	var b strings.Builder
	b.WriteString("| element | clause | in the head | in an entry | Atom | RSS | form | times | attributes | JSON Feed: head / item |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range table {
		name, times := row.Name, "any"
		if prefix := cmp.Or(UsualPrefix(row.Space), map[string]string{History: "fh", Tombstones: "at", Coverage: "m"}[row.Space]); prefix != "" {
			name = prefix + ":" + name
		}
		if row.Flags&Once != 0 {
			times = "once"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, cmp.Or(row.Clause, "–"), meanings[row.Feed], meanings[row.Entry],
			rank(row.AtomRank), rank(row.RSSRank), forms[row.Form], times, cmp.Or(strings.TrimSpace(row.Attrs), "–"), cmp.Or(strings.TrimSpace(row.JSON), "–"))
	}
	return b.String()
}
