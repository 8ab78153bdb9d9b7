package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/handover"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// mostRefused is the maximum number of refused entries in a report.
const mostRefused = 10

// tell reports the handover of one feed.
func (h *handoverRun) tell(r *handover.Report) error {
	if h.worst != exit.Failed && (r.Refused > 0 || exit.Of(r.Verdict) != exit.OK) {
		h.worst = exit.Partial
	}
	if h.JSON {
		return terminal.WriteJSON(h.w.Stdout, jsonHandover{
			URL: r.Feed, FeedID: r.ID, Verdict: r.Verdict.String(), DryRun: h.handoverCommand.DryRun,
			Entries: r.Entries, Shown: r.Shown, Had: r.Had, Added: r.Added, Removed: r.Removed,
			Refused: h.refused, ToAdd: h.toAdd,
		})
	}
	if err := h.list(h.w.Stdout); err != nil {
		return err
	}
	p := h.page
	if r.Refused > 0 || exit.Of(r.Verdict) != exit.OK {
		p = h.missing
	}
	p.Line(terminal.Clean(r.Feed + ": " + outcomes(r, h.handoverCommand.DryRun)))
	for i, refusal := range h.refused {
		if i == mostRefused {
			p.Para("  ", "    ", fmt.Sprintf("and %d more", len(h.refused)-i))
			break
		}
		p.Para("  ", "    ", refusal.ID+": "+refusal.Error)
	}
	if r.Verdict != feedhistory.Whole {
		p.Para("  ", "  ", "the mirror itself does not have the whole history: "+r.Verdict.String()+"; feedhistory list "+r.Feed+" says more")
	}
	return nil
}

// list prints the entries to be handed over.
func (h *handoverRun) list(out io.Writer) error {
	p := terminal.NewPage(out)
	for _, e := range h.toAdd {
		date, _, _ := strings.Cut(cmp.Or(e.Published, e.Updated, strings.Repeat(" ", 10)), "T")
		p.Line(date + "  " + terminal.Clean(cmp.Or(e.Title, e.ID)))
	}
	return p.Err
}

func outcomes(r *handover.Report, dry bool) string {
	added := "%d handed over"
	if dry {
		added = "%d to hand over"
	}
	text := fmt.Sprintf(added, r.Added)
	for _, part := range []struct {
		n    int
		says string
	}{
		{r.Had, "there already"}, {r.Shown, "still in the feed"},
		{r.Removed, "deleted in the reader"}, {r.Refused, "refused"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf(" · %d %s", part.n, part.says)
		}
	}
	return text
}

// A jsonHandover is the result for one feed in the verb's JSON.
type (
	jsonHandover struct {
		URL     string         `json:"url"`
		FeedID  int64          `json:"feed_id"`
		Verdict string         `json:"verdict"`
		DryRun  bool           `json:"dry_run"`
		Entries int            `json:"entries"`
		Shown   int            `json:"shown"`
		Had     int            `json:"had"`
		Added   int            `json:"added"`
		Removed int            `json:"removed"`
		Refused []jsonRefusal  `json:"refused"`
		ToAdd   []schema.Entry `json:"to_add,omitempty"` // only in a dry run
	}
	jsonRefusal struct {
		ID    string `json:"id"`
		Error string `json:"error"`
	}
)
