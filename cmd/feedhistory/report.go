package main

import (
	"fmt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// reportHistory summarizes a history: its size, the verdict with its meaning, and each gap.
func reportHistory(w *command.World, h *feedhistory.History, v feedhistory.Verdict, meaning string) {
	p := terminal.NewPage(w.Asides())
	what := fmt.Sprintf("%s feed · %s · %s", h.Kind, terminal.Count(h.Documents, "document", "documents"),
		terminal.Count(len(h.Entries), "entry", "entries"))
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.Para("", "", what)
	p.Para("", "", fmt.Sprintf("verdict: %s. %s", v, meaning))
	missing := terminal.NewPage(w.Stderr)
	for _, g := range h.Gaps {
		explain.Gap(missing, g)
	}
}
