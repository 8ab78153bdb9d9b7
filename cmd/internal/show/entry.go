package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// Entry shows the title, time, id and link of an entry.
func Entry(p *terminal.Page, e *feedhistory.Entry) {
	title := terminal.Clean(titled(e.Title().Plain()))
	if p.Width > 0 { // programs read the whole title
		title = terminal.Cut(title, max(p.Width-4, 16))
	}
	p.Line("    " + title)
	when := terminal.Time(e.Updated)
	switch {
	case e.Updated.IsZero() && !e.Published.IsZero():
		when = terminal.Time(e.Published) + " (published)"
	case e.Updated.IsZero():
		when = "(no time)"
	}
	p.Para("      ", "      ", when)
	p.Para("      ", "      ", idText(e))
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok && link.Href != e.ID {
		p.Para("      ", "      ", link.Href)
	}
	if e.KeptBy != "" {
		p.Para("      ", "      ", "source: "+e.KeptBy)
	}
}

// titled returns a title, or a text in place of an empty one.
func titled(title string) string {
	if terminal.Clean(title) == "" {
		return "(no title)"
	}
	return title
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

// Article shows an entry as text.
func Article(p *terminal.Page, e *feedhistory.Entry, r *mirror.Record) {
	p.Para("", "", titled(e.Title().Plain()))
	p.Line("")
	p.Field("feed", r.Feed)
	p.Field("id", idText(e))
	if item, _ := e.Decode(); item != nil {
		var names []string
		for _, a := range item.Authors {
			names = append(names, a.Name)
		}
		p.Field("by", strings.Join(names, ", "))
	}
	p.Field("source", r.Copy.Source)
	p.Field("published", terminal.Time(e.Published))
	p.Field("updated", terminal.Time(e.Updated))
	for _, link := range e.Links {
		switch link.Rel {
		case feedhistory.RelAlternate:
			p.Field("link", link.Href)
		case feedhistory.RelEnclosure:
			p.Field("file", link.Href)
		}
	}
	if d := schema.DeletionOf(r); d.Deleted {
		p.Field("deleted", terminal.Time(d.When))
	}
	text := e.Content().Plain()
	if strings.TrimSpace(text) == "" {
		text = e.Summary().Plain()
	}
	empty := true // whether the last line was empty
	p.Line("")
	for line := range strings.Lines(text) {
		blank := terminal.Clean(line) == ""
		if !blank || !empty {
			p.Para("", "", line)
		}
		empty = blank
	}
}

// Line returns an entry as one line: the day, the title and, at the end and never
// shortened so people can copy it, its id or address.
func Line(p *terminal.Page, e *feedhistory.Entry, at time.Time, address string) string {
	title := terminal.Clean(e.Title().Plain())
	if title == "" {
		title = terminal.Cut(terminal.Clean(e.Content().Plain()), untitled)
	}
	return fmt.Sprintf("%s  %s  %s", Day(at), p.Title(title), terminal.Clean(address))
}

// untitled is the width of the text shown instead of a missing title.
const untitled = 60

// Day returns the date of a time; "-" if it is zero.
func Day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateOnly)
}
