package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A house has the counts of all modules of a checkout.
type house struct {
	root           string
	modules        map[string]string // folder of each module -> its path
	code, testCode int
	codeOf         map[string]int // package -> code lines

	functionOf       map[string]int
	branchesOf       map[string]int
	methods          map[string]int // type -> methods
	bools            []string       // structs
	participles      []string       // types
	undocumented     []string
	breaches         []string       // imports across walls
	exported         map[string]int // package -> names
	spans            map[string][]span
	words            map[string]int
	allWords         int
	fset             *token.FileSet
	internalPackages map[string]bool
}

func count(root string) (*house, error) {
	h := &house{
		root: root, modules: map[string]string{}, codeOf: map[string]int{},
		functionOf: map[string]int{}, branchesOf: map[string]int{}, methods: map[string]int{},
		words: map[string]int{}, exported: map[string]int{}, spans: map[string][]span{},
		fset: token.NewFileSet(), internalPackages: map[string]bool{},
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".ci"):
			return filepath.SkipDir
		case name == "go.mod":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.modules[h.rel(filepath.Dir(path))] = modfile.ModulePath(text)
		case strings.HasSuffix(name, ".go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if err := h.file(path); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// declarations notes the lines of each declaration at the top of a file.
func (h *house) declarations(pkg, path string, source []byte, f *ast.File) {
	lines, name := bytes.SplitAfter(source, []byte("\n")), filepath.ToSlash(filepath.Join(pkg, filepath.Base(path)))
	add := func(n ast.Node) {
		first, last := h.fset.Position(n.Pos()).Line, h.fset.Position(n.End()).Line
		h.spans[name] = append(h.spans[name], span{first, last, codeLines(bytes.Join(lines[first-1:last], nil))})
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				add(s)
			}
			continue
		}
		add(d)
	}
}

// rel returns a path relative to the root, with slashes.
func (h *house) rel(path string) string {
	rel, err := filepath.Rel(h.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

func (h *house) file(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(h.fset, path, source, parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	code := codeLines(source)
	if strings.HasSuffix(path, "_test.go") {
		h.testCode += code
		return nil
	}
	pkg := h.rel(filepath.Dir(path))
	h.code += code
	h.codeOf[pkg] += code
	if strings.HasPrefix(pkg, "internal/") {
		h.internalPackages[pkg] = true
	}
	h.declarations(pkg, path, source, f)
	h.imports(pkg, f)
	h.english(f)
	public := f.Name.Name != "main" && !strings.HasPrefix(pkg, ".ci") && !strings.Contains("/"+pkg+"/", "/internal/")
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			h.function(pkg, d, public)
		case *ast.GenDecl:
			h.declaration(pkg, d, public)
		}
	}
	return nil
}

func (h *house) function(pkg string, d *ast.FuncDecl, public bool) {
	lines := h.fset.Position(d.End()).Line - h.fset.Position(d.Pos()).Line + 1
	branches := 1
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			branches++
		case *ast.CaseClause:
			branches += min(len(n.List), 1)
		case *ast.CommClause:
			if n.Comm != nil {
				branches++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				branches++
			}
		}
		return true
	})
	where := pkg + ":" + d.Name.Name
	receiver := ""
	if d.Recv != nil {
		receiver = typeName(d.Recv.List[0].Type)
		h.methods[pkg+"."+receiver]++
		where = pkg + ":" + receiver + "." + d.Name.Name
	}
	h.functionOf[where], h.branchesOf[where] = lines, branches
	if public && d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
		h.export(pkg, where, d.Doc != nil)
	}
}

func (h *house) declaration(pkg string, d *ast.GenDecl, public bool) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			name := pkg + "." + s.Name.Name
			if t, ok := s.Type.(*ast.StructType); ok && bools(t) > 3 {
				h.bools = append(h.bools, name)
			}
			if !s.Name.IsExported() && participle.MatchString(s.Name.Name) && !noun[s.Name.Name] {
				h.participles = append(h.participles, name)
			}
			if public && s.Name.IsExported() {
				h.export(pkg, name, d.Doc != nil || s.Doc != nil || s.Comment != nil)
			}
		case *ast.ValueSpec:
			for _, id := range s.Names {
				if public && id.IsExported() {
					h.export(pkg, pkg+"."+id.Name, d.Doc != nil || s.Doc != nil || s.Comment != nil)
				}
			}
		}
	}
}

// participle matches names such as visited, loading and ahead; noun has those that
// are nouns.
var (
	participle = regexp.MustCompile(`^[a-z]+(ed|ing|own|wn)$|^(ahead|again|elsewhere|held|kept|left|meanwhile|sought|sent|known|seen|taken|found)$`)
	noun       = map[string]bool{
		"feed": true, "ping": true, "string": true, "thing": true, "ring": true, "heading": true, "seed": true, "embed": true, "warning": true,
		"finding": true, "reading": true, "listing": true, "setting": true, "meeting": true, "binding": true, "opening": true, "encoding": true, "town": true,
	}
)

func (h *house) export(pkg, name string, documented bool) {
	h.exported[pkg]++
	if !documented {
		h.undocumented = append(h.undocumented, name)
	}
}

// typeName returns the name in the type of a receiver.
func typeName(t ast.Expr) (name string) {
	ast.Inspect(t, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func bools(t *ast.StructType) (n int) {
	for _, f := range t.Fields.List {
		if id, ok := f.Type.(*ast.Ident); ok && id.Name == "bool" {
			n += max(len(f.Names), 1)
		}
	}
	return n
}

// codeLines returns the number of lines that have code.
func codeLines(source []byte) int {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(f, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := fset.Position(pos).Line
		for i := range strings.Count(lit, "\n") + 1 {
			lines[first+i] = true
		}
	}
}

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'’]*`)

// english counts the words of a file's comments.
func (h *house) english(f *ast.File) {
	for _, group := range f.Comments {
		for _, w := range word.FindAllString(group.Text(), -1) {
			h.allWords++
			h.words[strings.ToLower(w)]++
		}
	}
}

// imports notes each import of another module's internal package.
func (h *house) imports(pkg string, f *ast.File) {
	own := h.moduleOf(pkg)
	for _, spec := range f.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if !strings.HasPrefix(path, h.modules["."]+"/") || !strings.Contains(path, "/internal/") {
			continue
		}
		if of := h.moduleOf(strings.TrimPrefix(path, h.modules["."]+"/")); of != own {
			h.breaches = append(h.breaches, fmt.Sprintf("%s imports %s", pkg, path))
		}
	}
}

// moduleOf returns the folder of the module that a package is in.
func (h *house) moduleOf(pkg string) string {
	for dir := pkg; dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if h.modules[dir] != "" {
			return dir
		}
	}
	return "."
}

// most returns the largest number and its key, the first of equal ones.
func most(of map[string]int) (n int, key string) {
	for k, v := range of {
		if v > n || v == n && cmp.Less(k, key) {
			n, key = v, k
		}
	}
	return n, key
}

func percentile(of map[string]int, p float64) int {
	sorted := slices.Sorted(maps.Values(of))
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}
