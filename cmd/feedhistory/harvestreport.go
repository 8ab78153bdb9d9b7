package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// harvested says what a harvest brought, and what is missing of it.
func (p *page) harvested(h *feedhistory.History, sync *modifiedrange.Sync, from modifiedrange.State) {
	what := fmt.Sprintf("%s (%s) · %s", count(len(h.Entries), "entry", "entries"),
		count(sync.Requests(), "request", "requests"), sync.Dialect())
	if n := len(h.Deleted); n > 0 {
		what += fmt.Sprintf(" · %d deleted", n)
	}
	p.para("", "", what)
	next, whole := sync.State()
	switch {
	case !whole:
		p.para("", "", "Something is missing, so the next harvest begins where this one did:")
	case from.Since.IsZero():
		p.para("", "", "Everything is here that the collection had at the beginning of the harvest.")
	default:
		p.para("", "", "Everything is here that was modified since "+timeJSON(from.Since)+".")
	}
	if whole && !next.Since.IsZero() {
		p.para("", "", "The next harvest begins at "+timeJSON(next.Since)+", by the server's clock.")
	}
	for _, g := range h.Gaps {
		p.harvestGap(g)
	}
}

// harvestGap says what is missing of a harvest.
func (p *page) harvestGap(g *feedhistory.Gap) {
	p.para("  - ", "    ", withoutUser(g.URL))
	p.para("    ", "    ", g.Reason.String()+": "+strings.ReplaceAll(detail(g.Err), g.URL+": ", ""))
	p.para("    ", "    ", "what to do: "+harvestAdvice(g))
}

// harvestAdvice says what to do about a gap.
func harvestAdvice(g *feedhistory.Gap) string {
	var loss *modifiedrange.PossibleLossError
	var ignored *modifiedrange.IgnoredError
	var stamp *modifiedrange.StampError
	var limit *modifiedrange.LimitError
	switch {
	case errors.As(g, &loss):
		return "tell the server's operator that it cuts through items modified at the same time"
	case errors.As(g, &ignored):
		return "use fetch, or tell the server's operator; try --dialect if you know which it understands"
	case errors.As(g, &stamp):
		return "tell the server's operator that an item has no time of modification"
	case errors.As(g, &limit) && limit.Limit == "requests":
		return "raise --max-requests"
	}
	return advice(g)
}
