package web

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A timeline is the drawing of a feed's history, in units of its viewBox: bars
// for the entries of each month and, under them, the chain of documents.
type timeline struct {
	Width, Height float64
	Base          float64 // the base of the bars
	Axis          float64 // where the years are written
	Chain, Lane   float64 // the position and the height of the blocks
	Top           float64 // the top of the highest bar
	Marks         []gridline
	Root          bool // whether heights are proportional to square roots
	Bars          []bar
	Blocks        []block
	Ticks         []tick
	Years         []year
	Here          *bar // the period shown; nil if none or all is
	HereSays      string
	Kinds         []string // the kinds of blocks, each once
	Summary       string

	scale scale
}

// Plot returns the maximum height of a bar.
func (t *timeline) Plot() float64 { return t.Base - t.Top }

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
	Kind     string // "archive", "subscription", "complete", "pages", "window", "gap", "past"
	Open     bool   // how much it covers is unknown
	Href     string // the document, or the place on the page with more about it; "" for none
	Says     string
}

// A tick is a year on the axis.
type tick struct {
	X     float64
	Label string // "" for none
}

// A year is a year with entries.
type year struct {
	Year    int
	Entries int64
	Query   string // the query of the list of these entries
	Chosen  bool
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
func newScale(months []mirror.Month, feed *mirror.Feed, left float64) scale {
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
func (s scale) bins(months []mirror.Month) []int64 {
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
func newTimeline(feed *mirror.Feed, months []mirror.Month, documents []*mirror.DocumentRecord, gaps []gapView, list *entriesView) *timeline {
	chain := newChain(feed, documents, gaps)
	left := 0.0
	if chain.openEnd {
		left = 44
	}
	s := newScale(months, feed, left)
	t := &timeline{
		scale: s,
		Width: lineWidth, Top: barsTop, Base: barsTop + barsHeight, Axis: barsTop + barsHeight + 17,
		Chain: barsTop + barsHeight + 30, Lane: laneHeight, Height: barsTop + barsHeight + 30 + laneHeight + 4,
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
		marks[0].Label += "; at the lower line, " + count(half)
	}
	return marks
}

func (t *timeline) drawBars(s scale, months []mirror.Month, list *entriesView) {
	bins := s.bins(months)
	h := newHeights(bins)
	t.Root = h.root
	t.Marks = h.marks(map[int]string{1: " a month", 3: " a quarter", 12: " a year"}[s.step])
	for i, n := range bins {
		if n == 0 {
			continue
		}
		from := s.start.AddDate(0, i*s.step, 0)
		to := from.AddDate(0, s.step, 0)
		x := s.x(from)
		b := bar{
			X: min(x+0.5, lineWidth-2), Width: tenth(max(s.x(to)-x-1, 2)), Height: h.of(n),
			Query: list.period(from, s.step), Says: from.Format("January 2006"), Chosen: list.contains(from, s.step),
		}
		if s.step > 1 {
			b.Says += " to " + to.AddDate(0, 0, -1).Format("January 2006")
		}
		b.Says += ": " + plural(n, "entry", "entries")
		b.Y = t.Base - b.Height
		t.Bars = append(t.Bars, b)
	}
}

// listYears lists the years with entries.
func (t *timeline) listYears(months []mirror.Month, list *entriesView) {
	for _, m := range months {
		if n := len(t.Years); n > 0 && t.Years[n-1].Year == m.Start.Year() {
			t.Years[n-1].Entries += m.Entries
			continue
		}
		first := time.Date(m.Start.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
		t.Years = append(t.Years, year{first.Year(), m.Entries, list.period(first, 12), list.isPeriod(first, 12)})
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
		if year%every == 0 && k.X < lineWidth-30 {
			k.Label = at.Format("2006")
		}
		t.Ticks = append(t.Ticks, k)
	}
}
