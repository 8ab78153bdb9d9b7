package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// An inspectCommand is the verb inspect.
type inspectCommand struct {
	Source string `arg:"" name:"URL|FILE|-" help:"The document: a URL, a file, or - for standard input."`
	Base   string `placeholder:"URL" help:"URL against which relative references in a file resolve."`
	JSON   bool   `name:"json" help:"Print JSON Lines (one object a line): the document."`

	networkFlags
	privateFlags
}

// Help returns the text of --help that precedes the flags.
func (c *inspectCommand) Help() string {
	return "If the document is damaged, inspect shows the part before the damage, says on standard error what is wrong, and exits with status 1."
}

// Run shows the document.
func (c *inspectCommand) Run(w *world) error {
	if c.Base != "" {
		if u, err := url.Parse(c.Base); err != nil || !u.IsAbs() {
			return usageError("--base: " + c.Base + " is not an absolute URL")
		}
	}
	doc, err := w.document(c.Source, c.Base)
	if doc != nil {
		if err := c.show(w, doc); err != nil {
			return err
		}
	}
	var usage usageError
	switch {
	case err == nil, errors.As(err, &usage):
		return err
	case doc != nil:
		w.Say(failure(c.Source, err).Error())
		w.Say("the document is damaged; the output is the part before the damage")
		return statusError(exitFailed)
	}
	return failure(c.Source, err)
}

func (c *inspectCommand) show(w *world, doc *feedhistory.Document) error {
	if c.JSON {
		return printLine(w.stdout, jsonInspected{documentJSON(doc), applicable(doc)})
	}
	p := newPage(w.stdout)
	p.head(doc)
	p.entries(doc.Entries)
	p.deleted(doc.Deleted)
	p.notes(doc.Notes)
	return p.Err
}

// head shows what a document says about itself.
func (p *page) head(d *feedhistory.Document) {
	title := d.Title
	if clean(title) == "" {
		title = "(no title)"
	}
	p.Para("", "", title)
	p.Line("")
	p.Field("format", formatText(d.Format))
	p.Field("kind", kindText(d))
	p.Field("flags", flagText(d))
	p.Field("url", d.URL)
	p.Field("id", d.ID)
	p.Field("updated", timeText(d.Updated))
	if older, ok := d.Older(); ok {
		p.Field("older", older.Href)
	}
	if names := applicable(d); len(names) > 0 {
		p.Field("backfill", strings.Join(names, ", ")+": may have older entries (fetch --backfill)")
	}
	if len(d.Links) > 0 {
		p.Line("")
		p.Line("  links")
		p.links(d.Links)
	}
}

func (p *page) links(links feedhistory.Links) {
	width := 0
	for _, l := range links {
		width = max(width, len(clean(l.Rel)))
	}
	width = min(width, 14)
	for _, l := range links {
		rel := clean(l.Rel)
		rel += strings.Repeat(" ", max(0, width-len(rel)))
		text := l.Href
		if l.Type != "" {
			text += " (" + l.Type + ")"
		}
		p.Para("    "+rel+"  ", strings.Repeat(" ", width+6), text)
	}
}

// entries shows the title, time, id and link of each entry.
func (p *page) entries(entries []*feedhistory.Entry) {
	p.Line("")
	p.Line("  " + count(len(entries), "entry", "entries"))
	for _, e := range entries {
		p.Line("")
		p.entry(e)
	}
}

func (p *page) entry(e *feedhistory.Entry) {
	title := clean(e.Title().Plain())
	if title == "" {
		title = "(no title)"
	}
	p.Line("    " + cut(title, columns-4))
	when := timeText(e.Updated)
	switch {
	case e.Updated.IsZero() && !e.Published.IsZero():
		when = timeText(e.Published) + " (published)"
	case e.Updated.IsZero():
		when = "(no time)"
	}
	p.Line("      " + when)
	p.Para("      ", "      ", idText(e))
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok && link.Href != e.ID {
		p.Para("      ", "      ", link.Href)
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

func (p *page) deleted(deleted []feedhistory.Tombstone) {
	if len(deleted) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + count(len(deleted), "deleted entry", "deleted entries"))
	for _, t := range deleted {
		p.Para("    ", "      ", timeText(t.When)+" "+t.Ref)
	}
}

// notes shows where the document breaks a rule, and how the parser read it nevertheless.
func (p *page) notes(notes []feedhistory.Note) {
	if len(notes) == 0 {
		return
	}
	p.Line("")
	p.Line("  " + count(len(notes), "note", "notes") + " on how it was read")
	for _, n := range notes {
		text := n.Message + " [" + n.Code + "]"
		if n.Line > 0 {
			text = place(n.Line, n.Column) + ": " + text
		}
		p.Para("    ", "      ", text)
	}
}
