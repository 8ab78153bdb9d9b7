package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// An overviewPage shows all feeds together.
type overviewPage struct {
	Feeds, Unread              int64
	Entries, Deleted, Archives int64
	Gaps, Gapped               int64 // the number of gaps, and of feeds with gaps
	Chart                      chart // of years; positions and widths are percentages
	Verdicts, Kinds            []share
	Bytes                      int64 // bytes of entries and of the records of documents
	Uncounted                  int64 // the number of feeds whose size is unknown
	Largest                    []large
}

// Size returns the size of everything stored.
func (p *overviewPage) Size() string {
	return cmp.Or(sizeText(strconv.FormatInt(p.Bytes, 10)), "nothing")
}

// A share is a part of all feeds.
type share struct {
	Key      any // a Verdict or a Kind
	Feeds    int64
	X, Width float64 // percent of all feeds
}

// Percent returns the share in words.
func (s share) Percent() string {
	if s.Width > 0 && s.Width < 1 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", s.Width)
}

// A large is one of the largest feeds.
type large struct {
	Name, Title, Size string
	Entries           int64
	Percent           float64 // percent of the largest feed
	bytes             int64
}

const mostLargest = 10

// showOverview shows the overview of all feeds.
func (s *Server) showOverview(w http.ResponseWriter, r *http.Request) error {
	p, err := s.overview(r.Context())
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "overview", "Overview", p)
}

func (s *Server) overview(ctx context.Context) (*overviewPage, error) {
	s.feeds.summing.Lock()
	defer s.feeds.summing.Unlock()
	p := &overviewPage{}
	verdicts, kinds, years := map[feedhistory.Verdict]int64{}, map[feedhistory.Kind]int64{}, map[int]int64{}
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		p.add(feed)
		if !isFresh(feed) {
			verdicts[feed.Verdict]++
			kinds[feed.Kind]++
		}
		counts, err := s.feeds.yearsOf(ctx, feed)
		if err != nil {
			return nil, err
		}
		for year, n := range counts {
			years[year] += n
		}
	}
	p.Verdicts = shares(verdicts, p.Feeds-p.Unread, feedhistory.VerdictWhole, feedhistory.VerdictWindow, feedhistory.VerdictLossy, feedhistory.VerdictPartial)
	p.Kinds = shares(kinds, p.Feeds-p.Unread, feedhistory.KindComplete, feedhistory.KindArchived, feedhistory.KindPaged, feedhistory.KindPlain)
	p.Chart = newYearChart(years, s.now().UTC().Year())
	for i := range p.Largest {
		p.Largest[i].Percent = tenth(100 * float64(p.Largest[i].bytes) / float64(p.Largest[0].bytes))
	}
	return p, nil
}

// add adds a feed to the counts.
func (p *overviewPage) add(feed *mirror.Feed) {
	p.Feeds++
	p.Entries += feed.Entries
	p.Deleted += feed.Deleted
	p.Archives += feed.Documents
	if isFresh(feed) {
		p.Unread++
		return
	}
	if n := int64(len(feed.Ledger.Gaps())); n > 0 {
		p.Gaps += n
		p.Gapped++
	}
	bytes := feed.Size()
	p.Bytes += bytes
	if bytes == 0 {
		if feed.Entries > 0 {
			p.Uncounted++
		}
		return
	}
	l := large{republish.Name(feed.URL), titleOf(feed), sizeText(strconv.FormatInt(bytes, 10)), feed.Entries, 0, bytes}
	at, _ := slices.BinarySearchFunc(p.Largest, l, func(a, b large) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.Name, b.Name))
	})
	if at < mostLargest {
		p.Largest = slices.Insert(p.Largest, at, l)
		p.Largest = p.Largest[:min(len(p.Largest), mostLargest)]
	}
}

// shares divides all feeds by a key, and leaves out keys without feeds.
func shares[K comparable](counts map[K]int64, all int64, keys ...K) (list []share) {
	at := int64(0)
	for _, key := range keys {
		if n := counts[key]; n > 0 {
			list = append(list, share{Key: key, Feeds: n, X: percent(at, all), Width: percent(n, all)})
			at += n
		}
	}
	return list
}

func percent(n, all int64) float64 { return tenth(100 * float64(n) / float64(all)) }

// mostYearLabels is the maximum number of labelled years to fit on a phone.
const mostYearLabels = 7

// newYearChart draws the years from the first one with entries to the present.
// Implausible dates count for the first or the last year.
func newYearChart(years map[int]int64, now int) chart {
	c := newChart(24)
	counts := map[int]int64{}
	first, last, total := now, now, int64(0)
	for year, n := range years {
		year = min(max(year, earliest.Year()), now+1)
		counts[year] += n
		first, last, total = min(first, year), max(last, year), total+n
	}
	if total == 0 {
		return c
	}
	bins := make([]int64, last-first+1)
	for year, n := range counts {
		bins[year-first] = n
	}
	h := newHeights(bins)
	c.Root, c.Marks = h.root, h.marks(" in the busiest year")
	c.Summary = fmt.Sprintf("%s from %d to %d", plural(total, "entry", "entries"), first, last)
	width := 100 / float64(len(bins))
	every := (len(bins) + mostYearLabels - 1) / mostYearLabels
	for i, n := range bins {
		year, x := first+i, float64(i)*width
		k := tick{X: hundredth(x)}
		if i%every == 0 && i <= len(bins)-max(every/2, 1) {
			k.Label = strconv.Itoa(year)
		}
		c.Ticks = append(c.Ticks, k)
		if n == 0 {
			continue
		}
		b := h.bar(hundredth(x+width*.1), hundredth(width*.8), n, strconv.Itoa(year))
		b.Query = fmt.Sprintf("?month=%04d-01&span=12", year)
		c.Bars = append(c.Bars, b)
	}
	return c
}
