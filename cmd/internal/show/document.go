// Package show is how documents, entries and feeds are shown: as text for people, as JSON
// and CSV for programs. It explains errors, gaps and verdicts, with advice.
package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// PrintDocument shows a document, with the names of the backfill methods for its software.
func PrintDocument(p *terminal.Page, d *feedhistory.Document, methods []string) {
	head(p, d, methods)
	p.Line("")
	p.Line("  " + terminal.Count(len(d.Entries), "entry", "entries"))
	for _, e := range d.Entries {
		p.Line("")
		PrintEntry(p, e)
	}
	deleted(p, d.Deleted)
	notes(p, d.Notes)
}

// head shows a document's description of itself.
func head(p *terminal.Page, d *feedhistory.Document, methods []string) {
	p.Para("", "", titled(d.Title))
	p.Line("")
	p.Field("format", FormatText(d.Format))
	p.Field("kind", KindText(d))
	p.Field("flags", FlagText(d))
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
			text = Place(n.Line, n.Column) + ": " + text
		}
		p.Para("    ", "      ", text)
	}
}

// These types are the command's JSON. A value not given by the feed is absent; a list
// is present even if it is empty.
type (
	Document struct {
		URL       string      `json:"url,omitempty"`
		Format    string      `json:"format"`
		Kind      string      `json:"kind"`
		Complete  bool        `json:"complete"`
		Archive   bool        `json:"archive"`
		ID        string      `json:"id,omitempty"`
		Title     string      `json:"title,omitempty"`
		Updated   string      `json:"updated,omitempty"`
		Published string      `json:"published,omitempty"`
		Links     []Link      `json:"links"`
		Entries   []Entry     `json:"entries"`
		Deleted   []Tombstone `json:"deleted"`
		Notes     []Note      `json:"notes"`
		Backfill  []string    `json:"backfill,omitempty"` // the methods --backfill would try
		Coverage  *Coverage   `json:"coverage,omitempty"`
	}
	Coverage struct { // how much of another feed a document declares to have
		Of      string `json:"of,omitempty"`
		Verdict string `json:"verdict"`
		AsOf    string `json:"as_of,omitempty"`
		Gaps    []Gap  `json:"gaps,omitempty"`
	}
	History struct {
		URL       string          `json:"url,omitempty"`
		Kind      string          `json:"kind"`
		Verdict   string          `json:"verdict"`
		Documents int             `json:"documents"`
		Entries   []*publish.Line `json:"entries"`
		Deleted   []Tombstone     `json:"deleted"`
		Gaps      []Gap           `json:"gaps"`

		RecoveredBy string `json:"recovered_by,omitempty"` // a backfill method
	}
	Entry struct { // an entry in inspect and in dry runs; other verbs print publish.Lines
		ID        string `json:"id"`
		WeakID    bool   `json:"weak_id"`
		Updated   string `json:"updated,omitempty"`
		Published string `json:"published,omitempty"`
		Title     string `json:"title,omitempty"`
		Links     []Link `json:"links"`
		Source    string `json:"source,omitempty"` // the reader that has kept it
	}
	Link struct {
		Rel      string `json:"rel"`
		Href     string `json:"href"`
		Type     string `json:"type,omitempty"`
		Title    string `json:"title,omitempty"`
		HrefLang string `json:"hreflang,omitempty"`
		Length   string `json:"length,omitempty"`
	}
	Tombstone struct {
		Ref  string `json:"ref"`
		When string `json:"when,omitempty"`
	}
	Note struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	Gap struct {
		URL     string `json:"url"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
)

// NewDocument returns the record of a document, with the names of the methods for its software.
func NewDocument(d *feedhistory.Document, methods []string) Document {
	j := Document{
		URL: d.URL, Format: d.Format.String(), Kind: d.Kind().String(),
		Complete: d.Complete, Archive: d.Archive,
		ID: d.ID, Title: d.Title, Updated: Time(d.Updated), Published: Time(d.Published),
		Links: newLinks(d.Links), Entries: Each(d.Entries, NewEntry), Deleted: Each(d.Deleted, NewTombstone),
		Notes: Each(d.Notes, func(n feedhistory.Note) Note { return Note{n.Code, n.Message} }), Backfill: methods,
	}
	if c := d.Coverage; c != nil {
		j.Coverage = &Coverage{Of: c.Of, Verdict: c.Verdict.String(), AsOf: Second(c.AsOf), Gaps: Each(c.Gaps, NewGap)}
	}
	return j
}

// NewHistory returns the record of a history.
func NewHistory(r *backfill.Recovery) History {
	h := r.History
	return History{
		URL: FeedOf(h), Kind: h.Kind.String(), Verdict: r.Verdict().String(), Documents: h.Documents, RecoveredBy: r.RecoveredBy,
		Entries: Each(h.Entries, publish.NewLine), Deleted: Each(h.Deleted, NewTombstone), Gaps: Each(h.Gaps, NewGap),
	}
}

// NewEntry returns the record of an entry.
func NewEntry(e *feedhistory.Entry) Entry {
	return Entry{
		ID: e.ID, WeakID: e.WeakID, Updated: Time(e.Updated), Published: Time(e.Published),
		Title: e.Title().Plain(), Links: newLinks(e.Links), Source: e.KeptBy,
	}
}

func newLinks(links feedhistory.Links) []Link {
	return Each(links, func(l feedhistory.Link) Link { return Link(l) })
}

// NewTombstone returns the record of a deletion.
func NewTombstone(t feedhistory.Tombstone) Tombstone {
	return Tombstone{t.Ref, Time(t.When)}
}

// NewGap returns the record of a gap.
func NewGap(g *feedhistory.Gap) Gap {
	message := Detail(g.Err)
	if g.From != "" && g.From != g.URL {
		message += "; linked from " + g.From
	}
	return Gap{g.URL, g.Reason.String(), message}
}

// Time returns a time by RFC 3339, with its zone and fraction of a second; "" for the
// zero time and for a time RFC 3339 cannot express.
func Time(t time.Time) string {
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// Each applies f to each element of a list. The result is never nil.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

// Second returns a time by this machine's clock in UTC and whole seconds; "" for the
// zero time.
func Second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Time(t.UTC().Truncate(time.Second))
}

// Place returns the words for a place in a text.
func Place(line, column int) string { return fmt.Sprintf("line %d, column %d", line, column) }

// formatNames are the names of formats in text for people.
var formatNames = map[feedhistory.Format]string{feedhistory.Atom: "Atom", feedhistory.RSS: "RSS", feedhistory.JSONFeed: "JSON Feed"}

// FormatText returns the usual name of a format.
func FormatText(f feedhistory.Format) string { return cmp.Or(formatNames[f], f.String()) }

// KindText is the name of a document's role in its feed.
func KindText(d *feedhistory.Document) string {
	s := d.Kind().String() + ": "
	switch d.Kind() {
	case feedhistory.Complete:
		s += "this document has every entry of the feed"
	case feedhistory.Archived:
		if _, newer := d.Links.Rel(feedhistory.RelNextArchive); d.Archive || newer {
			s += "this is one of the archive documents of a feed"
		} else {
			s += "this is the newest document of a feed whose older entries are in archives"
		}
	case feedhistory.Paged:
		s += "this is one page of a series"
	default:
		s += "this document has the latest entries; it does not say whether there are older ones"
	}
	if kinds := d.Combines(); len(kinds) > 1 {
		s += " (it has signs of " + strings.Join(Each(kinds, feedhistory.Kind.String), " and ") + " at once; RFC 5005 does not define that)"
	}
	return s
}

// FlagText returns the marks of a document in words.
func FlagText(d *feedhistory.Document) string {
	var flags []string
	if d.Complete {
		flags = append(flags, "complete")
	}
	if d.Archive {
		flags = append(flags, "archive")
	}
	return strings.Join(flags, ", ")
}

// VerdictText is the meaning of a verdict.
func VerdictText(v feedhistory.Verdict) string {
	switch v {
	case feedhistory.Whole:
		return "Every entry the feed says it has is here."
	case feedhistory.Window:
		return "These are the feed's latest entries; it does not say whether there were earlier ones."
	case feedhistory.Lossy:
		return "Every page was read, but pages shift while a feed grows: entries may have slipped through."
	}
	return "Something is missing:"
}

// PrintGap prints a gap, with advice.
func PrintGap(p *terminal.Page, g *feedhistory.Gap) {
	p.Para("  - ", "    ", Address(g.URL))
	if by, ok := strings.CutPrefix(g.From, "source:"); ok {
		if by != "" {
			p.Para("    ", "    ", "requested by "+by)
		}
	} else if g.From != "" && g.From != g.URL {
		p.Para("    ", "    ", "linked from "+Address(g.From))
	}
	p.Para("    ", "    ", g.Reason.String()+": "+Detail(g.Err))
	if g.Document != nil {
		p.Para("    ", "    ", "the readable part is included: "+
			terminal.Count(len(g.Document.Entries), "entry", "entries"))
	}
	p.Para("    ", "    ", "what to do: "+Advice(g))
}
