package main

import (
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// report says what a history is, and what is missing of it.
func (p *page) report(h *feedhistory.History) {
	p.outcome(h, h.Verdict(), verdictText(h.Verdict()))
}

// outcome is report with a verdict that may know more, and what that means.
func (p *page) outcome(h *feedhistory.History, v feedhistory.Verdict, text string) {
	what := fmt.Sprintf("%s feed · %s · %s", h.Kind, count(h.Documents, "document", "documents"),
		count(len(h.Entries), "entry", "entries"))
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.para("", "", what)
	p.para("", "", fmt.Sprintf("verdict: %s. %s", v, text))
	for _, g := range h.Gaps {
		p.gap(g)
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
