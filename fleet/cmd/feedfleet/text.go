package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/terminal"
)

// columns is the width that output for people is made for.
const columns = 80

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
	line, empty := first, true
	for _, word := range strings.Fields(terminal.Clean(text)) {
		switch {
		case empty:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			p.line(line)
			line = further + word
		default:
			line += " " + word
		}
		empty = false
	}
	p.line(line)
}

// field writes a label and its value; nothing if there is no value.
func (p *page) field(label, value string) {
	if value != "" {
		p.para(fmt.Sprintf("  %-9s ", label), strings.Repeat(" ", 12), value)
	}
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// span is a length of time for people, in its largest unit.
func span(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d >= day:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", max(d, 0)/time.Second)
}
