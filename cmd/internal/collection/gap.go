package collection

import (
	"errors"
	"fmt"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// showHarvestGap shows a gap of a harvest, with advice.
func showHarvestGap(p *terminal.Page, g *feedhistory.Gap, advice string) {
	p.Para("  - ", "    ", argument.WithoutUser(g.URL))
	p.Para("    ", "    ", g.Reason.String()+": "+explain.Detail(g.Err))
	p.Para("    ", "    ", "what to do: "+advice)
}

// HarvestAdvice is the advice for a gap.
func HarvestAdvice(g *feedhistory.Gap) string {
	var loss *modifiedrange.PossibleLossError
	todo := ReplicationAdvice(g)
	switch {
	case todo != "":
		return todo
	case errors.As(g, &loss) && loss.Stuck:
		return "tell the server's operator that it sends the same items for every end of the range"
	case errors.As(g, &loss):
		return "tell the server's operator that it separates items modified at the same time"
	case errors.As(g, new(*modifiedrange.IgnoredError)):
		return "use fetch, or tell the server's operator; try --dialect if you know which one it understands"
	case errors.As(g, new(*modifiedrange.StampError)):
		return "tell the server's operator that an item has no time of modification"
	case errors.As(g, new(*modifiedrange.BudgetError)), g.Reason == feedhistory.ReasonBudget:
		return continued + limitFlags(g) + rangeRequests(g)
	}
	return explain.Advice(g)
}

const continued = "harvest again, to continue from there, or raise "

// leastProbes is the number of requests that bring any harvest by modified-range forward: a
// server that names the ranges of its answers needs one; for another, the client tries the
// dialects, and asks again to confirm an answer.
const leastProbes = 8

// rangeRequests is the advice for a low limit on the requests of modified-range. A gap from a
// mirror has only the error's text.
func rangeRequests(g *feedhistory.Gap) string {
	if g.Err == nil {
		return ""
	}
	var most int
	_, limit, _ := strings.Cut(g.Err.Error(), "needs more requests than the limit of ")
	if _, err := fmt.Sscanf(limit, "%d (modified-range#", &most); err != nil || most >= leastProbes {
		return ""
	}
	return fmt.Sprintf("; some servers need at least %d", leastProbes)
}

// limitFlags names the flag of the limit that caused a gap; if it is not known, both.
func limitFlags(g *feedhistory.Gap) string {
	if limit := storedLimit(g); limit != "" {
		return "--max-" + limit
	}
	return "--max-requests or --max-bytes"
}

// storedLimit returns the limit a gap's error names; "" if it names none. A gap from a mirror
// has only the error's text.
func storedLimit(g *feedhistory.Gap) string {
	if g.Err == nil {
		return ""
	}
	text := g.Err.Error()
	if _, spent, ok := strings.Cut(text, "spent: "); ok { // of a walk
		var documents, mostDocuments, bytes, mostBytes int64
		switch _, err := fmt.Sscanf(spent, "%d of %d documents, %d of %d bytes", &documents, &mostDocuments, &bytes, &mostBytes); {
		case err != nil:
		case documents >= mostDocuments:
			return "requests"
		case bytes >= mostBytes:
			return "bytes"
		}
	}
	for _, limit := range []string{"requests", "bytes", "items"} {
		for _, names := range []string{"needs more " + limit + " than", "the limit on " + limit + " ("} {
			if strings.Contains(text, names) {
				return limit
			}
		}
	}
	return ""
}
