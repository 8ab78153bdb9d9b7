package explain

import (
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Gap prints a gap, with advice.
func Gap(p *terminal.Page, g *feedhistory.Gap) {
	p.Para("  - ", "    ", g.URL)
	if by, ok := strings.CutPrefix(g.From, "source:"); ok {
		if by != "" {
			p.Para("    ", "    ", "requested by "+by)
		}
	} else if g.From != "" && g.From != g.URL {
		p.Para("    ", "    ", "linked from "+g.From)
	}
	p.Para("    ", "    ", g.Reason.String()+": "+Detail(g.Err))
	if g.Document != nil {
		p.Para("    ", "    ", "the readable part is included: "+
			terminal.Count(len(g.Document.Entries), "entry", "entries"))
	}
	p.Para("    ", "    ", "what to do: "+Advice(g))
}
