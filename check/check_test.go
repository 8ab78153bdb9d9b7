package check

import (
	"flag"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var update = flag.Bool("update", false, "write the table into the README")

func TestMain(m *testing.M) { feedtest.Main(m) }

// documentBase is the URL of the documents in fixtures, unless one has a
// different base.
const documentBase = "https://example.org/dir/feed"

// extension returns the extension of a format's files.
func extension(f feedhistory.Format) string {
	return strings.TrimSuffix(f.String(), "feed")
}

func archive(t testing.TB, file string) *feedtest.Archive {
	t.Helper()
	text := feedtest.ReadFile(t, file)
	return feedtest.Parse(string(text))
}

// codes returns the codes of findings, each once, in order.
func codes(findings []Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestDocuments reads, for every rule and each of its formats, a document that
// breaks just this rule, and a similar one that breaks none. The archives may
// have several of both: raises-2.atom.
//
// Duties: atom-pmh#30, atom-pmh#31.
func TestDocuments(t *testing.T) {
	files := map[string]bool{}
	for _, r := range Rules() {
		if r.Scope != OneDocument {
			continue
		}
		file := "testdata/documents/" + r.Code + ".txtar"
		files[file] = true
		t.Run(r.Code, func(t *testing.T) {
			a := archive(t, file)
			for _, format := range r.Formats {
				for _, kind := range []string{"raises.", "clean."} {
					_, ok := a.File(kind + extension(format))
					require.True(t, ok, "there is no %s%v", kind, format)
				}
			}
			for _, f := range a.Files {
				switch {
				case strings.HasPrefix(f.Name, "clean"):
					require.Empty(t, fixture(t, a, f), f.Name)
				case strings.HasPrefix(f.Name, "raises"):
					found := fixture(t, a, f)
					require.Equal(t, []string{r.Code}, codes(found), "%s: %v", f.Name, found)
					for _, f := range found {
						testFinding(t, f, r)
					}
				}
			}
		})
	}
	found := feedtest.Glob(t, "testdata/documents/*")
	require.Len(t, found, len(files), "a file without a rule")
}

// fixture checks one document of a fixture. Its Content-Type is in the file that has
// the name with type- before it.
func fixture(t *testing.T, a *feedtest.Archive, f feedtest.File) []Finding {
	t.Helper()
	base := documentBase
	if given, ok := a.File("base"); ok {
		base = strings.TrimSpace(given)
	}
	var p feedhistory.Parser
	if kind, ok := a.File("type-" + f.Name); ok {
		p.Header = http.Header{"Content-Type": {strings.TrimSpace(kind)}}
	}
	doc, err := p.Parse(strings.NewReader(new(feedtest.Site).Expand(f.Data)), base)
	return Document(doc, err, profile(a))
}

func profile(a *feedtest.Archive) Profile {
	if name, _ := a.File("profile"); strings.TrimSpace(name) == AtomPMH.String() {
		return AtomPMH
	}
	return RFC5005
}

func testFinding(t *testing.T, f Finding, r Rule) {
	t.Helper()
	require.Equal(t, r.Level, f.Level)
	require.Equal(t, r.Clause, f.Clause)
	require.NotEmpty(t, f.Clause)
	require.NotEmpty(t, f.Message)
	require.NotEmpty(t, f.Hint)
	require.NotContains(t, f.Message, "%!", "a format without its value")
	require.NotContains(t, f.String(), "\n")
}
