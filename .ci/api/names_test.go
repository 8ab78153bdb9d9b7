package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// Every Go name in a comment and in a code span of a page is declared: `Client.Walk`,
// `mirror.Store`, `WriteAtom`. So no page names a function that is gone.
func TestNamesInText(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	l, files := readLexicon(t, root)
	require.Greater(t, len(files), 250)
	checked := 0
	report := func(place, text string, span bool) {
		for _, name := range namesIn(text, span) {
			checked++
			if !l.declares(name) {
				t.Errorf("%s: %s is declared nowhere", place, name)
			}
		}
	}
	for _, f := range files {
		for _, group := range f.syntax.Comments {
			report(f.set.Position(group.Pos()).String(), group.Text(), false)
		}
	}
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for n, line := range strings.Split(blocks.ReplaceAllStringFunc(string(text), newlines), "\n") {
			for _, span := range spans.FindAllStringSubmatch(line, -1) {
				report(page+":"+strconv.Itoa(n+1), span[1], true)
			}
		}
	}
	require.Greater(t, checked, 2000)
	for name := range notGo {
		require.False(t, l.words[name], "%s is declared now", name)
	}
}

var (
	blocks = regexp.MustCompile("(?ms)^```.*?^```")
	spans  = regexp.MustCompile("`([^`]+)`")
	// dotted is a name with its type or package; humps one of several words, as only code has them.
	dotted = regexp.MustCompile(`(^|[^\w./@:~-])([A-Za-z][A-Za-z0-9]*(?:\.[A-Z][A-Za-z0-9]*)+)\b`)
	humps  = regexp.MustCompile(`(^|[^\w./@:#~"-])([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)\b`)
	single = regexp.MustCompile(`^[*&]?([A-Z][a-z][A-Za-z0-9]*)(\(.*\)|\{.*\})?$`)
)

// newlines keeps the numbers of the lines.
func newlines(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }

// namesIn returns the Go names in a comment or in a code span.
func namesIn(text string, span bool) (names []string) {
	for _, pattern := range []*regexp.Regexp{dotted, humps} {
		for _, found := range pattern.FindAllStringSubmatch(text, -1) {
			names = append(names, found[2])
		}
	}
	if found := single.FindStringSubmatch(text); span && found != nil {
		names = append(names, found[1])
	}
	return names
}

// notGo are the names of programs, standards and their fields, which look like Go's.
var notGo = map[string]bool{
	"ActivityStreams": true, "CloudFront": true, "Dockerfile": true, "Expires": true, "Follow": true, "GitHub": true, "GoReleaser": true, "ImportService": true, "JavaScript": true,
	"Like": true, "LocalAppData": true, "MemoryMax": true, "NameChar": true, "NameStartChar": true, "OpenSearch": true, "OpenTelemetry": true, "Packages": true,
	"PgBouncer": true, "SoundCloud": true, "TimeMaps": true, "Vary": true, "vX.Y.Z": true,
}

// pages lists the Markdown files of a checkout, but for articles of example sites.
func pages(t *testing.T, root string) (names []string) {
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "posts"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			names = append(names, path)
		}
		return nil
	}))
	require.Greater(t, len(names), 30)
	return names
}

// A lexicon has the names that a checkout declares and uses.
type lexicon struct {
	packages map[string]map[string]bool // by a package's name, the names it declares
	members  map[string]map[string]bool // by a type's name, its fields and methods
	fields   map[string]bool            // the fields and methods of all types
	words    map[string]bool            // all identifiers
	paths    map[string]string          // of the packages that files import, by name
	unread   map[string][]string        // the files of packages of others, by the package's name
}

// A source is a Go file.
type source struct {
	set    *token.FileSet
	syntax *ast.File
}

func newLexicon() *lexicon {
	return &lexicon{
		packages: map[string]map[string]bool{}, members: map[string]map[string]bool{},
		fields: map[string]bool{}, words: map[string]bool{}, paths: map[string]string{}, unread: map[string][]string{},
	}
}

// readLexicon reads the Go files of a checkout. It returns those that are no tests.
func readLexicon(t *testing.T, root string) (*lexicon, []source) {
	l := newLexicon()
	set := token.NewFileSet()
	var files []source
	others := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && slices.Contains([]string{".git", "node_modules", "testdata"}, d.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		l.add(file)
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !strings.HasPrefix(path, modules.Path) && path != "C" {
				others[path] = true
			}
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		if at := modules.Path + "/" + filepath.ToSlash(rel); !strings.Contains(l.paths[file.Name.Name], "/") || strings.Contains(l.paths[file.Name.Name], "/internal/") {
			l.paths[file.Name.Name] = strings.TrimSuffix(at, "/.")
		}
		if !strings.HasSuffix(path, "_test.go") {
			files = append(files, source{set, file})
		}
		return nil
	}))
	l.addImports(t, root, slices.Sorted(maps.Keys(others)))
	return l, files
}

// addImports finds the packages of others.
func (l *lexicon) addImports(t *testing.T, root string, paths []string) {
	list := exec.Command("go", append([]string{"list", "-find", "-e", "-f", `{{range .GoFiles}}{{$.Name}} {{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}`}, paths...)...)
	list.Dir, list.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	out, err := list.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		part := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if l.paths[part[0]] == "" || len(l.paths[part[0]]) > len(part[1]) && !strings.HasPrefix(l.paths[part[0]], modules.Path) {
			l.paths[part[0]] = part[1]
		}
		l.unread[part[0]] = append(l.unread[part[0]], part[2])
	}
}

// read reads the packages of others that have a name. Their members are kept by package, so a
// type of ours has none of them.
func (l *lexicon) read(of string) {
	for _, name := range l.unread[of] {
		other := newLexicon()
		if file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err == nil {
			other.add(file)
		}
		if l.packages[of] == nil {
			l.packages[of] = map[string]bool{}
		}
		maps.Copy(l.packages[of], other.packages[of])
		for name, members := range other.members {
			key := of + "." + name
			if l.members[key] == nil {
				l.members[key] = map[string]bool{}
			}
			maps.Copy(l.members[key], members)
		}
	}
	delete(l.unread, of)
}

// add adds the names of a file.
func (l *lexicon) add(file *ast.File) {
	note := func(in map[string]map[string]bool, of, name string) {
		if in[of] == nil {
			in[of] = map[string]bool{}
		}
		in[of][name] = true
	}
	member := func(of, name string) {
		note(l.members, of, name)
		l.fields[name] = true
	}
	of := strings.TrimSuffix(file.Name.Name, "_test")
	note(l.packages, of, of)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			l.words[n.Name] = true
		case *ast.FuncDecl:
			if n.Recv == nil {
				note(l.packages, of, n.Name.Name)
			} else {
				member(receiver(n), n.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				note(l.packages, of, name.Name)
			}
		case *ast.TypeSpec:
			note(l.packages, of, n.Name.Name)
			ast.Inspect(n.Type, func(inner ast.Node) bool {
				if field, ok := inner.(*ast.Field); ok {
					for _, name := range field.Names {
						member(n.Name.Name, name.Name)
					}
					if len(field.Names) == 0 {
						member(n.Name.Name, embedded(field.Type))
					}
				}
				return true
			})
		}
		return true
	})
}

// embedded returns the name of an embedded type.
func embedded(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return embedded(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.IndexExpr:
		return embedded(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// declares reports whether a name is declared: that of a package's member, of a type's or a
// variable's, or one alone, also of a benchmark.
func (l *lexicon) declares(name string) bool {
	parts := strings.Split(name, ".")
	if len(parts) > 1 {
		l.read(parts[0])
	}
	switch first := parts[0]; {
	case notGo[name]:
		return true
	case len(parts) == 1:
		return l.words[name] || l.words["Benchmark"+name]
	case l.packages[first][parts[1]] && len(parts) == 2:
		return true
	case l.packages[first][parts[1]] && l.members[first+"."+parts[1]] != nil: // of a package of others
		return l.members[first+"."+parts[1]][parts[2]]
	case l.packages[first][parts[1]]:
		parts = parts[1:]
	case !token.IsExported(first): // a variable's
		parts[0] = ""
	}
	if of := l.members[parts[0]]; parts[0] != "" && of != nil && !of[parts[1]] {
		return false
	}
	return !slices.ContainsFunc(parts[1:], func(member string) bool { return !l.fields[member] && !l.words[member] })
}
