package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A timeline is the drawing of a feed's history, in units of its viewBox: bars
// for the entries of each month and, under them, the chain of documents.
type timeline struct {
	chart
	Width       float64
	Axis        float64 // where the years are written
	Chain, Lane float64 // the position and the height of the blocks
	Blocks      []block
	Years       []period
	Here        *bar // the period shown; nil if none or all is
	HereSays    string
	Kinds       []string // the kinds of blocks, each once

	scale scale
}

// A chart is bars for the entries of periods.
type chart struct {
	Height    float64
	Base, Top float64 // the base of the bars, and the top of the highest one
	Bars      []bar
	Ticks     []tick
	Marks     []gridline
	Root      bool // whether heights are proportional to square roots
	Summary   string
}

// newChart returns a chart with space below its bars.
func newChart(below float64) chart {
	return chart{Top: barsTop, Base: barsTop + barsHeight, Height: barsTop + barsHeight + below}
}

// Plot returns the maximum height of a bar.
func (c chart) Plot() float64 { return c.Base - c.Top }

// A bar is the entries of some months.
type bar struct {
	X, Y, Width, Height float64
	Query               string // the query of the list of these entries
	Says                string
	Chosen              bool // whether the page shows this list
}

// A gridline is a number of entries at a height.
type gridline struct {
	Y     float64
	Label string // "" for none
}

// A block is a document, several documents, or a gap.
type block struct {
	X, Width float64
	link
	Says string
}

// A tick is a year on the axis.
type tick struct {
	X     float64
	Label string // "" for none
}

const (
	lineWidth  = 960.0
	barsTop    = 34.0
	barsHeight = 110.0
	laneHeight = 16.0
	mostBars   = 320
	leastYears = 1 // minimum span of a timeline
)

// Dates before earliest are implausible, as are future ones: they count for the
// nearest plausible date.
var earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// A scale maps time to positions in the drawing.
type scale struct {
	start, end time.Time
	step       int     // months per bar
	left       float64 // space for a gap before the beginning
}

func (s scale) x(t time.Time) float64 {
	span := s.end.Sub(s.start).Hours()
	share := min(max(t.Sub(s.start).Hours()/span, 0), 1)
	return tenth(s.left + share*(lineWidth-s.left))
}

// newScale returns a scale with room for all months, and the present.
func newScale(months []month, feed *mirror.Feed, left float64) scale {
	now := time.Now()
	if !feed.Polled.IsZero() {
		now = feed.Polled
	}
	s := scale{start: monthOf(now), end: monthOf(now).AddDate(0, 1, 0), step: 1, left: left}
	latest := s.end.AddDate(1, 0, 0)
	if len(months) > 0 {
		s.start = clamp(months[0].Start, earliest, s.start)
		s.end = clamp(months[len(months)-1].Start.AddDate(0, 1, 0), s.end, latest)
	}
	if least := s.end.AddDate(-leastYears, 0, 0); s.start.After(least) {
		s.start = least
	}
	for _, step := range []int{3, 12} {
		if s.months()/s.step <= mostBars {
			break
		}
		s.step = step
		s.start = time.Date(s.start.Year(), (s.start.Month()-1)/time.Month(step)*time.Month(step)+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return s
}

// months returns the number of months in the scale.
func (s scale) months() int {
	return (s.end.Year()-s.start.Year())*12 + int(s.end.Month()) - int(s.start.Month())
}

// bins counts the entries of each bar.
func (s scale) bins(months []month) []int64 {
	bins := make([]int64, (s.months()+s.step-1)/s.step)
	for _, m := range months {
		at := clamp(m.Start, s.start, s.end.AddDate(0, -1, 0))
		bins[((at.Year()-s.start.Year())*12+int(at.Month())-int(s.start.Month()))/s.step] += m.Entries
	}
	return bins
}

// tenth rounds a length to a visible precision.
func tenth(x float64) float64 { return math.Round(10*x) / 10 }

func hundredth(x float64) float64 { return math.Round(100*x) / 100 }

func clamp(t, from, to time.Time) time.Time {
	if t.Before(from) {
		return from
	}
	if t.After(to) {
		return to
	}
	return t
}

// newTimeline draws a feed's history, and marks the entries of a list.
func newTimeline(feed *mirror.Feed, months []month, documents []*mirror.DocumentRecord, gaps []gapView, list *entriesView) *timeline {
	chain := newChain(feed, documents, gaps)
	left := 0.0
	if chain.openEnd {
		left = 44
	}
	s := newScale(months, feed, left)
	t := &timeline{
		scale: s, chart: newChart(30 + laneHeight + 4),
		Width: lineWidth, Axis: barsTop + barsHeight + 17, Chain: barsTop + barsHeight + 30, Lane: laneHeight,
	}
	if list.hits != nil || list.Search != "" || list.Gone {
		months = list.hits
	}
	t.drawBars(s, months, list)
	t.drawTicks(s)
	t.listYears(months, list)
	t.Blocks = chain.draw(s)
	for _, b := range t.Blocks {
		if !slices.Contains(t.Kinds, b.Kind) {
			t.Kinds = append(t.Kinds, b.Kind)
		}
	}
	t.Summary = fmt.Sprintf("%s from %s to %s", plural(feed.Entries, "entry", "entries"),
		s.start.Format("January 2006"), s.end.AddDate(0, 0, -1).Format("January 2006"))
	if n := list.Hits(); n >= 0 {
		t.Summary = plural(n, "entry", "entries") + " of " + t.Summary
	}
	if n := len(slices.DeleteFunc(slices.Clone(gaps), func(g gapView) bool { return g.Todo })); n > 0 {
		t.Summary += ", with " + plural(n, "gap", "gaps")
	}
	return t
}

// here marks the period shown.
func (t *timeline) here(from, to time.Time, says string) {
	x := t.scale.x(from)
	t.Here = &bar{X: min(x, lineWidth-4), Width: tenth(max(t.scale.x(to)-x, 4))}
	t.HereSays = says
}

// bursts is the ratio between the highest bar and most others from which
// heights are proportional to square roots, because a single burst would
// flatten everything else.
const bursts = 6

// A heights maps numbers of entries to heights.
type heights struct {
	most int64
	root bool
}

func newHeights(bins []int64) heights {
	some := slices.DeleteFunc(slices.Clone(bins), func(n int64) bool { return n == 0 })
	if len(some) == 0 {
		return heights{}
	}
	slices.Sort(some)
	h := heights{most: some[len(some)-1]}
	h.root = h.most > bursts*some[len(some)/2]
	return h
}

func (h heights) of(n int64) float64 {
	share := float64(n) / float64(h.most)
	if h.root {
		share = math.Sqrt(share)
	}
	return max(math.Round(barsHeight*share), 2)
}

// bar returns the bar of a period with so many entries.
func (h heights) bar(x, width float64, n int64, period string) bar {
	height := h.of(n)
	return bar{X: x, Width: width, Height: height, Y: barsTop + barsHeight - height, Says: period + ": " + plural(n, "entry", "entries")}
}

// marks labels the highest bar, and about half its height.
func (h heights) marks(unit string) []gridline {
	if h.most == 0 {
		return nil
	}
	if h.most == 1 {
		unit = ""
	}
	at := func(n int64) gridline { return gridline{Y: barsTop + barsHeight - h.of(n)} }
	marks := []gridline{at(h.most)}
	marks[0].Label = plural(h.most, "entry", "entries") + unit
	half := h.most / 2
	if h.root {
		half = h.most / 4
	}
	if half > 0 && half < h.most { // a label of its own would lie on the bars
		marks = append(marks, at(half))
	}
	return marks
}

func (t *timeline) drawBars(s scale, months []month, list *entriesView) {
	bins := s.bins(months)
	h := newHeights(bins)
	t.Root = h.root
	t.Marks = h.marks(map[int]string{1: " in the busiest month", 3: " in the busiest quarter", 12: " in the busiest year"}[s.step])
	for i, n := range bins {
		if n == 0 {
			continue
		}
		from := s.start.AddDate(0, i*s.step, 0)
		to := from.AddDate(0, s.step, 0)
		period := from.Format("January 2006")
		if s.step > 1 {
			period += " to " + to.AddDate(0, 0, -1).Format("January 2006")
		}
		x := s.x(from)
		b := h.bar(min(x+0.5, lineWidth-2), tenth(max(s.x(to)-x-1, 2)), n, period)
		b.Query, b.Chosen = list.period(from, s.step), list.contains(from, s.step)
		t.Bars = append(t.Bars, b)
	}
}

// listYears lists the years with entries.
func (t *timeline) listYears(months []month, list *entriesView) {
	for _, m := range months {
		says := strconv.Itoa(m.Start.Year())
		if n := len(t.Years); n > 0 && t.Years[n-1].Says == says {
			t.Years[n-1].Entries += m.Entries
			continue
		}
		first := time.Date(m.Start.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
		t.Years = append(t.Years, period{says, m.Entries, list.period(first, 12), list.isPeriod(first, 12)})
	}
}

// drawTicks marks the years, and labels as many as there is room for.
func (t *timeline) drawTicks(s scale) {
	years := s.end.Year() - s.start.Year() + 1
	every := 1
	for _, n := range []int{2, 5, 10} {
		if float64(years)/float64(every) > 16 {
			every = n
		}
	}
	for year := s.start.Year(); year <= s.end.Year(); year++ {
		at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if at.Before(s.start) || !at.Before(s.end) {
			continue
		}
		k := tick{X: s.x(at)}
		if year%every == 0 && k.X < lineWidth-36 {
			k.Label = at.Format("2006")
		}
		t.Ticks = append(t.Ticks, k)
	}
}

// A chain is the documents as the timeline shows them: links ordered by their
// places, oldest first.
type chain struct {
	links   []link
	openEnd bool // something older than everything known is missing
}

// A link is a document of a chain, or a gap.
type link struct {
	Kind     string // "archive", "subscription", "complete", "pages", "window", "gap", "todo", "past"
	Open     bool   // how much it covers is unknown
	Href     string // the document, or the place on the page with more about it; "" for none
	what     string // its name, in a few words
	why      string // a sentence about it, or why the gap is there
	from, to time.Time
	entries  int
}

// newChain orders documents and gaps.
func newChain(feed *mirror.Feed, documents []*mirror.DocumentRecord, gaps []gapView) *chain {
	c := &chain{}
	before := map[string][]link{} // gaps by the document after them
	var loose []link              // gaps without such a document
	for _, g := range gaps {
		l := link{Kind: "gap", Href: "#gap-" + strconv.Itoa(g.Number), what: g.What, why: g.Message, from: g.Found, to: g.Found}
		if g.Todo {
			l.Kind, l.Href, l.why = "todo", "", "It is still to be read."
		}
		if l.Open = g.Reason == feedhistory.ReasonMissedWindow; !l.Open && g.From != "" {
			before[g.From] = append(before[g.From], l)
		} else {
			loose = append(loose, l)
		}
	}
	for _, d := range slices.Backward(documents) {
		found := false
		for _, name := range d.Names {
			c.links = append(c.links, before[name]...)
			found = found || len(before[name]) > 0
			delete(before, name)
		}
		c.openEnd = c.openEnd || found && len(c.links) == 1
		c.links = append(c.links, link{
			Kind: "archive", Href: webLink(d.URL), what: "Archive " + tail(d.URL),
			why:  "Its entries do not change, so it was read only once.",
			from: d.Oldest, to: d.Newest, entries: d.Entries,
		})
	}
	c.openEnd = c.openEnd || len(documents) == 0 && len(before) > 0
	for _, gap := range gaps { // next to the subscription document
		c.links = append(c.links, before[gap.From]...)
		delete(before, gap.From)
	}
	if end := subscribed(feed); end.Kind == "window" && len(c.links) == 0 {
		c.openEnd = true
		c.links = append([]link{past, end}, loose...)
	} else {
		c.links = append(append(c.links, loose...), end)
	}
	if c.openEnd && isGap(c.links[0]) {
		c.links[0].Open = true
	}
	return c
}

// past is the history of a feed with only its latest entries, before it was
// first read.
var past = link{
	Kind: "past", Open: true, what: "What came before",
	why: "The feed does not say whether there was anything, so it may be missing.",
}

// subscribed returns the last link of the chain.
func subscribed(feed *mirror.Feed) link {
	l := link{Href: webLink(feed.URL), to: feed.Polled}
	switch feed.Kind {
	case feedhistory.KindComplete:
		l.Kind, l.what, l.why = "complete", "Complete document", "It has every entry of the feed."
	case feedhistory.KindPaged:
		l.Kind, l.what, l.why = "pages", "Pages", "They shift as the feed grows, so entries may slip through."
	case feedhistory.KindArchived:
		l.Kind, l.what, l.why = "subscription", "Subscription document", "It has the latest entries, and leads to the archives."
	default:
		l.Kind, l.what, l.why = "window", "The feed's one document", "It shows only the latest entries. Older ones are here because they were seen before."
	}
	return l
}

const (
	leastBlock = 5.0
	leastGap   = 12.0
	endBlock   = 26.0 // of the subscription document, whose span is unknown
	blockSpace = 1.5
)

// draw places the chain on a scale. Each link begins where the previous one
// ends; archives too narrow to be seen share a block.
func (c *chain) draw(s scale) []block {
	var blocks []block
	at, limit := s.left, lineWidth-endBlock
	if c.openEnd {
		at = 0
	}
	for i, l := range c.links {
		from, to, least := at, lineWidth, endBlock
		afterArchive := i > 0 && c.links[i-1].Kind == "archive"
		switch {
		case l.Kind == "past":
			from, to, least = 0, s.left-blockSpace, leastGap
		case l.Kind == "window" && i > 0 && c.links[i-1].Kind == "past": // the entries seen
			from = s.left
		case l.Kind == "window":
			from = limit
		case isGap(l) && c.links[0].Kind == "past": // among these
			from = min(max(s.left, s.x(l.from)-leastGap), limit)
			to, least = from, leastGap
		case isGap(l):
			if from, to, least = max(at, s.x(l.from)), at, leastGap; i == 0 || afterArchive {
				from = at
			}
			if next := c.next(i); !next.IsZero() {
				to = s.x(next) - blockSpace
			}
		case l.Kind == "archive":
			if to, least = min(s.x(l.to), limit), leastBlock; !afterArchive {
				from = max(at, s.x(l.from))
			}
		}
		if last := limit - least; isGap(l) || l.Kind == "archive" {
			from = min(from, last)
		}
		blocks = append(blocks, block{tenth(from), tenth(max(to-from, least)), l, l.says()})
		at = min(from+max(to-from, least)+blockSpace, limit)
	}
	return crowded(blocks)
}

// next returns when the first archive after a gap begins; the zero time if the
// gap is not directly followed by an archive.
func (c *chain) next(i int) time.Time {
	if i+1 < len(c.links) && c.links[i+1].Kind == "archive" {
		return c.links[i+1].from
	}
	return time.Time{}
}

// mostBlocks is the maximum number of archives to draw one by one.
const mostBlocks = 150

// crowded joins neighbouring archives if there are too many.
func crowded(blocks []block) []block {
	group := (len(blocks) + mostBlocks - 1) / mostBlocks
	if group < 2 {
		return blocks
	}
	var joined []block
	for i := 0; i < len(blocks); {
		n := 1
		for n < group && i+n < len(blocks) && blocks[i].Kind == "archive" && blocks[i+n].Kind == "archive" {
			n++
		}
		b := blocks[i]
		if n > 1 {
			entries, last := 0, blocks[i+n-1]
			for _, one := range blocks[i : i+n] {
				entries += one.entries
			}
			b.Width = last.X + last.Width - b.X
			b.Href = ""
			b.Says = plural(n, "archive", "archives") + " with " + plural(entries, "entry", "entries") +
				span(b.from, last.to)
		}
		joined = append(joined, b)
		i += n
	}
	return joined
}

func isGap(l link) bool { return l.Kind == "gap" || l.Kind == "todo" }

// says describes a link in words.
func (l link) says() string {
	text := l.what
	if isGap(l) {
		text += ": " + l.why
		if l.Open {
			text = strings.TrimSuffix(text, ".") + ". Nobody knows how much is missing."
		}
		return text
	}
	if l.entries > 0 {
		text += ", " + plural(l.entries, "entry", "entries")
	}
	if l.Kind == "archive" {
		text += span(l.from, l.to)
	}
	return text + ". " + l.why
}

// span returns a period in words; "" if it is unknown.
func span(from, to time.Time) string {
	a, b := from.UTC().Format("2 Jan 2006"), to.UTC().Format("2 Jan 2006")
	switch {
	case from.IsZero() || to.IsZero():
		return ""
	case a == b:
		return ", " + a
	}
	return ", " + a + " – " + b
}

// A strip is a small timeline above an entry, which shows the feed's history
// and the entry's place in it.
type strip struct {
	Path     string  // the bars of all entries, as an SVG path
	At       float64 // the entry's position in percent
	From, To string  // the first and the last year
	Says     string  // the entry's place in words
	List     string  // the URL of the list of the same month

	Go            string // the URL of a month
	Month, Months int    // the number of the entry's month, and the last one
	First         int    // the month of the year in which they begin; January is 0
}

// stripPath returns the bars of a strip as an SVG path, in units of its viewBox.
func stripPath(bins []int64) string {
	h := newHeights(bins)
	width := lineWidth / float64(len(bins))
	var path strings.Builder
	for i, n := range bins {
		if n > 0 {
			height := max(tenth(h.of(n)*stripHeight/barsHeight), 1)
			fmt.Fprintf(&path, "M%g %gh%gv%gh-%[3]gz", tenth(float64(i)*width), tenth(stripHeight-height), math.Max(tenth(width*.8), .5), height)
		}
	}
	return path.String()
}

// stripHeight is the height of the highest bar of a strip, whose width is lineWidth.
const stripHeight = 30.0

// mostPlaced is the maximum number of entries to count in order to find an
// entry's number.
const mostPlaced = 500

// stripOf returns the strip of an entry; nil if there is nothing to show around it.
func (s *Server) stripOf(ctx context.Context, feed *mirror.Feed, record *mirror.Record) (*strip, error) {
	f, err := s.feeds.figuresOf(ctx, feed)
	if err != nil || record.Time().IsZero() || feed.Entries < 2 || len(f.months) == 0 {
		return nil, err
	}
	scale := newScale(f.months, feed, 0)
	at := s.at("/feeds/" + republish.Name(feed.URL))
	p := &strip{
		Path: stripPath(scale.bins(f.months)), From: scale.start.Format("2006"), To: scale.end.AddDate(0, 0, -1).Format("2006"),
		List: at + "?month=" + monthOf(record.Time()).Format("2006-01") + "#entries", Go: at + "/month", Months: scale.months() - 1, First: int(scale.start.Month()) - 1,
	}
	x := scale.x(record.Time())
	p.At, p.Month = tenth(100*x/lineWidth), min(int(x/lineWidth*float64(p.Months+1)), p.Months)
	n, all, err := s.feeds.placeOf(ctx, record, f)
	if p.Says = record.Time().UTC().Format("January 2006"); n > 0 {
		p.Says = "Entry " + count(n) + " of " + count(all) + ", " + p.Says
	}
	return p, err
}

// showMonth leads to the first entry from a month of the strip on, which counts the months
// of the feed.
func (s *Server) showMonth(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	f, err := s.feeds.figuresOf(r.Context(), feed)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(r.FormValue("month"))
	since := newScale(f.months, feed, 0).start.AddDate(0, min(max(n, 0), 12*1000), 0)
	record, err := lastOf(r.Context(), s.store, mirror.Query{Feed: feed.URL, Since: since, Reverse: true, Limit: 1})
	if record == nil && err == nil {
		record, err = lastOf(r.Context(), s.store, mirror.Query{Feed: feed.URL, Until: since, Limit: 1})
	}
	switch {
	case err != nil:
		return err
	case record == nil:
		return mirror.ErrNotFound
	}
	return seeOther(s.at("/feeds/" + republish.Name(feed.URL) + "/entry" + queryOf("id", record.ID)))
}

// placeOf returns the number of an entry among all entries of the feed, the
// oldest being 1. It returns zero if the entry is not one of them, or if too
// many are in the same month.
func (d *directory) placeOf(ctx context.Context, r *mirror.Record, f figures) (n, all int64, err error) {
	month := monthOf(r.Time())
	for _, m := range f.months {
		if all += m.Entries; m.Start.Before(month) {
			n += m.Entries
		} else if m.Start.Equal(month) && m.Entries > mostPlaced {
			return 0, 0, nil
		}
	}
	if r.State != mirror.Live {
		return 0, 0, nil
	}
	query := mirror.Query{Feed: r.Feed, Since: month, Until: month.AddDate(0, 1, 0), Reverse: true}
	for other, err := range d.store.Entries(ctx, query) {
		if err != nil {
			return 0, 0, err
		}
		if n++; other.ID == r.ID {
			return n, all, nil
		}
	}
	return 0, 0, nil // it has just been changed
}

// timeline returns the drawing of a feed, with the entries of a list marked in it.
// It is cached, because it rarely changes and is as large as the rest of the
// page.
func (s *Server) timeline(ctx context.Context, v *feedView, f figures, list *entriesView) (template.HTML, error) {
	key := fmt.Sprintf("%s\n%d %d\n%s\n%s", v.URL, v.Commits, v.Feed.Changed.UnixNano(), list.Newest, list.Here())
	if drawn, ok := s.feeds.timelines.Get(key); ok {
		return drawn, nil
	}
	documents, err := s.feeds.documentsOf(ctx, v.Feed)
	if err != nil {
		return "", err
	}
	t := newTimeline(v.Feed, f.months, documents, v.Gaps, list)
	if n := len(list.Items); n > 0 {
		from, to := list.Items[n-1].Time, list.Items[0].Time
		if list.Oldest {
			from, to = to, from
		}
		t.here(from, to, list.Here())
	}
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, "timeline.html", t); err != nil {
		return "", err
	}
	drawn := template.HTML(b.String()) // written by a template
	s.feeds.timelines.Put(key, drawn)
	return drawn, nil
}

// documentsOf returns a feed's documents, as far as timelines need them.
func (d *directory) documentsOf(ctx context.Context, feed *mirror.Feed) ([]*mirror.DocumentRecord, error) {
	return d.documents.of(feed, func() (list []*mirror.DocumentRecord, err error) {
		for doc, err := range d.store.Documents(ctx, feed.URL) {
			if err != nil {
				return nil, err
			}
			list = append(list, &mirror.DocumentRecord{URL: doc.URL, Names: doc.Names, Entries: doc.Entries, Oldest: doc.Oldest, Newest: doc.Newest})
		}
		return list, nil
	})
}
