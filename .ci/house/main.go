// Command house counts what the rules of this repository bound: lines, packages,
// methods, the walls between the modules, and the English of the comments. Tests,
// fixtures and generated files are left out.
//
//	cd .ci && GOWORK=off go run ./house
//
// Its test fails where a bound is passed.
package main

import (
	"fmt"
	"log"
	"os"
	"text/tabwriter"
)

func main() {
	log.SetFlags(0)
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	h, err := count(root)
	if err != nil {
		log.Fatal(err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range h.figures() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.name, f.value, f.bound())
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
}

// A figure is one row of the table.
type figure struct {
	name  string
	value string
	n     float64
	most  float64 // the bound; 0 if there is none
}

func (f figure) bound() string {
	if f.most == 0 {
		return ""
	}
	return fmt.Sprintf("(at most %g)", f.most)
}

// figures returns the rows of the table. A bound is the best value so far: whoever
// improves on it lowers it.
func (h *house) figures() []figure {
	number := func(name string, n int, most float64) figure {
		return figure{name: name, value: fmt.Sprint(n), n: float64(n), most: most}
	}
	named := func(name string, n int, where string, most float64) figure {
		f := number(name, n, most)
		f.value += " " + where
		return f
	}
	rate := func(word string, most float64) figure {
		n := 1000 * float64(h.words[word]) / float64(max(h.allWords, 1))
		return figure{name: fmt.Sprintf("%q in 1,000 words of comments", word), value: fmt.Sprintf("%.1f", n), n: n, most: most}
	}
	methods, methodsOf := most(h.methods)
	largest, largestIs := most(h.codeOf)
	circle, circleIn := h.circle()
	functions := percentile(h.functions, 0.9)
	longest, longestIs := most(h.functionOf)
	branches, branchesIn := most(h.branchesOf)
	file, fileIs := most(h.fileLines)
	return []figure{
		number("code lines", h.code, 0),
		number("code lines of tests", h.testCode, 0),
		number("packages", len(h.codeOf), 0),
		number("internal packages of the root", h.internals, 14),
		named("largest package", largest, largestIs, 5750),
		named("longest file, in lines", file, fileIs, 410),
		number("function lines, 9th decile", functions, 30),
		named("longest function", longest, longestIs, 69),
		number("branches of a function, 9th decile", percentile(h.branches, 0.9), 10),
		named("most branches", branches, branchesIn, 30),
		named("most methods on a type", methods, methodsOf, 50),
		named("files of the root or a command in one circle", circle, circleIn, 9),
		number("names the root's files use of a lower layer", len(h.climbs()), 0.5),
		number("structs with more than three bools", len(h.bools), 4),
		number("exported names", h.exported, 0),
		number("exported names without a comment", len(h.undocumented), 0.5),
		number("unexported types named by a participle", len(h.participles), 0.5),
		number("internal packages imported across modules", len(h.breaches), 0.5),
		number("words of comments", h.allWords, 0),
		rate("what", 1),
		rate("that", 6),
	}
}
