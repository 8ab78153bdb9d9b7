// Command house counts how much there is to hold: lines, exported names, the code that
// each of four verbs enters, the walls between the modules, and the English of the
// comments. Tests, fixtures and generated files are left out.
//
//	cd .ci && GOWORK=off go run ./house
//
// Its test fails where a bound of bounds.txt is passed.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
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
	ways, err := h.ways()
	if err != nil {
		log.Fatal(err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	most := bounds()
	for _, f := range h.figures(ways) {
		bound := ""
		if n, ok := most[f.name]; ok {
			bound = fmt.Sprintf("(at most %g)", n)
		}
		fmt.Fprintf(w, "%s\t%g\t%s\t%s\n", f.name, math.Round(10*f.n)/10, bound, f.where)
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
}

//go:embed bounds.txt
var boundsText string

// bounds reads bounds.txt: figure -> bound.
func bounds() map[string]float64 {
	of := map[string]float64{}
	for line := range strings.Lines(boundsText) {
		if line, ok := strings.CutSuffix(line, "\n"); ok && !strings.HasPrefix(line, "#") {
			i := strings.LastIndex(line, ": ")
			n, err := strconv.ParseFloat(line[i+2:], 64)
			if i < 0 || err != nil {
				panic(fmt.Sprintf("bounds.txt: %q", line))
			}
			of[line[:i]] = n
		}
	}
	return of
}

// A figure is one row of the table.
type figure struct {
	name  string
	n     float64
	where string // the place that has the most, if one has
}

// figures returns the rows of the table.
func (h *house) figures(ways map[string]way) []figure {
	methods, methodsOf := most(h.methods)
	largest, largestIs := most(h.codeOf)
	longest, longestIs := most(h.functionOf)
	branches, branchesIn := most(h.branchesOf)
	exported := 0
	for _, n := range h.exported {
		exported += n
	}
	rate := func(word string) float64 { return 1000 * float64(h.words[word]) / float64(max(h.allWords, 1)) }
	figures := []figure{
		{"code lines", float64(h.code), ""},
		{"code lines of tests", float64(h.testCode), ""},
		{"packages", float64(len(h.codeOf)), ""},
		{"internal packages of the root", float64(len(h.internalPackages)), ""},
		{"largest package", float64(largest), largestIs},
		{"exported names", float64(exported), ""},
		{"exported names of the root", float64(h.exported["."]), ""},
		{"exported names of mirror", float64(h.exported["mirror"]), ""},
		{"exported names without a comment", float64(len(h.undocumented)), ""},
		{"internal packages imported across modules", float64(len(h.breaches)), ""},
		{"function lines, 9th decile", float64(percentile(h.functionOf, 0.9)), ""},
		{"longest function", float64(longest), longestIs},
		{"branches of a function, 9th decile", float64(percentile(h.branchesOf, 0.9)), ""},
		{"most branches", float64(branches), branchesIn},
		{"most methods on a type", float64(methods), methodsOf},
		{"structs with more than three bools", float64(len(h.bools)), ""},
		{"unexported types named by a participle", float64(len(h.participles)), ""},
		{"words of comments", float64(h.allWords), ""},
		{`"what" in 1,000 words of comments`, rate("what"), ""},
		{`"that" in 1,000 words of comments`, rate("that"), ""},
	}
	for _, verb := range slices.Sorted(maps.Keys(ways)) {
		w := ways[verb]
		figures = append(figures, figure{verb + ": functions", float64(w.functions), ""}, figure{verb + ": files", float64(w.files), ""},
			figure{verb + ": packages", float64(w.packages), ""}, figure{verb + ": code lines of the functions", float64(w.lines), ""})
	}
	return figures
}
