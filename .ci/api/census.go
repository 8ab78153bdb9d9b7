package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

// A census has the exported names of all libraries and the names other packages and
// Example functions use.
type census struct {
	exported map[string]types.Object // "package.Name" and "package.Type.Member" -> its object
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
		named, ok := object.Type().(*types.Named)
		if _, isType := object.(*types.TypeName); !ok || !isType {
			continue
		}
		for m := range named.Methods() {
			if m.Exported() {
				c.exported[pkg.Path()+"."+name+"."+m.Name()] = m
			}
		}
		switch t := named.Underlying().(type) {
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					c.exported[pkg.Path()+"."+name+"."+f.Name()] = f
				}
			}
		case *types.Interface:
			for m := range t.ExplicitMethods() {
				c.exported[pkg.Path()+"."+name+"."+m.Name()] = m
			}
		}
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
			if s, ok := n.(*ast.SelectorExpr); ok {
				if sel := pkg.TypesInfo.Selections[s]; sel != nil {
					c.noteSelection(sel, own, all)
				}
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				c.noteLiteral(pkg.TypesInfo.Types[lit].Type, lit, own, all)
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

func typeKey(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Origin().Obj().Pkg().Path() + "." + named.Origin().Obj().Name()
}

// noteSelection notes a field or method, and the embedded fields on the way to it.
func (c *census) noteSelection(s *types.Selection, own string, all bool) {
	t := s.Recv()
	for i, index := range s.Index() {
		key := typeKey(t)
		if p, ok := types.Unalias(t).(*types.Pointer); ok {
			t = p.Elem()
		}
		last := i == len(s.Index())-1
		if last && s.Kind() != types.FieldVal {
			if o := s.Obj(); o.Pkg() != nil && (all || o.Pkg().Path() != own) {
				c.used[key+"."+o.Name()] = true
			}
			return
		}
		f := t.Underlying().(*types.Struct).Field(index)
		if f.Pkg() != nil && (all || f.Pkg().Path() != own) {
			c.used[key+"."+f.Name()] = true
		}
		t = f.Type()
	}
}

// noteLiteral notes the fields a literal sets.
func (c *census) noteLiteral(t types.Type, lit *ast.CompositeLit, own string, all bool) {
	key := typeKey(t)
	if key == "" || !all && strings.HasPrefix(key, own+".") {
		return
	}
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := pair.Key.(*ast.Ident); ok {
				c.used[key+"."+id.Name] = true
			}
		}
	}
}

// unused returns the exported names without a user, sorted.
func (c *census) unused() (names []string) {
	for name, o := range c.exported {
		if c.used[name] {
			continue
		}
		names = append(names, fmt.Sprintf("%s\t%s", kindOf(o), strings.TrimPrefix(name, modules.Path)))
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}

func kindOf(o types.Object) string {
	switch o := o.(type) {
	case *types.Const:
		return "const"
	case *types.TypeName:
		return "type"
	case *types.Func:
		if o.Signature().Recv() != nil {
			return "method"
		}
		return "func"
	case *types.Var:
		if o.IsField() {
			return "field"
		}
	}
	return "var"
}
