package web

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A timeline is the drawing of a feed's history, in units of its viewBox: bars
// for the entries of each month and, under them, the chain of documents.
type timeline struct {
	Width, Height float64
	Base          float64 // where the bars stand
	Axis          float64 // where the years are written
	Chain, Lane   float64 // where the blocks are, and how high
	Top           float64 // of the highest bar
	Most          string  // what the highest bar stands for
	Bars          []bar
	Blocks        []block
	Years         []tick
	Kinds         []string // of the blocks, each once
	Summary       string
}

// Plot is how high the highest bar is.
func (t *timeline) Plot() float64 { return t.Base - t.Top }

// A bar stands for the entries of some months.
type bar struct {
	X, Y, Width, Height float64
	Query               string // of the list of these entries
	Says                string
}

// A block is a document, or several, or a gap.
type block struct {
	X, Width float64
	Kind     string // "archive", "subscription", "complete", "pages", "window", "gap"
	Href     string // the document or the place of the page that says more; "" for none
	Says     string
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
	leastYears = 1 // that a timeline spans
)

// The dates that are believed: others count with the first or the last of them.
var earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// A scale maps time to the drawing.
type scale struct {
	start, end time.Time
	step       int     // months of a bar
	left       float64 // what is left free for a gap before the beginning
}

func (s scale) x(t time.Time) float64 {
	span := s.end.Sub(s.start).Hours()
	share := min(max(t.Sub(s.start).Hours()/span, 0), 1)
	return math.Round(10*(s.left+share*(lineWidth-s.left))) / 10
}

// newScale returns the scale that has room for all months, and the present.
func newScale(months []sqlstore.Month, feed *mirror.Feed, left float64) scale {
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

// months returns how many months the scale has.
func (s scale) months() int {
	return (s.end.Year()-s.start.Year())*12 + int(s.end.Month()) - int(s.start.Month())
}

func clamp(t, from, to time.Time) time.Time {
	if t.Before(from) {
		return from
	}
	if t.After(to) {
		return to
	}
	return t
}

// newTimeline draws a feed's history.
func newTimeline(feed *mirror.Feed, months []sqlstore.Month, documents []*mirror.Document, gaps []gapView) *timeline {
	chain := newChain(feed, documents, gaps)
	left := 0.0
	if chain.openEnd {
		left = 44
	}
	s := newScale(months, feed, left)
	t := &timeline{
		Width: lineWidth, Top: barsTop, Base: barsTop + barsHeight, Axis: barsTop + barsHeight + 17,
		Chain: barsTop + barsHeight + 30, Lane: laneHeight, Height: barsTop + barsHeight + 30 + laneHeight + 4,
	}
	t.drawBars(s, months)
	t.drawYears(s)
	t.Blocks = chain.draw(s)
	for _, b := range t.Blocks {
		if !slices.Contains(t.Kinds, b.Kind) {
			t.Kinds = append(t.Kinds, b.Kind)
		}
	}
	t.Summary = fmt.Sprintf("%s from %s to %s", plural(feed.Entries, "entry", "entries"),
		s.start.Format("January 2006"), s.end.AddDate(0, 0, -1).Format("January 2006"))
	if n := len(gaps); n > 0 {
		t.Summary += ", with " + plural(n, "gap", "gaps")
	}
	return t
}

func (t *timeline) drawBars(s scale, months []sqlstore.Month) {
	bins := make([]int64, (s.months()+s.step-1)/s.step)
	most := int64(0)
	for _, m := range months {
		at := clamp(m.Start, s.start, s.end.AddDate(0, -1, 0))
		i := ((at.Year()-s.start.Year())*12 + int(at.Month()) - int(s.start.Month())) / s.step
		bins[i] += m.Entries
		most = max(most, bins[i])
	}
	for i, n := range bins {
		if n == 0 {
			continue
		}
		from := s.start.AddDate(0, i*s.step, 0)
		to := from.AddDate(0, s.step, 0)
		x := s.x(from)
		b := bar{
			X: min(x+0.5, lineWidth-2), Width: max(s.x(to)-x-1, 2), Height: max(math.Round(barsHeight*float64(n)/float64(most)), 2),
			Query: "?month=" + from.Format("2006-01"), Says: from.Format("January 2006"),
		}
		if s.step > 1 {
			b.Query += fmt.Sprintf("&span=%d", s.step)
			b.Says += " to " + to.AddDate(0, 0, -1).Format("January 2006")
		}
		b.Says += ": " + plural(n, "entry", "entries")
		b.Y = t.Base - b.Height
		t.Bars = append(t.Bars, b)
	}
	if most > 0 {
		t.Most = plural(most, "entry", "entries") + map[int]string{1: " a month", 3: " a quarter", 12: " a year"}[s.step]
	}
}

// drawYears marks the years, and names as many as there is room for.
func (t *timeline) drawYears(s scale) {
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
		t.Years = append(t.Years, k)
	}
}
