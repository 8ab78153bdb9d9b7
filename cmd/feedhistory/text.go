package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/feedhistory/feedhistory/internal/terminal"
)

// columns is the width that output for people is made for.
const columns = 80

// clean makes text of unknown origin fit for a terminal and for one line.
func clean(s string) string { return terminal.Clean(s) }

// cut shortens text to a width.
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

// A page is text for people in the making. It remembers the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(text, " "))
	}
}

// para writes text in as many lines as it takes, after a first and a further
// indent. A word that is too long for a line, such as a URL, stays whole.
func (p *page) para(first, further, text string) {
	line := first
	width := uniseg.StringWidth(first)
	for i, word := range strings.Fields(clean(text)) {
		n := uniseg.StringWidth(word)
		if i > 0 && width+1+n > columns {
			p.line(line)
			line, width = further+word, uniseg.StringWidth(further)+n
			continue
		}
		if i > 0 {
			line, width = line+" ", width+1
		}
		line, width = line+word, width+n
	}
	p.line(line)
}

// field writes a label and its value; nothing if there is no value.
func (p *page) field(label, value string) {
	if value != "" {
		p.para(fmt.Sprintf("  %-9s ", label), strings.Repeat(" ", 12), value)
	}
}

// timeText writes a time for people: to the second, in UTC.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
