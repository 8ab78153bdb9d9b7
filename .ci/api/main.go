// Command api lists the exported API of each module in listings/, a name a line, so that
// a change of a promise is a change of a file that a reviewer sees. It prints the number
// of names of each package.
//
//	cd .ci && GOWORK=off go run ./api
//
// Its test fails if a listing is not of the code.
package main

import (
	"errors"
	"fmt"
	"go/constant"
	"go/types"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/feedhistory/feedhistory/.ci/modules"
)

func main() {
	log.SetFlags(0)
	for _, m := range libraries {
		text, err := listing("..", m)
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("..", file(m)), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
		printCounts(text)
	}
}

// printCounts prints how many names each package of a listing has.
func printCounts(text string) {
	n := map[string]int{}
	for line := range strings.Lines(text) {
		pkg, _, _ := strings.Cut(line, ":")
		n[pkg]++
	}
	for _, pkg := range slices.Sorted(maps.Keys(n)) {
		fmt.Printf("%4d %s\n", n[pkg], pkg)
	}
}

// libraries are the folders of the modules that programs import: all but the
// commands.
var libraries = slices.DeleteFunc(slices.Clone(modules.All), func(m string) bool { return m == "cmd" })

// file returns the file of a module's listing.
func file(module string) string {
	if module == "" {
		return ".ci/api/listings/feedhistory.txt"
	}
	return ".ci/api/listings/" + strings.ReplaceAll(module, "/", "-") + ".txt"
}

// listing returns the lines of a module, sorted within each package.
func listing(root, module string) (string, error) {
	work, err := filepath.Abs(filepath.Join(root, "go.work"))
	if err != nil {
		return "", err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
		Dir:  filepath.Join(root, module),
		Env:  append(os.Environ(), "GOWORK="+work),
	}, "./...")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, pkg := range loaded {
		for _, err := range pkg.Errors {
			return "", err
		}
		if pkg.Name == "main" || strings.Contains(pkg.PkgPath+"/", "/internal/") || strings.Contains(pkg.PkgPath, "/examples/") {
			continue
		}
		for _, line := range names(pkg.Types) {
			fmt.Fprintf(&b, "%s: %s\n", strings.TrimPrefix(strings.TrimPrefix(pkg.PkgPath, modules.Path), "/"), line)
		}
	}
	if b.Len() == 0 {
		return "", errors.New("no packages in " + module)
	}
	return strings.ReplaceAll("\n"+b.String(), "\n: ", "\nfeedhistory: ")[1:], nil
}

// names returns a line for each exported constant, variable, function and type, and
// for each exported field and method of a type. The members of an embedded type are not listed again.
func names(pkg *types.Package) (lines []string) {
	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			add("const %s %s = %s", name, types.TypeString(o.Type(), short), value(o))
		case *types.TypeName:
			lines = append(lines, typeLines(o, short)...)
		default:
			add("%s", types.ObjectString(o, short))
		}
	}
	slices.Sort(lines)
	return lines
}

func value(c *types.Const) string {
	if c.Val().Kind() == constant.String {
		return c.Val().ExactString()
	}
	return c.Val().String()
}

func typeLines(o *types.TypeName, short types.Qualifier) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if o.IsAlias() {
		return []string{fmt.Sprintf("type %s = %s", o.Name(), types.TypeString(types.Unalias(o.Type()), short))}
	}
	switch t := o.Type().Underlying().(type) {
	case *types.Struct:
		add("type %s struct", o.Name())
		for f := range t.Fields() {
			if f.Exported() {
				add("type %s struct, %s %s", o.Name(), f.Name(), types.TypeString(f.Type(), short))
			}
		}
	case *types.Interface:
		add("type %s interface", o.Name())
		for e := range t.EmbeddedTypes() {
			add("type %s interface, %s", o.Name(), types.TypeString(e, short))
		}
		for m := range t.ExplicitMethods() {
			add("type %s interface, %s%s", o.Name(), m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
		}
	default:
		add("type %s %s", o.Name(), types.TypeString(t, short))
	}
	if types.IsInterface(o.Type()) {
		return lines
	}
	set := types.NewMethodSet(types.NewPointer(o.Type()))
	for selection := range set.Methods() {
		m := selection.Obj().(*types.Func)
		if !m.Exported() || len(selection.Index()) > 1 { // a promoted one is listed with its own type
			continue
		}
		receiver := types.TypeString(m.Signature().Recv().Type(), short)
		add("method (%s) %s%s", receiver, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
	}
	return lines
}
