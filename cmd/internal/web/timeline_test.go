package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Whatever dates a feed has, everything is drawn in its place.
func TestTimeline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		when := rapid.Custom(func(t *rapid.T) time.Time {
			if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
				return time.Time{}
			}
			return time.Date(rapid.OneOf(rapid.IntRange(1995, 2026), rapid.IntRange(1, 9999)).Draw(t, "year"), 1, 1+rapid.IntRange(0, 364).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		})
		feed := &mirror.Feed{
			URL: "https://example.org/", Polled: when.Draw(t, "polled"),
			Kind: rapid.SampledFrom([]feedhistory.Kind{feedhistory.KindUnknown, feedhistory.KindPlain, feedhistory.KindComplete, feedhistory.KindPaged, feedhistory.KindArchived}).Draw(t, "kind"),
		}
		var documents []*mirror.DocumentRecord
		for i := range rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(150, 320)).Draw(t, "documents") {
			name := fmt.Sprintf("https://example.org/%d", i)
			documents = append(documents, &mirror.DocumentRecord{URL: name, Names: []string{name}, Oldest: when.Draw(t, "oldest"), Newest: when.Draw(t, "newest")})
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "gaps") {
			feed.Ledger.Add(&feedhistory.Gap{
				URL: "https://example.org/gap", From: fmt.Sprintf("https://example.org/%d", i*i), Found: when.Draw(t, "found"),
				Reason: rapid.SampledFrom([]feedhistory.Reason{feedhistory.ReasonStatus, feedhistory.ReasonMalformed, feedhistory.ReasonLoop, feedhistory.ReasonMissedWindow}).Draw(t, "reason"),
			})
		}
		var months []month
		total := int64(0)
		at := rapid.IntRange(1, 9000).Draw(t, "first")
		for range rapid.IntRange(0, 50).Draw(t, "months") {
			m := month{Start: time.Date(at/12+rapid.SampledFrom([]int{1, 1960, 2000}).Draw(t, "era"), time.Month(at%12+1), 1, 0, 0, 0, 0, time.UTC), Entries: 3}
			if len(months) > 0 && !m.Start.After(months[len(months)-1].Start) {
				continue
			}
			months = append(months, m)
			at += rapid.IntRange(1, 30).Draw(t, "step")
			total += m.Entries
		}
		drawn := newTimeline(feed, months, documents, gapsOf(feed), &entriesView{})

		for _, m := range drawn.Marks {
			require.GreaterOrEqual(t, m.Y, drawn.Top)
			require.Less(t, m.Y, drawn.Base)
		}
		require.Equal(t, total > 0, len(drawn.Marks) > 0)
		counted := int64(0)
		for _, y := range drawn.Years {
			counted += y.Entries
		}
		require.Equal(t, total, counted)
		require.LessOrEqual(t, len(drawn.Bars), mostBars+1)
		require.Equal(t, total > 0, len(drawn.Bars) > 0)
		last := 0.0
		for _, b := range drawn.Bars {
			require.GreaterOrEqual(t, b.X, last)
			require.Greater(t, b.Width, 0.0)
			require.LessOrEqual(t, b.X+b.Width, lineWidth)
			require.InDelta(t, drawn.Base, b.Y+b.Height, 0.1)
			require.GreaterOrEqual(t, b.Y, drawn.Top)
			last = b.X
		}
		gaps := 0
		for _, b := range drawn.Blocks {
			require.GreaterOrEqual(t, b.X, 0.0)
			require.Greater(t, b.Width, 0.0)
			require.LessOrEqual(t, b.X+b.Width, lineWidth+0.1)
			require.NotEmpty(t, b.Says)
			if b.Kind == "gap" {
				gaps++
			}
		}
		require.Equal(t, len(feed.Ledger.Debts()), gaps, "every gap is drawn")
		require.LessOrEqual(t, len(drawn.Blocks), 2*mostBlocks+2*len(feed.Ledger.Debts())+1)
	})
}

// The months of a strip lead to their first entry, or to the nearest one.
func TestMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(2003, 2006)
	page, ids := w.add("/blog/feed.atom"), w.blogIDs()
	for query, want := range map[string]string{
		"month=0": "/entry?id=" + url.QueryEscape(ids[0]), "month=-4": "/entry?id=" + url.QueryEscape(ids[0]), "month=x": "/entry?id=" + url.QueryEscape(ids[0]),
		"month=100000000": "/entry?id=" + url.QueryEscape(ids[len(ids)-1]),
	} {
		status, _, header := w.get(page + "/month?" + query)
		require.Equal(t, http.StatusSeeOther, status, query)
		require.Equal(t, page+want, header.Get("Location"), query)
	}
	status, _, header := w.get(page + "/month?month=12")
	require.Equal(t, http.StatusSeeOther, status)
	first := slices.IndexFunc(ids, func(id string) bool { return strings.Contains(id, ",2004:") })
	require.Equal(t, page+"/entry?id="+url.QueryEscape(ids[first]), header.Get("Location"))
}

// A strip shows the place of an entry, and leads to other months.
func TestBrowserStrip(t *testing.T) {
	b := newTab(t)
	w := newWorld(t, nil)
	w.write(2003, 2008)
	page := strings.TrimPrefix(w.add("/blog/feed.atom"), "/")
	b.open(w.url + page + "/entry?id=" + url.QueryEscape(w.blogIDs()[14]))
	require.Contains(t, b.text(".strip"), "Entry 15 of ")
	b.do(chromedp.KeyEvent("g"))
	require.Equal(t, "month", evaluate[string](b, "document.activeElement.id"))
	b.do(chromedp.KeyEvent(kb.Home))
	require.Contains(t, b.text(".strip"), "Go to January 2003")
	b.do(chromedp.Evaluate[chromedp.Void](`{ const slide = document.activeElement; slide.value = 23; }`))
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	require.Contains(t, b.text(".strip"), "Go to January 2005")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.loads(`location.search.includes("id=") && document.querySelector(".byline").innerText.includes("January 2005")`)
}
