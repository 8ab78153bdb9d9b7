package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/cmd/internal/network"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// An inspectCommand is the verb inspect.
type inspectCommand struct {
	Source string `arg:"" name:"URL|FILE|-" help:"The document: a URL, a file, or - for standard input."`
	Base   string `placeholder:"URL" help:"URL against which relative references in a file resolve."`

	terminal.JSONFlag `set:"record=the document"`

	network.Flags
	logins.Login
}

// Help returns the text of --help before the flags.
func (c *inspectCommand) Help() string {
	return "If the document is damaged, inspect shows the part before the damage, reports the damage on standard error, and exits with status 1."
}

// Run shows the document.
func (c *inspectCommand) Run(w *command.World) error {
	if c.Base != "" {
		if u, err := url.Parse(c.Base); err != nil || !u.IsAbs() {
			return exit.UsageError("--base: " + c.Base + " is not an absolute URL")
		}
	}
	doc, err := w.Document(c.Source, c.Base)
	if doc != nil {
		if err := c.show(w, doc); err != nil {
			return err
		}
	}
	var usage exit.UsageError
	switch {
	case err == nil, errors.As(err, &usage):
		return err
	case doc != nil:
		w.Say(explain.Failure(c.Source, err).Error())
		w.Say("the document is damaged; the output is the part before the damage")
		return exit.StatusError(exit.Failed)
	}
	return explain.Failure(c.Source, err)
}

func (c *inspectCommand) show(w *command.World, doc *feedhistory.Document) error {
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, jsonInspected{schema.NewDocument(doc), applicable(doc), newCoverage(doc.Coverage)})
	}
	p := terminal.NewPage(w.Stdout)
	showHead(p, doc)
	showEntries(p, doc.Entries)
	showDeleted(p, doc.Deleted)
	showNotes(p, doc.Notes)
	return p.Err
}

// showHead shows a document's description of itself.
func showHead(p *terminal.Page, d *feedhistory.Document) {
	title := d.Title
	if terminal.Clean(title) == "" {
		title = "(no title)"
	}
	p.Para("", "", title)
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
	if names := applicable(d); len(names) > 0 {
		p.Field("backfill", strings.Join(names, ", ")+": may have older entries (fetch --backfill)")
	}
	if len(d.Links) > 0 {
		p.Line("")
		p.Line("  links")
		showLinks(p, d.Links)
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

func showLinks(p *terminal.Page, links feedhistory.Links) {
	width := 0
	for _, l := range links {
		width = max(width, len(terminal.Clean(l.Rel)))
	}
	width = min(width, 14)
	for _, l := range links {
		rel := terminal.Clean(l.Rel)
		rel += strings.Repeat(" ", max(0, width-len(rel)))
		text := l.Href
		if l.Type != "" {
			text += " (" + l.Type + ")"
		}
		p.Para("    "+rel+"  ", strings.Repeat(" ", width+6), text)
	}
}

// showEntries shows the title, time, id and link of each entry.
func showEntries(p *terminal.Page, entries []*feedhistory.Entry) {
	p.Line("")
	p.Line("  " + terminal.Count(len(entries), "entry", "entries"))
	for _, e := range entries {
		p.Line("")
		showEntry(p, e)
	}
}

func showEntry(p *terminal.Page, e *feedhistory.Entry) {
	title := terminal.Clean(e.Title().Plain())
	if title == "" {
		title = "(no title)"
	}
	p.Line("    " + terminal.Cut(title, terminal.Columns-4))
	when := terminal.Time(e.Updated)
	switch {
	case e.Updated.IsZero() && !e.Published.IsZero():
		when = terminal.Time(e.Published) + " (published)"
	case e.Updated.IsZero():
		when = "(no time)"
	}
	p.Line("      " + when)
	p.Para("      ", "      ", idText(e))
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok && link.Href != e.ID {
		p.Para("      ", "      ", link.Href)
	}
	if e.KeptBy != "" {
		p.Para("      ", "      ", "source: "+e.KeptBy)
	}
}

// idText returns an entry's id, with a remark if the feed gives none.
func idText(e *feedhistory.Entry) string {
	if !e.WeakID {
		return e.ID
	}
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok && link.Href == e.ID {
		return e.ID + " (no id; identified by its link)"
	}
	return e.ID + " (no id; identified by its content)"
}

func showDeleted(p *terminal.Page, deleted []feedhistory.Tombstone) {
	if len(deleted) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + terminal.Count(len(deleted), "deleted entry", "deleted entries"))
	for _, t := range deleted {
		p.Para("    ", "      ", terminal.Time(t.When)+" "+t.Ref)
	}
}

// showNotes shows where the document breaks a rule, and how the parser read it nevertheless.
func showNotes(p *terminal.Page, notes []feedhistory.Note) {
	if len(notes) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + terminal.Count(len(notes), "note", "notes") + " on how it was read")
	for _, n := range notes {
		text := n.Message + " [" + n.Code + "]"
		if n.Line > 0 {
			text = explain.Place(n.Line, n.Column) + ": " + text
		}
		p.Para("    ", "      ", text)
	}
}
