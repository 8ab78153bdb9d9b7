package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// Columns is the width a Page is made for.
const Columns = 80

// A Page writes text for people.
type Page struct {
	W     io.Writer
	Width int   // Width is the number of columns of the terminal; 0 means there is none.
	Err   error // Err is the first error of W; nothing is written after it.
}

// NewPage returns a page written to w.
func NewPage(w io.Writer) *Page { return &Page{W: w, Width: Width(w)} }

// Line writes one line.
func (p *Page) Line(text string) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintln(p.W, strings.TrimRight(text, " "))
	}
}

// Para writes text in as many lines as it takes, after a first and a further indent. A
// word too long for a line, such as a URL, stays whole.
func (p *Page) Para(first, further, text string) {
	line, n := first, uniseg.StringWidth(first)
	most := p.columns()
	for i, word := range strings.Fields(Clean(text)) {
		size := uniseg.StringWidth(word)
		if i > 0 && n+1+size > most {
			p.Line(line)
			line, n = further+word, uniseg.StringWidth(further)+size
			continue
		}
		if i > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+size
	}
	p.Line(line)
}

// columns returns the width of paragraphs.
func (p *Page) columns() int {
	if p.Width <= 0 {
		return Columns
	}
	return min(p.Width, Columns)
}

// Title shortens the title of an entry so a line has room for a date before it and an
// address after it. Without a terminal, it returns the whole title, because programs read
// the line.
func (p *Page) Title(title string) string {
	const others, least = 36, 16
	if p.Width <= 0 {
		return title
	}
	most := max(p.Width-others, least)
	title = Cut(title, most)
	return title + strings.Repeat(" ", max(most-uniseg.StringWidth(title), 0))
}

// Field writes a label and its value; nothing if there is no value.
func (p *Page) Field(label, value string) {
	if value != "" {
		p.Para(fmt.Sprintf("  %-9s ", label), strings.Repeat(" ", 12), value)
	}
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Span returns a length of time: rounded, in the largest unit it fills.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		size, most time.Duration
		name       string
	}{{time.Second, time.Minute, "s"}, {time.Minute, time.Hour, "m"}, {time.Hour, day, "h"}, {day, 365 * day, "d"}} {
		if rounded := max(d, 0).Round(unit.size); rounded < unit.most {
			return fmt.Sprintf("%d%s", rounded/unit.size, unit.name)
		}
	}
	const year = 365 * day
	return fmt.Sprintf("%dy", d.Round(year)/year)
}

// Until returns when a time comes.
func Until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + Span(t.Sub(now))
}

// Time returns a time to the second, in UTC; "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
