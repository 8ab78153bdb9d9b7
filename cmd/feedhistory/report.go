package main

import (
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// report says what a history is, the verdict on it with its meaning, and what is
// missing.
func (w *world) report(h *feedhistory.History, v feedhistory.Verdict, meaning string) {
	p := &page{w: w.asides()}
	what := fmt.Sprintf("%s feed · %s · %s", h.Kind, count(h.Documents, "document", "documents"),
		count(len(h.Entries), "entry", "entries"))
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.para("", "", what)
	p.para("", "", fmt.Sprintf("verdict: %s. %s", v, meaning))
	missing := &page{w: w.stderr}
	for _, g := range h.Gaps {
		missing.gap(g)
	}
}

func (p *page) gap(g *feedhistory.Gap) {
	p.para("  - ", "    ", g.URL)
	if by, ok := strings.CutPrefix(g.From, "source:"); ok {
		if by != "" {
			p.para("    ", "    ", "asked for by "+by)
		}
	} else if g.From != "" && g.From != g.URL {
		p.para("    ", "    ", "linked from "+g.From)
	}
	p.para("    ", "    ", g.Reason.String()+": "+detail(g.Err))
	if g.Document != nil {
		p.para("    ", "    ", "what could be read of it is included: "+
			count(len(g.Document.Entries), "entry", "entries"))
	}
	p.para("    ", "    ", "what to do: "+advice(g))
}
