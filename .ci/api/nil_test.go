package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// No exported function or method panics without a message where it is given nil: it
// returns an error naming the function or field, or its panic says so. The list of
// functions is made from the types, so a new one is called, too. The receiver may be nil
// where the comment of the method or its type speaks of a nil one; of the other methods
// of pointers, the comment of their package says they may panic.
func TestNil(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	imports, calls := map[string]string{}, []string{}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedImports, Dir: root, Env: append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
	}, "work")
	require.NoError(t, err)
	for _, pkg := range loaded {
		if library(pkg) && pkg.Imports["testing"] == nil {
			name := fmt.Sprintf("p%d", len(imports))
			comments := commentsOf(t, pkg)
			if of := callsOf(pkg.Types, name, comments); len(of) > 0 {
				imports[pkg.PkgPath] = name
				calls = append(calls, of...)
				says := strings.Contains(comments[""], "Methods of nil pointers may panic")
				require.Equal(t, hasPointerMethod(pkg.Types), says, "the comment of package %s", pkg.PkgPath)
			}
		}
	}
	require.Greater(t, len(calls), 300)
	require.Greater(t, strings.Count(strings.Join(calls, ""), ", true, true}"), 9, "methods of a nil Client, and History.Verdict")
	slices.Sort(calls)
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for path, name := range imports {
		fmt.Fprintf(&b, "\t%s %q\n", name, path)
	}
	fmt.Fprintf(&b, ")\n\nvar calls = []call{\n%s}\n", strings.Join(calls, ""))
	work, err := os.ReadFile("../../go.work")
	require.NoError(t, err)
	folders := regexp.MustCompile(`(?m)(^\t|=> )(\.\S*)$`).ReplaceAllStringFunc(string(work), func(s string) string {
		before, folder, _ := strings.Cut(s, ".")
		return before + filepath.ToSlash(filepath.Join(root, folder))
	})
	folders = strings.Replace(folders, "use (", "use (\n\t.", 1)
	text, err := os.ReadFile("testdata/nilcalls/main.go")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"main.go": string(text), "table.go": b.String(), "go.mod": "module example.org/nilcalls\n\ngo 1.26.0\n", "go.work": folders,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=-buildvcs=false -trimpath")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// callsOf returns a line for each function and method of a package that can be called
// without a test or a type argument.
func callsOf(pkg *types.Package, as string, comments map[string]string) (lines []string) {
	add := func(name, expression string, method, mayBeNil bool) {
		lines = append(lines, fmt.Sprintf("\t{%q, %s, %v, %v},\n", name, expression, method, mayBeNil))
	}
	for _, name := range pkg.Scope().Names() {
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Func:
			if o.Exported() && o.Signature().TypeParams().Len() == 0 {
				add(pkg.Name()+"."+name, as+"."+name, false, false)
			}
		case *types.TypeName:
			named, ok := o.Type().(*types.Named)
			if !o.Exported() || o.IsAlias() || !ok || named.TypeParams().Len() > 0 || types.IsInterface(named) {
				continue
			}
			for m := range named.Methods() {
				if m.Exported() {
					says := strings.Contains(comments[name]+" "+comments[name+"."+m.Name()], "nil "+name)
					add(fmt.Sprintf("(*%s.%s).%s", pkg.Name(), name, m.Name()), fmt.Sprintf("(*%s.%s).%s", as, name, m.Name()), true, says)
				}
			}
		}
	}
	return lines
}

// hasPointerMethod reports whether a package has an exported method of a pointer.
func hasPointerMethod(pkg *types.Package) bool {
	return slices.ContainsFunc(pkg.Scope().Names(), func(name string) bool {
		o, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !o.Exported() {
			return false
		}
		named, ok := o.Type().(*types.Named)
		if !ok {
			return false
		}
		for m := range named.Methods() {
			if _, ok := m.Signature().Recv().Type().(*types.Pointer); ok && m.Exported() {
				return true
			}
		}
		return false
	})
}

// commentsOf returns the comments of a package's types and methods, each as one line, by
// name; that of the package is at "".
func commentsOf(t *testing.T, pkg *packages.Package) map[string]string {
	comments := map[string]string{}
	add := func(name string, doc *ast.CommentGroup) {
		comments[name] += strings.Join(strings.Fields(doc.Text()), " ")
	}
	for _, file := range pkg.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		add("", f.Doc)
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				add(receiver(d)+"."+d.Name.Name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						add(spec.Name.Name, d.Doc)
					}
				}
			}
		}
	}
	return comments
}
