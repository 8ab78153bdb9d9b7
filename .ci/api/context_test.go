package api

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// The comment of each exported function and method with a context, or of its package, says
// that its error may be the context's: it has the word context, or says it implements an
// interface, whose comment does.
func TestContextErrors(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax, Dir: root, Env: append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
	}, "work")
	require.NoError(t, err)
	n := 0
	for _, pkg := range loaded {
		if !library(pkg) {
			continue
		}
		about := ""
		for _, file := range pkg.Syntax {
			about += file.Doc.Text()
		}
		for _, file := range pkg.Syntax {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() || f.Recv != nil && !ast.IsExported(receiver(f)) || !takesContext(f.Type) || !hasError(f.Type) {
					continue
				}
				n++
				says := strings.Contains(f.Doc.Text(), "context") || strings.Contains(about, "the error of the context") || strings.Contains(f.Doc.Text(), " implements ")
				if !says {
					t.Errorf("%s: %s.%s: neither its comment nor its package's says its error may be the context's", pkg.Fset.Position(f.Pos()), receiver(f), f.Name.Name)
				}
			}
		}
	}
	require.Greater(t, n, 80)
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	id, _ := t.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}

// takesContext reports whether a function has a context, and a name for it: it is used.
func takesContext(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		s, ok := p.Type.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Context" && len(p.Names) > 0
	})
}

// hasError reports whether a function returns an error, or a sequence with errors.
func hasError(f *ast.FuncType) (has bool) {
	if f.Results == nil {
		return false
	}
	ast.Inspect(f.Results, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		has = has || ok && id.Name == "error"
		return true
	})
	return has
}
