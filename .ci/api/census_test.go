package api

import (
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// Each exported type, constant, variable and function is used in another package or in an
// example; so are the packages for tests in their own tests.
func TestUsed(t *testing.T) {
	c, err := takeCensus("../..")
	require.NoError(t, err)
	require.Greater(t, len(c.exported), 300)
	for name := range c.exported {
		if !c.used[name] {
			t.Errorf("%s is used nowhere outside its package and in no example: unexport it, delete it, or give an example", strings.TrimPrefix(name, modules.Path))
		}
	}
}

// A census has the exported names of all libraries, members aside, and the names other
// packages and Example functions use.
type census struct {
	exported map[string]types.Object // "package.Name" -> its object
	used     map[string]bool
	forTests map[string]bool // packages that import testing
}

// takeCensus reads all modules of a checkout, with their tests.
func takeCensus(root string) (*census, error) {
	work, err := filepath.Abs(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  root, Env: append(os.Environ(), "GOWORK="+work), Tests: true,
	}, "work")
	if err != nil {
		return nil, err
	}
	c := &census{exported: map[string]types.Object{}, used: map[string]bool{}, forTests: map[string]bool{}}
	for _, pkg := range loaded {
		for _, err := range pkg.Errors {
			return nil, err
		}
		if library(pkg) {
			c.export(pkg.Types)
			c.forTests[pkg.PkgPath] = pkg.Imports["testing"] != nil
		}
	}
	for _, pkg := range loaded {
		for _, file := range pkg.Syntax {
			c.use(pkg, file)
		}
	}
	return c, nil
}

// library reports whether programs of others can import a package.
func library(pkg *packages.Package) bool {
	return pkg.Name != "main" && pkg.ID == pkg.PkgPath && !strings.Contains(pkg.PkgPath+"/", "/internal/") && !strings.Contains(pkg.PkgPath, "/examples/") &&
		!strings.HasPrefix(pkg.PkgPath, modules.Path+"/cmd")
}

func (c *census) export(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		c.exported[pkg.Path()+"."+name] = object
	}
}

// use notes the names of other packages in a file, and those of its own package in its
// Example functions. A package for tests has its examples in its tests.
func (c *census) use(pkg *packages.Package, file *ast.File) {
	own := strings.TrimSuffix(pkg.PkgPath, "_test")
	note := func(n ast.Node, all bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if o := pkg.TypesInfo.Uses[n]; o != nil && o.Pkg() != nil {
					if all || o.Pkg().Path() != own {
						c.noteObject(o)
					}
					c.noteType(o.Type(), own, all)
				}
			case ast.Expr:
				if tv, ok := pkg.TypesInfo.Types[n]; ok && tv.Type != nil {
					c.noteType(tv.Type, own, all)
				}
			}
			return true
		})
	}
	test := strings.HasSuffix(pkg.Fset.Position(file.Pos()).Filename, "_test.go")
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		example := ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example")
		note(decl, test && (example || ok && strings.HasSuffix(pkg.PkgPath, "_test") && c.forTests[own]))
	}
}

// noteObject notes a name at the level of its package.
func (c *census) noteObject(o types.Object) {
	if o.Parent() == o.Pkg().Scope() {
		c.used[o.Pkg().Path()+"."+o.Name()] = true
	}
}

// noteType notes a type of which an expression is, although nothing names it.
func (c *census) noteType(t types.Type, own string, all bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		c.noteType(t.Elem(), own, all)
	case *types.Slice:
		c.noteType(t.Elem(), own, all)
	case *types.Named:
		if o := t.Origin().Obj(); o.Pkg() != nil && (all || o.Pkg().Path() != own) {
			c.used[o.Pkg().Path()+"."+o.Name()] = true
		}
	}
}
