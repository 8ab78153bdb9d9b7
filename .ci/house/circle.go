package main

import (
	"go/ast"
	"slices"
)

// references notes the names that a file of a main package defines and uses.
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

// circle returns the size of the largest set of files of a main package in which each
// leads to each, and the package.
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
