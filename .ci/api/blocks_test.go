package api

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// declared are the variables that the Go blocks of a page have from their surroundings.
var declared = map[string]string{
	"README.md":                         "var url string; var ledger mirror.Ledger; var m *mirror.Mirror; var entries []*feedhistory.Entry; var history *feedhistory.History",
	"backfill/README.md":                "var probe backfill.Probe",
	"cmd/internal/readers/README.md":    "var token string; var store mirror.Store; var feed *mirror.Feed",
	"cmd/internal/web/README.md":        "var token string; var store mirror.Store",
	"examples/fromgofeed/README.md":     "var url string; var m *mirror.Mirror; var ledger mirror.Ledger",
	"harvest/atompmh/README.md":         "var from atompmh.Mark",
	"harvest/datareplication/README.md": "var from, mark datareplication.Mark; var whole bool; var h datareplication.Harvester; var m *mirror.Mirror; var key func(*datareplication.Entity) (string, error); var body []byte",
	"harvest/modifiedrange/README.md":   "var from modifiedrange.Mark",
	"mirror/README.md":                  "var store mirror.Store; var client *feedhistory.Client; var url string; var ledger mirror.Ledger",
	"mirror/sqlstore/README.md":         "var store *sqlstore.Store",
	"publish/README.md":                 "var all, entries []*feedhistory.Entry",
	"publish/s3/README.md":              "var entries []*feedhistory.Entry",
	"republish/README.md":               "var mux *http.ServeMux; var store mirror.Store",
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```")

// Every Go block of a page compiles. A block without functions is compiled as the body of one.
// Variables may be unused there, and the return may be missing if the block ends in an ellipsis
// or a comment.
func TestBlocks(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	l, _ := readLexicon(t, root)
	overlay, at := map[string][]byte{}, map[string]string{}
	var patterns []string
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name, err := filepath.Rel(root, page)
		require.NoError(t, err)
		for _, m := range goBlock.FindAllSubmatchIndex(text, -1) {
			n := len(patterns)
			// A folder of cmd, because that may import all modules and their internal packages.
			dir := filepath.Join(root, "cmd", "internal", "blocks", fmt.Sprint("block", n))
			file := filepath.Join(dir, "block.go")
			overlay[file] = []byte(l.program(string(text[m[2]:m[3]]), declared[filepath.ToSlash(name)]))
			at[file] = fmt.Sprintf("%s:%d", name, strings.Count(string(text[:m[2]]), "\n"))
			patterns = append(patterns, "./cmd/internal/blocks/"+filepath.Base(dir))
		}
	}
	require.Greater(t, len(patterns), 25)
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports,
		Dir:  root, Env: append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")), Overlay: overlay,
	}, patterns...)
	require.NoError(t, err)
	require.Len(t, loaded, len(patterns))
	for _, pkg := range loaded {
		require.NotEmpty(t, pkg.GoFiles, pkg.Errors)
		for _, err := range pkg.Errors {
			if !strings.Contains(err.Msg, "declared and not used") && !strings.Contains(err.Msg, "missing return") {
				t.Errorf("%s: %s (%s)\n%s", at[pkg.GoFiles[0]], err.Msg, err.Pos, overlay[pkg.GoFiles[0]])
			}
		}
	}
}

var (
	qualifier = regexp.MustCompile(`(?:^|[^\w.")])([a-z][a-z0-9]*)\.[A-Z]`)
	function  = regexp.MustCompile(`(?m)^func `)
	comment   = regexp.MustCompile(`(?m)(^|\s)//.*`)
	ellipsis  = regexp.MustCompile(`…`)
)

// program returns a file with a block, the variables around it, and the imports of both.
func (l *lexicon) program(block, around string) string {
	block = ellipsis.ReplaceAllString(block, "")
	used := []string{"context"}
	for _, m := range qualifier.FindAllStringSubmatch(comment.ReplaceAllString(block, "")+around, -1) {
		if l.paths[m[1]] != "" && !regexp.MustCompile(`\b`+m[1]+`\b.* :?= `).MatchString(block) && !slices.Contains(used, m[1]) {
			used = append(used, m[1])
		}
	}
	var b strings.Builder
	b.WriteString("package block\n\nimport (\n")
	for _, name := range used {
		fmt.Fprintf(&b, "\t%s %q\n", name, l.paths[name])
	}
	fmt.Fprintf(&b, ")\n\nvar ctx context.Context\n%s\n", strings.ReplaceAll(around, "; ", "\n"))
	if function.MatchString(block) {
		return b.String() + block
	}
	return b.String() + "func block() error {\n" + block + "}\n"
}

var _ = modules.Path
