package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/rivo/uniseg"
)

// Address returns the address of a feed for people: without a password, and without a query
// that seems to have a secret.
func Address(url string) string {
	if path, _, ok := strings.Cut(url, "?"); ok && mirror.NewFeed(url).Private {
		url = path + "?…"
	}
	return terminal.WithoutUser(url)
}

// WithoutSecrets returns a text with … in place of each query in it that seems to have a
// secret, as Address does for one address.
func WithoutSecrets(text string) string {
	var shown strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "?")
		if shown.WriteString(before); !ok {
			return shown.String()
		}
		end := strings.IndexFunc(rest, func(c rune) bool { return c <= ' ' || strings.ContainsRune("\"'<>?", c) })
		if end < 0 {
			end = len(rest)
		}
		query := rest[:end]
		if mirror.NewFeed("?" + query).Private {
			query = "…"
		}
		shown.WriteString("?" + query)
		text = rest[end:]
	}
}

// FeedTitles prints the titles of a list of feeds.
func FeedTitles(p *terminal.Page) {
	if p.Fits(tableWidth + titleWidth) {
		p.Line(row("VERDICT", "ENTRIES", "NEWEST", "POLLED", "NEXT") + "FEED")
	}
}

// The widths of the list's columns but the last, and of the titles in that.
const (
	tableWidth = 50
	titleWidth = 24
)

// FeedRow prints a feed as a line of a list, which ends with its title and its address. Where
// the address does not fit the line, it has the next one. A further line says that the last
// polls failed. On a narrow terminal, the feed is a paragraph.
func FeedRow(p *terminal.Page, f *mirror.Feed, newest, now time.Time) {
	title, address := terminal.Clean(cmp.Or(f.Named, f.Title)), terminal.Clean(Address(f.URL))
	verdict := verdictOf(f)
	if !p.Fits(tableWidth + titleWidth) {
		p.Line(p.Styled(terminal.Cut(cmp.Or(title, address), max(p.Width, titleWidth)), terminal.Strong))
		if title != "" {
			p.Line("  " + address)
		}
		p.Para("  ", "  ", fmt.Sprintf("%s · %s · newest %s · polled %s · next %s", verdict,
			terminal.Count(int(f.Entries), "entry", "entries"), Day(newest), ago(f.Polled, now), nextOf(f, now)))
	} else {
		line := row(verdict, fmt.Sprint(f.Entries), Day(newest), ago(f.Polled, now), nextOf(f, now))
		line = p.Styled(verdict, StyleOf(f.Verdict)) + strings.TrimPrefix(line, verdict)
		switch {
		case title == "":
			p.Line(line + address)
		case p.Width <= 0 || tableWidth+titleWidth+2+len(address) <= p.Width:
			title = terminal.Cut(title, titleWidth)
			p.Line(line + title + strings.Repeat(" ", titleWidth+2-uniseg.StringWidth(title)) + address)
		default:
			p.Line(line + terminal.Cut(title, p.Width-tableWidth))
			p.Line(strings.Repeat(" ", max(2, min(tableWidth, p.Width-len(address)))) + address)
		}
	}
	if f.Failures > 0 {
		p.Para("  - ", "    ", failuresOf(f))
	}
}

// row returns the beginning of a line of the list. An address follows that is never shortened, so
// people can copy it.
func row(verdict, entries, newest, polled, next string) string {
	return fmt.Sprintf("%-12s %8s  %-10s %6s %6s  ", verdict, entries, newest, polled, next)
}

// StyleOf returns the style of a verdict.
func StyleOf(v feedhistory.Verdict) terminal.Style {
	switch v {
	case feedhistory.VerdictWhole:
		return terminal.Good
	case feedhistory.VerdictLossy:
		return terminal.Doubtful
	case feedhistory.VerdictPartial:
		return terminal.Bad
	}
	return ""
}

// verdictOf returns a feed's verdict for the list, with the number of gaps.
func verdictOf(f *mirror.Feed) string {
	if f.Alias != "" {
		return "alias"
	}
	if gaps := len(f.Ledger.Gaps()); gaps > 0 {
		return fmt.Sprintf("%s (%d)", f.Verdict, gaps)
	}
	return f.Verdict.String()
}

// nextOf returns one word for when sync polls a feed next, or why it does not.
func nextOf(f *mirror.Feed, now time.Time) string {
	switch {
	case f.Gone:
		return "gone"
	case f.Importing():
		return "import"
	case IsHarvested(f):
		return "harvest"
	case f.Alias != "":
		return "-"
	case f.Due(now):
		return "due"
	}
	return terminal.Span(f.Next.Sub(now))
}

// failuresOf says how many of a feed's last polls failed, and why the last one did.
func failuresOf(f *mirror.Feed) string {
	return terminal.Count(f.Failures, "poll", "polls") + " failed: " + f.Error
}

// sourceOf returns the names of the methods with a part in a feed's history.
func sourceOf(f *mirror.Feed) string {
	found := backfill.Findings(f)
	return cmp.Or(strings.Join(found.Names(), ", "), f.Source)
}

// PrintFeed shows a feed in full. Older says how to look for older entries; "" for nothing.
func PrintFeed(p *terminal.Page, f *mirror.Feed, newest time.Time, now time.Time, older string) {
	p.Line(p.Styled(terminal.Clean(titled(cmp.Or(f.Named, f.Title))), terminal.Strong))
	p.Line("")
	p.Field("feed", Address(f.URL))
	p.Field("moved to", Address(f.Address))
	p.Field("alias of", Address(f.Alias))
	p.Field("kind", KindName(f.Kind))
	p.Field("source", sourceOf(f))
	p.Field("entries", entriesOf(f, newest))
	if f.Documents > 0 {
		p.Field("archives", archivesOf(f))
	}
	p.Field("changed", stamp(f.Changed, now))
	p.Field("polled", stamp(f.Polled, now))
	switch next := nextOf(f, now); {
	case f.Gone:
		p.Field("next poll", "none: the publisher has withdrawn the feed for good")
	case f.Importing():
		p.Field("next poll", "none: run the same import again first")
	case IsHarvested(f):
		p.Field("next poll", "none: feedhistory harvest keeps it current")
	case f.Alias != "":
		p.Field("next poll", "none: the feed has become another one, which sync polls instead; the entries of this one are kept")
	case next == "due":
		p.Field("next poll", "due")
	default:
		p.Field("next poll", fmt.Sprintf("%s (%s)", terminal.Time(f.Next), terminal.Until(f.Next, now)))
	}
	if f.Failures > 0 {
		p.Field("failed", failuresOf(f))
	}
	if f.Waits(now) {
		p.Field("wait", "its host asks for no requests until "+terminal.Time(f.Wait))
	}
	p.Para("  verdict   "+p.Styled(f.Verdict.String(), StyleOf(f.Verdict))+". ", strings.Repeat(" ", 12), meaning(f))
	p.Command("older", older)
	for _, d := range f.Ledger.Debts() {
		PrintGap(p, d.Gap)
		p.Para("    ", "    ", "closes once "+d.Receipt)
	}
	for _, g := range f.Ledger.Withdrawn() {
		p.Field("withdrawn", fmt.Sprintf("%s, never read; since %s the feed no longer refers to it", Address(g.URL), terminal.Time(g.Found)))
	}
}

// meaning explains a feed's verdict.
func meaning(f *mirror.Feed) string {
	switch {
	case !f.WholeAsOf().IsZero():
		return "These are all entries the server counted on " + terminal.Time(f.WholeAsOf()) + ", and those added by polls since."
	case f.Verdict == feedhistory.VerdictLossy && f.Kind == feedhistory.KindPlain:
		return "Everything the server shows was read, but the feed does not declare its history: entries may have slipped through."
	case f.Verdict != feedhistory.VerdictPartial:
		return VerdictText(f.Verdict)
	case f.Importing():
		return "Its import is not complete."
	case f.Ledger.URL() == "":
		return "The feed could not be read yet."
	}
	return "Something is missing:"
}

// archivesOf says how many archives were read, and as of when the verdict speaks of them.
func archivesOf(f *mirror.Feed) string {
	if f.Ledger.Unverified() {
		return fmt.Sprintf("%d, unverified: the verdict is of an earlier version; polls read them again within 30 days", f.Documents)
	}
	if f.Ledger.Checked().IsZero() {
		return fmt.Sprint(f.Documents)
	}
	return fmt.Sprintf("%d, all read since %s", f.Documents, terminal.Time(f.Ledger.Checked()))
}

func entriesOf(f *mirror.Feed, newest time.Time) string {
	text := fmt.Sprint(f.Entries)
	if f.Deleted > 0 {
		text += fmt.Sprintf(", and %d deleted", f.Deleted)
	}
	if !newest.IsZero() {
		text += "; the newest: " + terminal.Time(newest)
	}
	return text
}

// stamp returns a time, and how long ago it was.
func stamp(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", terminal.Time(t), terminal.Span(now.Sub(t)))
}

// ago returns how long ago a time was, for a table.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return terminal.Span(now.Sub(t))
}

// Feed is a mirrored feed in JSON.
type Feed struct {
	URL        string `json:"url"`
	Address    string `json:"address,omitempty"` // the URL requested by polls, if it is another
	Alias      string `json:"alias,omitempty"`   // the mirrored feed it has become
	Title      string `json:"title,omitempty"`
	Kind       string `json:"kind"`
	Verdict    string `json:"verdict"`
	AsOf       string `json:"as_of,omitempty"` // when the server's count proved the feed whole
	Source     string `json:"source,omitempty"`
	Entries    int64  `json:"entries"`
	Deleted    int64  `json:"deleted"`
	Documents  int64  `json:"documents"`
	Checked    string `json:"archives_as_of,omitempty"` // the time since which each archive has been read
	Unverified bool   `json:"unverified,omitempty"`     // the verdict is of an earlier version, until polls have read the archives again
	Newest     string `json:"newest,omitempty"`
	Changed    string `json:"changed,omitempty"`
	Polled     string `json:"polled,omitempty"`
	NextPoll   string `json:"next_poll,omitempty"`
	Wait       string `json:"wait,omitempty"` // the feed's host asks for no requests until then
	Due        bool   `json:"due,omitempty"`
	Gone       bool   `json:"gone,omitempty"`
	Failures   int    `json:"failures,omitempty"`
	Error      string `json:"error,omitempty"`
	Gaps       []Gap  `json:"gaps"`
}

// NewFeed returns a mirrored feed in JSON, given the time of its newest entry.
func NewFeed(f *mirror.Feed, newest time.Time) Feed {
	j := Feed{
		URL: f.URL, Address: f.Address, Alias: f.Alias, Title: f.Title, Kind: KindName(f.Kind), Verdict: f.Verdict.String(), Source: sourceOf(f),
		Entries: f.Entries, Deleted: f.Deleted, Documents: f.Documents,
		Changed: Second(f.Changed), Polled: Second(f.Polled), NextPoll: Second(f.Next),
		Wait: Second(f.Wait), Due: f.Due(time.Now()), Gone: f.Gone, Failures: f.Failures, Error: f.Error,
		Gaps: Each(f.Ledger.Debts(), newDebt),
	}
	j.Unverified = f.Ledger.Unverified()
	j.AsOf, j.Checked = Second(f.WholeAsOf()), Second(f.Ledger.Checked())
	if !newest.IsZero() {
		j.Newest = Time(newest)
	}
	return j
}

// newDebt returns the record of a gap with its receipt.
func newDebt(d mirror.Debt) Gap {
	g := NewGap(d.Gap)
	g.Until = d.Receipt
	return g
}

// Never is the time of the next poll of a harvested feed, which sync does not poll: most
// collections are not feeds to be polled.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// IsHarvested reports whether harvests keep a feed current, rather than polls.
func IsHarvested(f *mirror.Feed) bool { return f.Next.Equal(Never) }
