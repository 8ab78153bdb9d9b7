// Package findings shows the findings of a check, and serves the files to be checked.
package findings

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Show shows the findings on each document, with their lines, and a summary. It shows
// each hint on a kind of finding once.
func Show(p *terminal.Page, found []check.Finding, documents int) {
	var urls []string
	byURL := map[string][]check.Finding{}
	levels := map[check.Level]int{}
	for _, f := range found {
		if _, ok := byURL[f.URL]; !ok {
			urls = append(urls, f.URL)
		}
		byURL[f.URL] = append(byURL[f.URL], f)
		levels[f.Level]++
	}
	hinted := map[string]bool{}
	for _, url := range urls {
		p.Line(terminal.Clean(documentName(url)))
		for _, f := range byURL[url] {
			showFinding(p, f, !hinted[f.Code+f.Hint])
			hinted[f.Code+f.Hint] = true
		}
		p.Line("")
	}
	sum := terminal.Count(documents, "document", "documents") + " checked: "
	if len(found) == 0 {
		p.Line(sum + "nothing to report")
		return
	}
	p.Para("", "", sum+strings.Join([]string{
		terminal.Count(levels[check.Error], "error", "errors"),
		terminal.Count(levels[check.Warning], "warning", "warnings"),
		terminal.Count(levels[check.Note], "note", "notes"),
	}, ", "))
}

func documentName(url string) string {
	switch url {
	case "-":
		return "standard input"
	case "":
		return "(a document without a URL)"
	}
	return url
}

// showFinding shows one finding.
func showFinding(p *terminal.Page, f check.Finding, hint bool) {
	const indent = "      "
	text := fmt.Sprintf("%v: %s [%s, %s]", f.Level, f.Message, f.Code, f.Clause)
	if f.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
	}
	p.Para("  ", indent, text)
	showQuote(p, indent, f.Quote)
	if hint && f.Hint != "" {
		p.Para(indent, indent, "→ "+f.Hint)
	}
}

// showQuote shows a line of a document, with a caret below the place of a finding.
func showQuote(p *terminal.Page, indent string, q check.Quote) {
	before, after := strings.TrimLeft(cleanLine(q.Before), " "), strings.TrimRight(cleanLine(q.After), " ")
	if before == "" && after == "" {
		return
	}
	width := p.Columns() - len(indent) - 2
	most := min(40, width/2) // columns before the place
	for uniseg.StringWidth(before) > most {
		runes := []rune(strings.TrimPrefix(before, "…"))
		before = "…" + string(runes[max(1, len(runes)/4):])
	}
	p.Line(indent + "| " + terminal.Cut(before+after, width))
	p.Line(indent + "| " + strings.Repeat(" ", uniseg.StringWidth(before)) + "^")
}

// cleanLine does the same as clean, but keeps each space, because the caret on the next
// line marks a place in the text.
func cleanLine(s string) string {
	words := strings.Split(strings.ReplaceAll(s, "\t", " "), " ")
	return strings.Join(schema.Each(words, terminal.Clean), " ")
}
