// Package show is how documents, entries and feeds are shown: as text for people, as JSON
// and CSV for programs. It explains errors, gaps and verdicts, with advice.
package show

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"iter"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/togofeed"
	"github.com/rivo/uniseg"
)

// PrintDocument shows a document. Older says how to look for older entries; "" for nothing.
func PrintDocument(p *terminal.Page, d *feedhistory.Document, older string) {
	head(p, d, older)
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
func head(p *terminal.Page, d *feedhistory.Document, backfill string) {
	p.Para("", "", titled(d.Title))
	p.Line("")
	p.Field("format", FormatText(d.Format))
	p.Field("kind", KindText(d))
	p.Field("flags", FlagText(d))
	p.Field("url", Address(d.URL))
	p.Field("id", d.ID)
	p.Field("updated", terminal.Time(d.Updated))
	p.Field("declares", coverageText(d.Coverage))
	if older, ok := d.Links.Rel(d.Kind().Older()); ok {
		p.Field("older", Address(older.Href))
	}
	p.Command("backfill", backfill)
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
		text := Address(l.Href)
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
		URL       string            `json:"url,omitempty"`
		Format    string            `json:"format"`
		Kind      string            `json:"kind"`
		Complete  bool              `json:"complete"`
		Archive   bool              `json:"archive"`
		ID        string            `json:"id,omitempty"`
		Title     string            `json:"title,omitempty"`
		Updated   string            `json:"updated,omitempty"`
		Published string            `json:"published,omitempty"`
		Links     feedhistory.Links `json:"links"`
		Entries   []Entry           `json:"entries"`
		Deleted   []Tombstone       `json:"deleted"`
		Notes     []Note            `json:"notes"`
		Backfill  []string          `json:"backfill,omitempty"` // the methods --backfill would try
		Coverage  *Coverage         `json:"coverage,omitempty"`
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
		Head      *Head           `json:"head,omitempty"`
		Entries   []*publish.Line `json:"entries"`
		Deleted   []Tombstone     `json:"deleted"`
		Gaps      []Gap           `json:"gaps"`

		RecoveredBy string `json:"recovered_by,omitempty"` // a backfill method
	}
	FirstLine struct { // the first line of a feed's entries
		*publish.Line
		Head *Head `json:"head,omitempty"`
	}
	Head struct { // the description of a feed
		ID       string               `json:"id,omitempty"` // what Atom has for it: in RSS, the URL
		Title    string               `json:"title,omitempty"`
		Subtitle string               `json:"subtitle,omitempty"`
		Language string               `json:"language,omitempty"`
		Icon     string               `json:"icon,omitempty"`
		Authors  []feedhistory.Person `json:"authors,omitempty"`
		Links    feedhistory.Links    `json:"links,omitempty"` // other than those of its history
		XML      string               `json:"xml,omitempty"`   // as Atom, if there are elements beyond these
	}
	Entry struct { // an entry in inspect and in dry runs; other verbs print publish.Lines
		ID        string            `json:"id"`
		WeakID    bool              `json:"weak_id"`
		Updated   string            `json:"updated,omitempty"`
		Published string            `json:"published,omitempty"`
		Title     string            `json:"title,omitempty"`
		Links     feedhistory.Links `json:"links"`
		Source    string            `json:"source,omitempty"` // the reader keeping it
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
		Until   string `json:"until,omitempty"` // the receipt of the debt; "" for a gap that is in no ledger
	}
)

// NewDocument returns the record of a document, with the names of the backfill methods for it.
func NewDocument(d *feedhistory.Document, methods []string) Document {
	j := Document{
		URL: d.URL, Format: string(d.Format), Kind: string(d.Kind()),
		Complete: d.Complete, Archive: d.Archive,
		ID: d.ID, Title: d.Title, Updated: Time(d.Updated), Published: Time(d.Published),
		Links: listed(d.Links), Entries: Each(d.Entries, NewEntry), Deleted: Each(d.Deleted, NewTombstone),
		Notes: Each(d.Notes, func(n feedhistory.Note) Note { return Note{n.Code, n.Message} }), Backfill: methods,
	}
	if c := d.Coverage; c != nil {
		j.Coverage = &Coverage{Of: c.Of, Verdict: c.Verdict.String(), AsOf: Second(c.AsOf), Gaps: Each(c.Gaps, NewGap)}
	}
	return j
}

// NewHead returns the description of a document's feed; nil if there is no document.
func NewHead(d *feedhistory.Document) *Head {
	if d == nil {
		return nil
	}
	h := &Head{
		ID: cmp.Or(d.ID, AddressOf(d)), Title: d.Title, Subtitle: d.Subtitle, Language: d.Language, Icon: d.Icon,
		Links: d.Head().Links,
	}
	if len(d.Authors) != 1 || d.Authors[0] != (feedhistory.Person{Name: d.Title}) { // the name a mirror gives if no author is known
		h.Authors = d.Authors
	}
	if len(d.Extensions()) > 0 {
		h.XML = atomHead(d)
	}
	return h
}

// atomHead returns the head section of a document as Atom; "" if it cannot be written.
func atomHead(d *feedhistory.Document) string {
	var text strings.Builder
	w := compose.NewWriter(&text, feedhistory.FormatAtom, d.Head())
	w.Verbatim = true // publish repairs it
	if w.Close() != nil {
		return ""
	}
	return text.String()
}

// HeadFeed returns a feed with the head section of a document, for Feed.Redacted.
func HeadFeed(url string, d *feedhistory.Document) *mirror.Feed {
	f := mirror.NewFeed(url)
	f.Head = atomHead(d)
	return f
}

// Document returns a document with the description; an empty one without it.
func (h *Head) Document() *feedhistory.Document {
	h = cmp.Or(h, new(Head))
	if d, err := feedhistory.Parse(strings.NewReader(h.XML), h.ID); err == nil {
		return d
	}
	return &feedhistory.Document{ID: h.ID, Title: h.Title, Subtitle: h.Subtitle, Language: h.Language, Icon: h.Icon, Authors: h.Authors, Links: h.Links}
}

// NewHistory returns the record of a history.
func NewHistory(r *backfill.Recovery) History {
	h := r.History
	return History{
		URL: FeedOf(h), Kind: KindName(h.Kind), Verdict: r.Verdict().String(), Documents: h.Documents, RecoveredBy: r.RecoveredBy,
		Head: NewHead(h.Head), Entries: Each(h.Entries, publish.NewLine), Deleted: Each(h.Deleted, NewTombstone), Gaps: Each(h.Gaps, NewGap),
	}
}

// NewEntry returns the record of an entry.
func NewEntry(e *feedhistory.Entry) Entry {
	return Entry{
		ID: e.ID, WeakID: e.WeakID, Updated: Time(e.Updated), Published: Time(e.Published),
		Title: e.Title().Plain(), Links: listed(e.Links), Source: e.KeptBy,
	}
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
	return Gap{URL: g.URL, Reason: string(g.Reason), Message: message}
}

// Time returns a time by RFC 3339, with its zone and fraction of a second; "" for the
// zero time and for a time RFC 3339 cannot express.
func Time(t time.Time) string {
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// listed returns links for JSON, where a list is never null.
func listed(links feedhistory.Links) feedhistory.Links { return append(feedhistory.Links{}, links...) }

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
var formatNames = map[feedhistory.Format]string{feedhistory.FormatAtom: "Atom", feedhistory.FormatRSS: "RSS", feedhistory.FormatJSONFeed: "JSON Feed"}

// FormatText returns the usual name of a format.
func FormatText(f feedhistory.Format) string { return cmp.Or(formatNames[f], string(f)) }

// KindName returns the word for a kind.
func KindName(k feedhistory.Kind) string { return string(cmp.Or(k, feedhistory.KindUnknown)) }

// KindText is the name of a document's role in its feed.
func KindText(d *feedhistory.Document) string {
	s := string(d.Kind()) + ": "
	switch d.Kind() {
	case feedhistory.KindComplete:
		s += "this document has every entry of the feed"
	case feedhistory.KindArchived:
		if _, newer := d.Links.Rel("next-archive"); d.Archive || newer {
			s += "this is one of the archive documents of a feed"
		} else {
			s += "this is the newest document of a feed whose older entries are in archives"
		}
	case feedhistory.KindPaged:
		s += "this is one page of a series"
	default:
		s += "this document has the latest entries; it does not say whether there are older ones"
	}
	if kinds := d.Combines(); len(kinds) > 1 {
		s += " (it has signs of " + strings.Join(Each(kinds, func(k feedhistory.Kind) string { return string(k) }), " and ") + " at once; RFC 5005 does not define that)"
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
	case feedhistory.VerdictWhole:
		return "Every entry the feed says it has is here."
	case feedhistory.VerdictWindow:
		return "These are the feed's latest entries; it does not say whether there were earlier ones."
	case feedhistory.VerdictLossy:
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
	p.Para("    ", "    ", string(g.Reason)+": "+Detail(g.Err))
	if g.Document != nil {
		p.Para("    ", "    ", "the readable part is included: "+
			terminal.Count(len(g.Document.Entries), "entry", "entries"))
	}
	p.Para("    ", "    ", "what to do: "+Advice(g))
}

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
	if link, ok := e.Links.Rel("alternate"); ok && link.Href != e.ID {
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
	if link, ok := e.Links.Rel("alternate"); ok && link.Href == e.ID {
		return e.ID + " (no id; identified by its link)"
	}
	return e.ID + " (no id; identified by its content)"
}

// Article shows an entry as text.
func Article(p *terminal.Page, e *feedhistory.Entry, r *mirror.Record) {
	p.Para("", "", titled(e.Title().Plain()))
	p.Line("")
	p.Field("feed", Address(r.Feed))
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
		case "alternate":
			p.Field("link", link.Href)
		case "enclosure":
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
	return fmt.Sprintf("%s  %s  %s", Day(at), p.Title(titleOf(e)), terminal.Clean(address))
}

// Row returns an entry of a feed as one line that fits the terminal: of a long id it has the
// end, after an ellipsis, which the verb entry accepts. Without a terminal, everything is
// whole. The feed is "" where there is only one.
func Row(p *terminal.Page, e *feedhistory.Entry, r *mirror.Record, feed, mark string) string {
	title, id := mark+titleOf(e), terminal.Clean(r.ID)
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

// titleOf returns the title of an entry, else the beginning of its content.
func titleOf(e *feedhistory.Entry) string {
	const most = 60 // columns of the content
	return cmp.Or(terminal.Clean(e.Title().Plain()), terminal.Cut(terminal.Clean(e.Content().Plain()), most))
}

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
	duration := extensionOf(record, "itunes:duration")
	episode := cmp.Or(extensionOf(record, "itunes:episode"), extensionOf(record, "podcast:episode"))
	for _, f := range e.Enclosures() {
		if u, err := url.Parse(f.URL); err == nil && terminal.IsWeb(f.URL) {
			length, lasts := "", duration
			if f.Length > 0 {
				length = strconv.FormatInt(f.Length, 10)
			}
			if lasts == "" && f.Duration > 0 {
				lasts = strconv.FormatInt(int64(f.Duration.Seconds()), 10)
			}
			p.Line(strings.Join([]string{oneWord.Replace(u.String()), terminal.Clean(f.Type), length, terminal.Clean(lasts), terminal.Clean(episode), Day(at), terminal.Clean(e.Title().Plain())}, "\t"))
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
		r.Feed, r.ID, r.Published, r.Updated, r.Title.Plain(), hrefOf(r, "alternate"),
		strings.Join(authors, "; "), strings.Join(categories, "; "), hrefOf(r, "enclosure"), deletedText(r.Deleted), text,
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
	link, _ := feedhistory.Links(r.Links).Rel(rel)
	return link.Href
}

// Inert returns a cell no spreadsheet takes for a formula: an apostrophe, which marks
// text, precedes a character that could begin a formula.
func Inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}

// senderOf names the authors of an entry, with its feed.
func senderOf(e *feedhistory.Entry, feed string) string {
	var names []string
	for _, a := range e.Authors() {
		if name := terminal.Clean(a.Name); name != "" && name != feed && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return feed
	}
	return strings.Join(names, ", ") + " (" + feed + ")"
}

// listID identifies a feed as a mailing list is (RFC 2919), for the filters of mail programs.
func listID(title, host, url string) string {
	sum := sha256.Sum256([]byte(url))
	name := (&mail.Address{Name: title, Address: "a@b"}).String() // quoted or encoded
	return strings.TrimSuffix(name, "<a@b>") + "<" + hex.EncodeToString(sum[:4]) + "." + host + ".feedhistory.invalid>"
}

// Mail returns an entry as a mail message (RFC 5322), as text and as HTML, and a name for its
// file. The same entry of a feed always has the same name and Message-ID, so a second copy
// replaces the first, or is recognised.
func Mail(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) (name string, message []byte, err error) {
	sum := sha256.Sum256([]byte(r.Feed + "\n" + r.ID))
	key := hex.EncodeToString(sum[:16])
	host := "localhost"
	if u, err := url.Parse(f.URL); err == nil && u.Hostname() != "" {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil { // an address is no domain of a mail
			host = u.Hostname()
		}
	}
	var h mail.Header
	h.SetDate(r.Time())
	h.SetSubject(cmp.Or(titleOf(e), "(no title)"))
	feed := cmp.Or(terminal.Clean(f.Named), terminal.Clean(f.Title), host)
	h.SetAddressList("From", []*mail.Address{{Name: senderOf(e, feed), Address: "feedhistory@" + host}})
	h.SetMessageID(key + "@feedhistory.invalid")
	h.Set("List-Id", listID(feed, host, f.URL))
	h.SetText("X-RSS-Feed", Address(f.URL)) // as rss2email has it, for the same filters
	content := e.Content()
	if content.Body == "" {
		content = e.Summary()
	}
	text, markup := content.Plain(), content.HTML()
	for _, l := range e.Links {
		switch l.Rel {
		case "alternate", "enclosure":
			text += "\n\n" + l.Href
			markup += fmt.Sprintf("\n<p><a href=\"%[1]s\">%[1]s</a></p>", html.EscapeString(l.Href))
		}
	}
	var out bytes.Buffer
	parts, err := mail.CreateInlineWriter(&out, h)
	if err != nil {
		return "", nil, err
	}
	for _, part := range []struct{ kind, body string }{{"text/plain", strings.TrimSpace(text) + "\n"}, {"text/html", markup + "\n"}} {
		var h mail.InlineHeader
		h.SetContentType(part.kind, map[string]string{"charset": "utf-8"})
		w, err := parts.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(w, part.body)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return "", nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%d.%s.feedhistory", max(r.Time().Unix(), 0), key), bytes.ReplaceAll(out.Bytes(), []byte("\r\n"), []byte("\n")), nil // as in files
}
