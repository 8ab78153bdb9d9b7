package main

import (
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

const columns = terminal.Columns

// clean returns text of unknown origin as one line without control characters, so that it
// can do no harm to a terminal.
func clean(s string) string { return terminal.Clean(s) }

// cut shortens text to a width in columns.
func cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used += g.Width(); used > width-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// A page writes text for people.
type page struct{ terminal.Page }

func newPage(w io.Writer) *page {
	return &page{terminal.Page{W: w, Width: uniseg.StringWidth}}
}

// timeText returns a time for people.
func timeText(t time.Time) string { return terminal.Time(t) }

// count returns a number with its noun.
func count(n int, one, many string) string { return terminal.Count(n, one, many) }
