package main

import (
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// report summarizes a history: its size, the verdict and what that means, and each gap.
func (w *world) report(h *feedhistory.History, v feedhistory.Verdict, meaning string) {
	p := newPage(w.Asides())
	what := fmt.Sprintf("%s feed · %s · %s", h.Kind, count(h.Documents, "document", "documents"),
		count(len(h.Entries), "entry", "entries"))
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.Para("", "", what)
	p.Para("", "", fmt.Sprintf("verdict: %s. %s", v, meaning))
	missing := newPage(w.Stderr)
	for _, g := range h.Gaps {
		missing.gap(g)
	}
}

func (p *page) gap(g *feedhistory.Gap) {
	p.Para("  - ", "    ", g.URL)
	if by, ok := strings.CutPrefix(g.From, "source:"); ok {
		if by != "" {
			p.Para("    ", "    ", "requested by "+by)
		}
	} else if g.From != "" && g.From != g.URL {
		p.Para("    ", "    ", "linked from "+g.From)
	}
	p.Para("    ", "    ", g.Reason.String()+": "+detail(g.Err))
	if g.Document != nil {
		p.Para("    ", "    ", "the readable part is included: "+
			count(len(g.Document.Entries), "entry", "entries"))
	}
	p.Para("    ", "    ", "what to do: "+advice(g))
}
