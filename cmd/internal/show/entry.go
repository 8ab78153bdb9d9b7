package show

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/rivo/uniseg"
)

// PrintEntry shows the title, time, id and link of an entry.
func PrintEntry(p *terminal.Page, e *feedhistory.Entry) {
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
	if item, _ := togofeed.Item(e); item != nil {
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
	if d := DeletionOf(r); d.Deleted {
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

// Row returns an entry of a feed as one line that fits the terminal: of a long id it has the
// end, after an ellipsis, which the verb entry accepts. Without a terminal, everything is
// whole. The feed is "" where there is only one.
func Row(p *terminal.Page, e *feedhistory.Entry, r *mirror.Record, feed, mark string) string {
	title, id := mark+terminal.Clean(e.Title().Plain()), terminal.Clean(r.ID)
	if title == mark {
		title = mark + terminal.Cut(terminal.Clean(e.Content().Plain()), untitled)
	}
	if feed != "" {
		feed = "  " + terminal.Clean(feed)
	}
	if p.Width > 0 {
		room := p.Width - len("2003-12-13") - 4
		if feed != "" {
			feed = "  " + terminal.Cut(terminal.SiteName(strings.TrimSpace(feed)), room/5)
			room -= uniseg.StringWidth(feed)
		}
		id = terminal.CutStart(id, max(room/3, 6))
		most := max(room-uniseg.StringWidth(id), 6)
		title = terminal.Cut(title, most)
		title += strings.Repeat(" ", max(most-uniseg.StringWidth(title), 0))
	}
	return fmt.Sprintf("%-10s  %s  %s%s", Day(r.Time()), title, id, feed)
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

// Enclosures prints a line for each file of an entry, for downloaders: the file's address,
// type, length in bytes, duration, episode, date and title, with tabs between them. An unknown
// value is empty. It prints only files on the web, and escapes each address as one word for
// xargs and shells.
func Enclosures(p *terminal.Page, e *feedhistory.Entry, at time.Time) error {
	record := publish.NewLine(e)
	duration, episode := extensionOf(record, "itunes:duration"), extensionOf(record, "itunes:episode")
	if episode == "" {
		episode = extensionOf(record, "podcast:episode")
	}
	for _, l := range e.Links {
		if l.Rel != feedhistory.RelEnclosure {
			continue
		}
		if u, err := url.Parse(l.Href); err == nil && terminal.IsWeb(l.Href) {
			p.Line(strings.Join([]string{oneWord.Replace(u.String()), terminal.Clean(l.Type), terminal.Clean(l.Length), terminal.Clean(duration), terminal.Clean(episode), Day(at), terminal.Clean(e.Title().Plain())}, "\t"))
		}
	}
	return p.Err
}

// oneWord escapes the characters between words in xargs and shells.
var oneWord = strings.NewReplacer(" ", "%20", "'", "%27", `"`, "%22", `\`, "%5C", "`", "%60", "$", "%24", ";", "%3B", "(", "%28", ")", "%29")

// extensionOf returns the value of the first extension with a name; "" if there is none.
func extensionOf(r *publish.Line, name string) string {
	for _, x := range r.Extensions {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}

// DeletionOf returns the deletion of an entry no longer part of its feed, with the time of
// its tombstone, else the time when the mirror noticed; the zero value for a live entry.
func DeletionOf(r *mirror.Record) publish.LineDeletion {
	t, ok := r.Deletion()
	if !ok {
		return publish.LineDeletion{}
	}
	return publish.LineDeletion{Deleted: true, When: t.When}
}

// RecordOf returns a mirrored entry as all verbs print it. If the entry is no longer part
// of its feed, the result also has the deletion.
func RecordOf(r *mirror.Record) (*publish.Line, error) {
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	return LineOfRecord(r, e), nil
}

// LineOfRecord returns the line for a mirrored entry and its parsed content.
func LineOfRecord(r *mirror.Record, e *feedhistory.Entry) *publish.Line {
	record := publish.NewLine(e)
	record.Feed, record.Deleted, record.Source = r.Feed, DeletionOf(r), r.Copy.Source
	return record
}

// PrintRecord prints a mirrored entry.
func PrintRecord(w io.Writer, r *mirror.Record) error {
	record, err := RecordOf(r)
	if err != nil {
		return err
	}
	return terminal.WriteJSON(w, record)
}

// DeletionRecord returns the line for the deletion of an entry.
func DeletionRecord(feed string, t feedhistory.Tombstone) *publish.Line {
	return &publish.Line{Feed: feed, EntryJSON: compose.EntryJSON{ID: t.Ref}, Deleted: publish.LineDeletion{Deleted: true, When: Utc(t.When)}}
}

// Utc returns a time in UTC; the zero time stays zero.
func Utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// FeedOf returns the address of a history's feed; "" if it is unknown.
func FeedOf(h *feedhistory.History) string {
	if h.Head == nil {
		return ""
	}
	return AddressOf(h.Head)
}

// AddressOf returns the address of a document's feed: the requested address, or the
// address to which it redirects permanently. A temporary redirect may lead elsewhere
// the next time.
func AddressOf(doc *feedhistory.Document) string {
	return terminal.WithoutUser(cmp.Or(doc.Response.Permanent, doc.Response.Requested, doc.URL))
}

// Lines yields the JSON value of each nonempty line. An error ends the sequence; if a
// line is wrong, the error names the line.
func Lines[T any](r io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))); len(text) > 0 {
				var value T
				if bad := json.Unmarshal(text, &value); bad != nil {
					yield(value, fmt.Errorf("line %d: %w", n, bad))
					return
				}
				if !yield(value, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
		}
	}
}

// tableColumns are the headings of a table of entries.
var tableColumns = []string{"feed", "id", "published", "updated", "title", "link", "authors", "categories", "enclosure", "deleted", "text"}

// PrintTable writes entries as CSV (RFC 4180), with a line of headings.
func PrintTable(w io.Writer, records iter.Seq2[*publish.Line, error]) error {
	table := csv.NewWriter(w)
	table.UseCRLF = true
	err := table.Write(tableColumns)
	for r, e := range records {
		if e != nil {
			return e
		}
		if err == nil {
			err = table.Write(tableRow(r))
		}
	}
	if table.Flush(); err == nil {
		err = table.Error()
	}
	return err
}

func tableRow(r *publish.Line) []string {
	var authors, categories []string
	for _, a := range r.Authors {
		authors = append(authors, a.Name)
	}
	for _, c := range r.Categories {
		categories = append(categories, c.Term)
	}
	text := r.Content.Plain()
	if text == "" {
		text = r.Summary.Plain()
	}
	row := []string{
		r.Feed, r.ID, r.Published, r.Updated, r.Title.Plain(), hrefOf(r, feedhistory.RelAlternate),
		strings.Join(authors, "; "), strings.Join(categories, "; "), hrefOf(r, feedhistory.RelEnclosure), deletedText(r.Deleted), text,
	}
	for i, cell := range row {
		row[i] = Inert(cell)
	}
	return row
}

func deletedText(d publish.LineDeletion) string {
	switch {
	case !d.Deleted:
		return ""
	case d.When.IsZero():
		return "true"
	}
	return d.When.UTC().Format(time.RFC3339Nano)
}

func hrefOf(r *publish.Line, rel string) string {
	for _, l := range r.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// Inert returns a cell no spreadsheet takes for a formula: an apostrophe, which marks
// text, precedes a character that could begin a formula.
func Inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}
