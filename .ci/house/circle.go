package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// references notes the names that a file of the root or a command defines and uses.
func (h *house) references(pkg, file string, f *ast.File) {
	if h.uses[pkg] == nil {
		h.uses[pkg], h.defines[pkg] = map[string][]string{}, map[string]string{}
	}
	for name := range f.Scope.Objects {
		h.defines[pkg][name] = file
	}
	keys := map[*ast.Ident]bool{} // the names of fields in literals
	ast.Inspect(f, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if id, ok := pair.Key.(*ast.Ident); ok {
				keys[id] = true
			}
		}
		return true
	})
	for _, id := range f.Unresolved {
		if !keys[id] {
			h.uses[pkg][file] = append(h.uses[pkg][file], id.Name)
		}
	}
}

// circle returns the size of the largest set of files of one package in which each leads
// to each, and the package.
func (h *house) circle() (largest int, in string) {
	for pkg, uses := range h.uses {
		edges := map[string][]string{}
		for file, names := range uses {
			for _, name := range names {
				if to := h.defines[pkg][name]; to != "" && to != file && !slices.Contains(edges[file], to) {
					edges[file] = append(edges[file], to)
				}
			}
		}
		for file := range uses {
			n := 0
			from := reached(edges, file)
			for other := range from {
				if reached(edges, other)[file] {
					n++
				}
			}
			if n > largest {
				largest, in = n, pkg
			}
		}
	}
	return largest, in
}

// reached returns the files that a file leads to.
func reached(edges map[string][]string, from string) map[string]bool {
	seen := map[string]bool{}
	next := []string{from}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		for _, to := range edges[file] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return seen
}

// layersOf reads the layers drawn in a comment: lines of names after a tab, of which the
// first of a layer is the layer's.
func layersOf(f *ast.File) map[string]int {
	layers, n := map[string]int{}, 0
	for _, group := range f.Comments {
		if !strings.Contains(group.Text(), "form layers") {
			continue
		}
		for _, c := range group.List {
			line, drawn := strings.CutPrefix(c.Text, "//\t")
			if !drawn {
				continue
			}
			names := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '→' || r == '·' })
			if !strings.HasPrefix(line, " ") {
				n, names = n+1, names[1:]
			}
			for _, name := range names {
				layers[name+".go"] = n
			}
		}
	}
	return layers
}

// climbs returns the names which files of the root use of a layer below theirs, and the
// files that are drawn in no layer, or drawn only.
func (h *house) climbs() (climbs []string) {
	files := h.uses["."]
	for file := range h.layers {
		if files[file] == nil {
			climbs = append(climbs, file+" is drawn, but has no code")
		}
	}
	for file, names := range files {
		if h.layers[file] == 0 {
			climbs = append(climbs, file+" is in no layer")
			continue
		}
		for _, name := range names {
			if to := h.defines["."][name]; h.layers[to] > h.layers[file] {
				climbs = append(climbs, fmt.Sprintf("%s uses %s of %s", file, name, to))
			}
		}
	}
	slices.Sort(climbs)
	return climbs
}
