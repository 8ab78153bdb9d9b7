// Package show prints documents, feeds and entries for people.
package show

import (
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Document shows a document, with the names of the backfill methods for its software.
func Document(p *terminal.Page, d *feedhistory.Document, methods []string) {
	head(p, d, methods)
	p.Line("")
	p.Line("  " + terminal.Count(len(d.Entries), "entry", "entries"))
	for _, e := range d.Entries {
		p.Line("")
		Entry(p, e)
	}
	deleted(p, d.Deleted)
	notes(p, d.Notes)
}

// head shows a document's description of itself.
func head(p *terminal.Page, d *feedhistory.Document, methods []string) {
	p.Para("", "", titled(d.Title))
	p.Line("")
	p.Field("format", explain.FormatText(d.Format))
	p.Field("kind", explain.KindText(d))
	p.Field("flags", explain.FlagText(d))
	p.Field("url", d.URL)
	p.Field("id", d.ID)
	p.Field("updated", terminal.Time(d.Updated))
	p.Field("declares", coverageText(d.Coverage))
	if older, ok := d.Older(); ok {
		p.Field("older", older.Href)
	}
	if len(methods) > 0 {
		p.Field("backfill", strings.Join(methods, ", ")+": may have older entries (fetch --backfill)")
	}
	if len(d.Links) > 0 {
		p.Line("")
		p.Line("  links")
		links(p, d.Links)
	}
}

// coverageText says how much of another feed a document declares to have.
func coverageText(c *feedhistory.Coverage) string {
	if c == nil {
		return ""
	}
	text := c.Verdict.String()
	if !c.AsOf.IsZero() {
		text += " as of " + terminal.Time(c.AsOf)
	}
	if c.Of != "" {
		text += ", of " + c.Of
	}
	if len(c.Gaps) > 0 {
		text += "; " + terminal.Count(len(c.Gaps), "gap", "gaps")
	}
	return text
}

func links(p *terminal.Page, all feedhistory.Links) {
	width := 0
	for _, l := range all {
		width = max(width, len(terminal.Clean(l.Rel)))
	}
	width = min(width, 14)
	for _, l := range all {
		rel := terminal.Clean(l.Rel)
		rel += strings.Repeat(" ", max(0, width-len(rel)))
		text := l.Href
		if l.Type != "" {
			text += " (" + l.Type + ")"
		}
		p.Para("    "+rel+"  ", strings.Repeat(" ", width+6), text)
	}
}

func deleted(p *terminal.Page, all []feedhistory.Tombstone) {
	if len(all) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + terminal.Count(len(all), "deleted entry", "deleted entries"))
	for _, t := range all {
		p.Para("    ", "      ", terminal.Time(t.When)+" "+t.Ref)
	}
}

// notes shows where the document breaks a rule, and how the parser read it nevertheless.
func notes(p *terminal.Page, all []feedhistory.Note) {
	if len(all) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + terminal.Count(len(all), "note", "notes") + " on how it was read")
	for _, n := range all {
		text := n.Message + " [" + n.Code + "]"
		if n.Line > 0 {
			text = explain.Place(n.Line, n.Column) + ": " + text
		}
		p.Para("    ", "      ", text)
	}
}
